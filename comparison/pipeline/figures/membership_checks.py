"""Decide the checks on who is a member and what each gets.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.deciding import (
    EXPECTED,
    NOT_EXPECTED,
    UNKNOWN,
    counted_noun,
    first_change,
    named,
    needs,
    partitions_of,
    shown,
    timer_s,
    was_silent_for_a_session,
)
from comparison.pipeline.figures.group_checks import DELAY_EARLY_SHARE, WAIT_MS_MIN
from comparison.pipeline.figures.model import JOIN, RETURN
from comparison.results.keys import FORMING, place_of
from comparison.results.refusals import refused_in_words

if TYPE_CHECKING:
    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.refusals import Refusal
    from comparison.results.run import Change, Run

_NO_DUPLICATE = "no process was started with another one's group.instance.id"
_NO_OWNERS = "the trace does not show who owned what after a change"


DUPLICATE, UNSUBSCRIBE, MIGRATION = "duplicate", "unsubscribe", "migration"
#: How much longer than the member is away its partitions have no owner, if coming back early does not help.
LONGER_S_MIN = 0.5
RANGE = "range"
#: Strategies that move no more than they must.
STICKY = ("sticky", "cooperative-sticky")


@needs("a member that was missed, and came back")
def back_without_a_rebalance(run: Run) -> CheckResult:
    """A static member is missed for less than its session timeout: nobody else notices (KIP-345)."""
    change = first_change(run, RETURN)
    if change is None or change.converge_ms is None:
        return UNKNOWN, "the trace does not show a member that came back"
    summary = (
        f"{change.target} was back as the same member; its partitions had no owner for {change.unowned_longest_s:.1f} s"
    )
    if change.rounds or change.stopped or change.moved:
        if was_silent_for_a_session(run, change):
            return UNKNOWN, f"{summary}; {_cost(change)}, but it was back only after its session"
        return NOT_EXPECTED, f"{summary}; {_cost(change)}"
    if not change.unowned_longest_s:
        return UNKNOWN, f"{summary}; it was not missed at all"
    return EXPECTED, f"{summary}; no rebalance, no other partition stopped"


@needs("a member that was missed, and came back")
def spared_by_the_delay(run: Run) -> CheckResult:
    """A member that is back within the delay gets its own partitions back, and the others keep theirs (KIP-415)."""
    change = first_change(run, RETURN)
    if change is None or change.converge_ms is None:
        return UNKNOWN, "the trace does not show a member that came back"
    summary = f"{_cost(change)}; unowned for up to {change.unowned_longest_s:.1f} s"
    if change.stopped or change.moved:
        return NOT_EXPECTED, summary
    if change.rounds < 2:
        return UNKNOWN, f"{summary}; the member was not missed, or the leader was lost"
    return EXPECTED, f"{summary}; {change.target} got its own back"


@needs("a member that came back under load")
def early_return_does_not_help(run: Run) -> CheckResult:
    """The partitions of a member that comes back under another id wait for the end of its old session.

    In zookeeper its claims stand until then; a coordinator waits for it, or counts it as a member.
    """
    change, away_ms = first_change(run, RETURN), run.parameters.get("away_ms")
    if change is None or not away_ms:
        return UNKNOWN, "the trace does not show a member that came back, or how long it was away"
    away_s = float(away_ms) / 1000
    summary = (
        f"{change.target} was back after {away_s:.1f} s; its partitions had no owner for "
        f"{change.unowned_longest_s:.1f} s; {_cost(change)}"
    )
    if change.converge_ms is None or change.unowned_longest_s is None:
        return UNKNOWN, summary
    return (EXPECTED if change.unowned_longest_s >= away_s + LONGER_S_MIN else NOT_EXPECTED), summary


@needs("a generation that began after a member was killed")
def waits_for_the_dead(run: Run) -> CheckResult:
    """The group gathers for a member that is back, and waits for the one that died, which might still come."""
    change = first_change(run, RETURN)
    waits = [wait for wait in run.waits if change is not None and wait.from_ms >= change.from_ms]
    if change is None or not waits:
        return UNKNOWN, "no generation began after a member was killed"
    wait = max(waits, key=lambda each: each.longest_ms)
    summary = (
        f"{counted_noun(wait.waiting, 'member')} waited up to {wait.longest_ms / 1000:.1f} s for {wait.waited_for}; "
        f"nothing was delivered for {change.stalled_s or 0:.1f} s"
    )
    waited = wait.longest_ms >= WAIT_MS_MIN and wait.gone
    return (EXPECTED if waited and wait.waited_for == change.target else NOT_EXPECTED), summary


@needs("a member that came back under load")
def its_place_is_gone(run: Run) -> CheckResult:
    """After its session a static member is a new one: a rebalance when it is removed, another one when it is back."""
    change = shown(first_change(run, RETURN), "the trace does not show a member that came back")
    return (EXPECTED if change.rounds >= 2 and change.stopped else NOT_EXPECTED), _cost(change)


@needs("a member that came back under load")
def given_away_after_the_delay(run: Run) -> CheckResult:
    """When the delay has passed, others get the partitions; the member that is back gets others, or none of its own."""
    change = shown(first_change(run, RETURN), "the trace does not show a member that came back")
    return (EXPECTED if change.moved and change.rounds >= 2 else NOT_EXPECTED), _cost(change)


@needs("a process started with another one's group.instance.id")
def older_is_fenced(run: Run) -> CheckResult:
    """The newer process with the same group.instance.id takes over without a rebalance; the older one learns of it.

    As brokers do since KAFKA-8225: the recorded conversations with 4.1.1 answer its Heartbeat, OffsetCommit, JoinGroup
    and SyncGroup with FENCED_INSTANCE_ID.
    """
    change = shown(first_change(run, DUPLICATE), _NO_DUPLICATE)
    of_older = _refused(run, change.target, "FENCED_INSTANCE_ID")
    others = [each for each in run.refusals if each not in of_older]
    if others:
        return (
            NOT_EXPECTED,
            f"another one than {change.target}, or for another reason: {refused_in_words(others)}",
        )
    if change.rounds or change.stopped_kept:
        return NOT_EXPECTED, f"{_cost(change)}: the newer process should have taken the older one's place"
    if not of_older:
        return NOT_EXPECTED, f"{change.target} never learned that another process has its place"
    return EXPECTED, f"{change.target} was refused with FENCED_INSTANCE_ID; no rebalance, no other partition stopped"


@needs("a process started with another one's group.instance.id")
def newer_is_refused(run: Run) -> CheckResult:
    """A newer process with the same group.instance.id does not get in; the older one notices nothing.

    The recorded conversations with 4.1.1 answer its ConsumerGroupHeartbeat with UNRELEASED_INSTANCE_ID (KIP-848). In
    zookeeper its id znode exists; since 1.1 the consumer does not wait until it is gone (ZKCheckedEphemeral).
    """
    change = shown(first_change(run, DUPLICATE), _NO_DUPLICATE)
    if older := _refused(run, change.target):
        return NOT_EXPECTED, f"the older one was {refused_in_words(older)}"
    if change.rounds or change.stopped_kept or change.moved:
        return NOT_EXPECTED, f"{_cost(change)}: the group should have noticed nothing"
    if not any(each.error in ("UNRELEASED_INSTANCE_ID", "NodeExists") for each in run.refusals):
        return NOT_EXPECTED, f"no process was refused because {change.target} has its name"
    return EXPECTED, f"{refused_in_words(run.refusals)}; {change.target} went on, no partition stopped"


def _refused(run: Run, process: str, error: str = "") -> list[Refusal]:
    """How the group refused members at the place of this process, whatever the error, or with this one."""
    place = place_of(process)
    return [each for each in run.refusals if each.place == place and error in ("", each.error)]


@needs("a member with partitions that unsubscribed")
def taken_over_at_once(run: Run) -> CheckResult:
    """A member that unsubscribes leaves its group, so nobody waits for its session."""
    change, lasts_s = first_change(run, UNSUBSCRIBE), timer_s(run, "session_ms")
    if change is None or lasts_s is None or change.unowned_longest_s is None or not change.moved:
        return UNKNOWN, "the trace does not show a member with partitions that unsubscribed, or the session timeout"
    summary = f"unowned for up to {change.unowned_longest_s:.1f} s, a session lasts {lasts_s:g} s; {_cost(change)}"
    return (EXPECTED if change.unowned_longest_s < lasts_s else NOT_EXPECTED), summary


@needs("a member that unsubscribed")
def missed_although_healthy(run: Run) -> CheckResult:
    """A static member sends no LeaveGroup when it unsubscribes, as Kafka's consumer (KAFKA-20985): others wait."""
    change, lasts_s = first_change(run, UNSUBSCRIBE), timer_s(run, "session_ms")
    if change is None or lasts_s is None or change.unowned_longest_s is None:
        return UNKNOWN, "the trace does not show a member that unsubscribed, or the session timeout"
    heartbeat_s = timer_s(run, "heartbeat_ms") or 0.0
    summary = f"unowned for up to {change.unowned_longest_s:.1f} s, a session lasts {lasts_s:g} s; {_cost(change)}"
    # The session began with the last heartbeat, up to an interval before.
    waited = change.unowned_longest_s >= (lasts_s - heartbeat_s) * (1 - DELAY_EARLY_SHARE)
    return (EXPECTED if waited else NOT_EXPECTED), summary


@needs("commits to ZooKeeper, and then to Kafka")
def offsets_carried_over(run: Run) -> CheckResult:
    """Members with a coordinator go on where those of `zookeeper` committed."""
    change, behind = first_change(run, MIGRATION), run.metrics["started_behind"]
    commits = run.metrics["commits"]
    if change is None or behind is None or not commits or change.converge_ms is None:
        return UNKNOWN, "the trace does not show a commit to Kafka, or a group that was started anew"
    again = counted_noun(run.metrics["duplicates"] or 0, "record")
    if behind:
        return NOT_EXPECTED, f"{counted_noun(behind, 'delivery', 'deliveries')} started behind a commit; {again} again"
    summary = f"{counted_noun(commits, 'commit')} to Kafka; no delivery started behind one, {again} delivered again"
    if not sum(n for name, n in run.zk_operations.items() if name == "setData"):
        return UNKNOWN, f"{summary}; no commit to ZooKeeper was traced"
    return EXPECTED, summary


@needs("records copied by a transactional application")
def fenced_by_epoch(run: Run) -> CheckResult:
    """A newer producer with the same transactional.id raises the epoch, so the older one cannot write or commit.

    As 4.1.1 answered in the recorded conversation data/zombie: INVALID_PRODUCER_EPOCH from the partition's leader,
    PRODUCER_FENCED from the coordinator of the transaction (KIP-98).
    """
    copies = shown(
        next((each for each in run.copies if each.transactions), None),
        "the trace does not show what a transactional application copied",
    )
    summary = (
        f"{copies.copied} of {counted_noun(copies.records, 'record')} copied, {copies.twice} of them twice; the late "
        f"write: {copies.late_write or 'accepted'}, the late offset: {copies.late_offset or 'accepted'}, "
        f"the late commit: {copies.late_commit or 'accepted'}"
    )
    fenced = all((copies.late_write, copies.late_offset, copies.late_commit))
    return (EXPECTED if fenced and copies.copied == copies.records and not copies.twice else NOT_EXPECTED), summary


@needs("records copied without transactions")
def copied_twice_without_transactions(run: Run) -> CheckResult:
    """Without a transactional.id the partition's leader knows no incarnations: what the older one writes is stored."""
    copies = shown(
        next((each for each in run.copies if not each.transactions), None),
        "the trace does not show what an application copied without transactions",
    )
    summary = (
        f"{copies.twice} of {counted_noun(copies.records, 'record')} copied twice; nothing fences a write, the group "
        f"fences the offset: {copies.late_offset or 'accepted'}"
    )
    return (EXPECTED if copies.twice and not copies.late_write and copies.late_offset else NOT_EXPECTED), summary


@needs("an owner at the authority")
def balance_by_strategy(run: Run) -> CheckResult:
    """Each strategy gives members with equal subscriptions the shares that its rule says."""
    tried = _tried(run)
    if not tried or any(change.balance is None for _, change in tried):
        return UNKNOWN, _NO_OWNERS
    topics, partitions = int(run.parameters.get("topics", 1)), int(run.parameters.get("partitions", 0))
    for strategy, change in tried:
        members = change.members or 1
        # RangeAssignor divides each topic by itself, and the first members get one more of each.
        uneven = topics * bool(partitions % members) if strategy == RANGE else int(bool(topics * partitions % members))
        if change.balance != uneven:
            return NOT_EXPECTED, f"{change.balance} instead of {uneven} ({named(change)})"
    worst = {name: max(change.balance or 0 for each, change in tried if each == name) for name, _ in tried}
    return EXPECTED, "most partitions less fewest: " + ", ".join(f"{n} with {name}" for name, n in worst.items())


@needs("an owner at the authority")
def sticky_moves_the_fewest(run: Run) -> CheckResult:
    """KIP-54: of all balanced assignments, sticky takes one that moves the fewest partitions."""
    tried = [(strategy, change) for strategy, change in _tried(run) if strategy in STICKY]
    known = [change for _, change in tried if change.moved is not None and change.moved_minimum is not None]
    if len({strategy for strategy, _ in tried}) < len(STICKY) or len(known) < len(tried):
        return UNKNOWN, _NO_OWNERS
    wrong = [change for change in known if (change.moved or 0) > (change.moved_minimum or 0)]
    if wrong:
        return NOT_EXPECTED, f"{wrong[0].moved} moved, {wrong[0].moved_minimum} would do ({named(wrong[0])})"
    moved: dict[str, int] = {}
    for strategy, change in _tried(run):
        moved[strategy] = moved.get(strategy, 0) + (change.moved or 0)
    return EXPECTED, "partitions moved: " + ", ".join(f"{n} with {name}" for name, n in moved.items())


@needs("a lag of more than a second's records when members are added")
def catches_up(run: Run) -> CheckResult:
    """Members added while the group lags cost deliveries at first, and make up for them before the load ends."""
    before, dip, even_s = (run.metrics.get(name) for name in ("lag_before", "dip_records", "break_even_s"))
    rate = float(run.parameters.get("rate", 0))
    if before is None or dip is None:
        return UNKNOWN, "the trace does not show what was delivered before and after members were added"
    summary = f"{counted_noun(before, 'record')} behind when members were added, then up to {dip:g} fewer delivered"
    if before < rate:
        return UNKNOWN, f"{summary}; that is less than a second's records: there was no lag to speak of"
    if even_s is None:
        return NOT_EXPECTED, f"{summary}; not made up for before the load ended"
    made_up = f"made up for after {even_s:.1f} s" if dip else "none to make up for"
    return EXPECTED, f"{summary}; {made_up}; {run.metrics.get('lag_record_s') or 0:,.0f} record-seconds of lag in all"


@needs("more members than partitions")
def one_partition_each(run: Run) -> CheckResult:
    """With more members than partitions, no member owns two while others own none."""
    changes = _measured(run)
    known = [change for change in changes if change.balance is not None]
    partitions = partitions_of(run)
    if not known or any((change.members or 0) < partitions for change in changes):
        return UNKNOWN, _NO_OWNERS if not known else "the group was smaller than its topics have partitions"
    worst = max(known, key=lambda change: change.balance or 0)
    if (worst.balance or 0) > 1:
        return NOT_EXPECTED, f"a member owned {worst.balance} partitions while another one owned none ({named(worst)})"
    if len(known) < len(changes):
        return UNKNOWN, _NO_OWNERS
    idle = ", ".join(f"{(change.members or 0) - partitions} idle after {named(change)}" for change in known)
    return EXPECTED, f"no member owned two partitions; {idle}"


@needs("a member that joined")
def idle_member_stops_all(run: Run) -> CheckResult:
    """A member that joins and gets nothing costs every other one a stop: all is revoked before it is divided."""
    change = shown(first_change(run, JOIN), "no member joined")
    partitions = partitions_of(run)
    summary = f"{change.stopped} of {counted_noun(partitions, 'partition')} stopped, {change.stopped_kept} given back"
    return (EXPECTED if change.stopped >= partitions else NOT_EXPECTED), f"{summary}, for a member that got none"


@needs("a member that joined, and a rebalance")
def idle_member_stops_nobody(run: Run) -> CheckResult:
    """A member that joins and gets nothing stops no partition of the others."""
    change = first_change(run, JOIN)
    if change is None or not change.rounds:
        return UNKNOWN, "no member joined, or no rebalance was traced"
    if change.stopped or change.moved:
        return NOT_EXPECTED, (
            f"{counted_noun(change.stopped, 'partition')} stopped and {change.moved or 0} moved for a member that "
            "could get none"
        )
    return EXPECTED, f"{counted_noun(change.rounds, 'rebalance')}; no partition stopped or moved"


@needs("an owner at the authority")
def only_subscribers_own(run: Run) -> CheckResult:
    """Nobody owns a partition of a topic that it has not subscribed to."""
    known = [change for change in _measured(run) if change.unsubscribed is not None]
    if wrong := [change for change in known if change.unsubscribed]:
        count = counted_noun(wrong[0].unsubscribed or 0, "partition")
        return NOT_EXPECTED, f"{count} owned by members that did not subscribe to the topic ({named(wrong[0])})"
    if not known:
        return UNKNOWN, _NO_OWNERS
    balances = ", ".join(str(change.balance) for change in known if change.balance is not None)
    return EXPECTED, f"after {counted_noun(len(known), 'change')}; most partitions less fewest: {balances or 'unknown'}"


def _measured(run: Run) -> list[Change]:
    return [change for change in run.changes if change.change != FORMING and change.members is not None]


def _tried(run: Run) -> list[tuple[str, Change]]:
    """The joins and leaves of each strategy, which begin with its name."""
    words = [(*change.change.rpartition(" "), change) for change in run.changes]
    return [(strategy, change) for strategy, _, what, change in words if strategy and what in ("join", "leave")]


def _cost(change: Change) -> str:
    return (
        f"{counted_noun(change.rounds, 'rebalance')}, {counted_noun(change.stopped, 'partition')} of others stopped, "
        f"{change.moved or 0} moved"
    )
