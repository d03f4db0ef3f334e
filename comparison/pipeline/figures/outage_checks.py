"""Decide the checks on runs in which ZooKeeper, a session, or the way to the authority fails.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.pipeline.figures.checks import two_deliver_during_a_cut
from comparison.pipeline.figures.deciding import (
    EXPECTED,
    NOT_EXPECTED,
    UNKNOWN,
    NotShown,
    counted_noun,
    first_change,
    injected_fault,
    needs,
    shown,
    timer_ms,
    was_silent_for_a_session,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Change, Run

#: As in the trace.
KILL, EXPIRE, FLAP, CUT, GROWING, QUORUM_LOSS = "kill", "expire", "flap", "cut", "growing-delay", "quorum-loss"
#: The target of a fault that all members have.
ALL_MEMBERS = "members"
#: A server ends a session up to a tick late, and a member's first and last try take time.
SLACK_MS = 1_000.0
#: How late a group may be, beyond its timers, on a busy machine.
LATE_MS = 5_000.0
#: The share of an outage in which nothing may be delivered, and still count as going on.
STALLED_SHARE_MAX = 0.25
#: How often the group has to rebalance a minute, for each time that a member was killed and came back in a minute.
STORM_SHARE_MIN = 0.5
#: How often a client of ZooKeeper sends a ping at least, as a share of its session.
PING_SHARE = 1 / 3
#: In how many steps a delay grows (comparison.scenarios.run.link_faults).
GROWING_STEPS = 10
#: What becomes of an operation whose connection or session ends before its answer; of one that a server is slow to
#: answer, neither does.
_UNANSWERED = ("ConnectionLost", "SessionExpired")


# -- tries against the session timeout ---------------------------------------------------------------------------------


@needs("a claim that met one of a killed member")
def gives_up(run: Run) -> CheckResult:
    """A member whose claims meet those of a dead one fails all its tries before that one's session ends.

    None if retries and backoff last longer than the session by what one try can take.
    """
    tries, tries_ms, session_ms = _tries(run)
    # Its last heartbeat was up to a third of the session before its death.
    if session_ms is None or tries_ms > session_ms * 2 / 3 - SLACK_MS / 2:
        return None
    failed = run.metrics["rebalances_failed"] or 0
    summary = _tried(run, tries, tries_ms, session_ms)
    if not first_change(run, KILL) or not run.metrics["attempts_failed"]:
        return UNKNOWN, f"{summary}; no claim met one of a killed member"
    if not failed and (run.metrics["attempts_failed"] or 0) < tries:
        return UNKNOWN, f"{summary}; the session ended before anybody had tried as often"
    return (EXPECTED if failed else NOT_EXPECTED), summary


@needs("a claim that met one of a killed member")
def outlasts_the_session(run: Run) -> CheckResult:
    """With tries that last longer than a session, no member gives up; where they do not, this is not judged.

    The rule of thumb was retries x backoff. The last try begins one backoff earlier.
    """
    tries, tries_ms, session_ms = _tries(run)
    if session_ms is None or tries_ms * (tries - 1) / tries <= session_ms + SLACK_MS:
        return None
    summary = _tried(run, tries, tries_ms, session_ms)
    if run.metrics["rebalances_failed"]:
        return NOT_EXPECTED, summary
    if not first_change(run, KILL) or not run.metrics["attempts_failed"]:
        return UNKNOWN, f"{summary}; no claim met one of a killed member"
    return EXPECTED, summary


@needs("a member that was killed")
def nobody_gives_up(run: Run) -> CheckResult:
    """One coordinator decides, so nobody has to try again, and no application gets an error."""
    if first_change(run, KILL) is None:
        return UNKNOWN, "no member was killed"
    if run.failures:
        return NOT_EXPECTED, f"{counted_noun(len(run.failures), 'error')} reached applications: {run.failures[0]}"
    return EXPECTED, "a member was killed and started again; no error reached an application"


def _tries(run: Run) -> tuple[int, float, float | None]:
    settings = run.parameters.get("member_settings", {})
    tries = int(settings.get("rebalance.max.retries", 1))
    return tries, tries * float(settings.get("rebalance.backoff.ms", 0)), timer_ms(run, "session_ms")


def _tried(run: Run, tries: int, tries_ms: float, session_ms: float) -> str:
    failed, attempts = (run.metrics[name] or 0 for name in ("rebalances_failed", "attempts_failed"))
    return (
        f"{counted_noun(failed, 'rebalance')} given up, {counted_noun(attempts, 'attempt')} failed: "
        f"{counted_noun(tries, 'try', 'tries')} in {tries_ms:g} ms, a dead member's session lasts {session_ms:g} ms"
    )


# -- ZooKeeper is away -------------------------------------------------------------------------------------------------


@needs("a ZooKeeper server killed under load, and deliveries afterwards")
def no_rebalance_without_zookeeper(run: Run) -> CheckResult:
    """While ZooKeeper has no leader it ends no session, so nobody leaves the group, and nobody is notified."""
    change = shown(_outage(run), "no ZooKeeper server was killed")
    summary = f"{counted_noun(change.rounds, 'rebalance')} of the group"
    if change.rounds:
        return NOT_EXPECTED, summary
    delivered = _delivered_since(run, change)
    if not delivered:
        return UNKNOWN, f"{summary}; nothing was delivered afterwards"
    return EXPECTED, f"{summary}; {counted_noun(delivered, 'record')} delivered since"


@needs("a ZooKeeper server killed under load")
def delivers_without_zookeeper(run: Run) -> CheckResult:
    """Records come from brokers, which go on serving them; no member stops."""
    change = _outage(run)
    if change is None or change.stalled_s is None:
        return UNKNOWN, "no ZooKeeper server was killed under load"
    held_s = _held_s(change)
    summary = f"nothing was delivered for {change.stalled_s:.1f} s; ZooKeeper had lost a server for {held_s:.1f} s"
    if not _delivered_since(run, change):
        return NOT_EXPECTED, f"{summary}; nothing was delivered afterwards"
    goes_on = not change.stopped and change.stalled_s <= STALLED_SHARE_MAX * held_s
    return (EXPECTED if goes_on else NOT_EXPECTED), summary


@needs("a ZooKeeper server killed under load, for longer than a session")
def stands_still_without_zookeeper(run: Run) -> CheckResult:
    """A member that cannot reach ZooKeeper stops delivering before its session may have ended, and so do all."""
    change = _outage(run)
    if change is None or change.stalled_s is None:
        return UNKNOWN, "no ZooKeeper server was killed under load"
    held_s = _held_s(change)
    summary = (
        f"{counted_noun(change.stopped, 'partition')} stopped, nothing was delivered for {change.stalled_s:.1f} s; "
        f"ZooKeeper was away for {held_s:.1f} s"
    )
    session_ms = timer_ms(run, "session_ms")
    if session_ms is None or held_s * 1000 < session_ms + SLACK_MS:
        return UNKNOWN, f"{summary}; too short to show anything"
    return (EXPECTED if change.stopped and change.stalled_s > STALLED_SHARE_MAX * held_s else NOT_EXPECTED), summary


def _outage(run: Run) -> Change | None:
    """The change or fault that took servers of ZooKeeper away."""
    killed = (each for each in run.changes if each.change == KILL and each.target.startswith("zookeeper-"))
    return first_change(run, QUORUM_LOSS) or next(killed, None)


def _held_s(change: Change) -> float:
    """How long the fault lasted; until the group had settled, of one that is traced as a change."""
    return (change.healed_ms or change.settled_ms or 0.0) / 1000


def _delivered_since(run: Run, change: Change) -> int:
    """Records delivered since the change began, in whole bins."""
    if run.delivery is None:
        return 0
    first = max(0, int((change.from_ms - run.delivery.from_ms) // run.delivery.bin_ms) + 1)
    return sum(run.delivery.records[first:])


# -- sessions that end -------------------------------------------------------------------------------------------------


@needs("a session that was ended", of_one_group=True)
def everybody_rebalances(run: Run) -> CheckResult:
    """An expired member is seen to leave and to come back; everybody stops, and it rebalances itself more than once.

    The originals' expired member rebalanced 3 times in all of 12 expiries (once for its new session, then once for
    each listener that is called again), and the others once or twice: notifications that come together are one.
    """
    change = shown(first_change(run, EXPIRE), "no session was ended")
    members = int(run.parameters.get("members", 0))
    summary = (
        f"{counted_noun(change.attempts, 'attempt')} of {members} members, "
        f"{counted_noun(change.notifications, 'notification')}, {counted_noun(change.stopped, 'partition')} stopped"
    )
    # Each of the others at least once, the expired one at least twice. Where all expire, nobody need be left to watch.
    enough = change.attempts >= members + 1 and change.rounds >= 1 and change.stopped >= 1
    return (EXPECTED if enough else NOT_EXPECTED), summary


@needs("a session that was ended", of_one_group=True)
def coordinator_notices_the_expiry(run: Run) -> CheckResult:
    """The coordinator watches the members' ids, so it takes the expired member's partitions and gives them back.

    It sees each member go and come back once, so it has no more to do than a rebalance for each.
    """
    change = shown(first_change(run, EXPIRE), "no session was ended")
    summary = (
        f"{counted_noun(change.rounds, 'rebalance')}, {counted_noun(change.stopped, 'partition')} stopped, "
        f"{counted_noun(change.notifications, 'notification')} of members"
    )
    all_expired = injected_fault(run, EXPIRE).get("target", ALL_MEMBERS) == ALL_MEMBERS
    most = 2 * (int(run.parameters.get("members", 0)) if all_expired else 1)
    if change.rounds > most:
        return NOT_EXPECTED, f"{summary}; members went and came back {most} times at most"
    return (EXPECTED if change.rounds else NOT_EXPECTED), summary


# -- owners that are gone ----------------------------------------------------------------------------------------------


@needs("a release of partitions that outlived its session")
def owner_nodes_deleted(run: Run) -> CheckResult:
    """Owner znodes of others were deleted by a release that outlived its session; nobody creates them again.

    The originals did the same: such a release deleted 3 owner nodes of another member.
    """
    left, summary = _interrupted(run)
    return (EXPECTED if left else NOT_EXPECTED), summary


@needs("a release of partitions that outlived its session")
def owner_nodes_kept(run: Run) -> CheckResult:
    """With fix.checked.release, every partition has its owner znode in the end."""
    left, summary = _interrupted(run)
    return (NOT_EXPECTED if left else EXPECTED), summary


def _interrupted(run: Run) -> tuple[int, str]:
    """How many partitions have no owner znode at the end. Raises `NotShown` if no release was interrupted."""
    left = shown(run.metrics["left_unnamed"], "no owner was traced at the authority")
    # One that is sent again may fail a second time: the session has expired.
    cut_off = max((run.zk_operations.get(f"delete ({error})", 0) for error in _UNANSWERED), default=0)
    if not cut_off:
        raise NotShown("no session ended in the middle of a release")
    without = f"{counted_noun(left, 'partition')} without an owner znode at the end, though members believe to own them"
    interrupted = f"{counted_noun(cut_off, 'release')} interrupted by the end of a session"
    return int(left), f"{without if left else 'every partition has its owner znode at the end'}; {interrupted}"


# -- a member that comes and goes --------------------------------------------------------------------------------------


@needs("a member that went and came back, several times", of_one_group=True)
def storm(run: Run) -> CheckResult:
    """Every time that a flapping member goes or comes back, the whole group rebalances."""
    change, times, summary = _flapping(run)
    return (EXPECTED if change.rounds >= STORM_SHARE_MIN * times else NOT_EXPECTED), summary


@needs("a member that went and came back, several times", of_one_group=True)
def no_storm(run: Run) -> CheckResult:
    """A member that comes back under its group.instance.id within its session timeout gets its partitions back."""
    change, _, summary = _flapping(run)
    if change.rounds and was_silent_for_a_session(run, change):
        return UNKNOWN, f"{summary}; the member was back only after its session"
    return (NOT_EXPECTED if change.rounds else EXPECTED), summary


def _flapping(run: Run) -> tuple[Change, int, str]:
    """The storm, how often the member was killed, and what it cost: rebalances a minute, and useful time."""
    nobody = "no member was killed and started again several times"
    change, times = shown(first_change(run, FLAP), nobody), shown(injected_fault(run, FLAP).get("times"), nobody)
    lasted_ms = max(change.healed_ms or 0.0, change.converge_ms or 0.0)
    if not lasted_ms or not change.unowned_partition_s:
        raise NotShown("the trace does not show that a member was away")
    partitions = int(run.parameters.get("topics", 1)) * int(run.parameters.get("partitions", 1))
    useful = 1 - change.unowned_partition_s * 1000 / (partitions * lasted_ms)
    a_minute = change.rounds * 60_000 / lasted_ms
    return (
        change,
        int(times),
        (
            f"{counted_noun(change.rounds, 'rebalance')} in {lasted_ms / 1000:.1f} s ({a_minute:.0f} a minute) "
            f"for {counted_noun(int(times), 'restart')}; partitions had an owner {useful:.0%} of the time"
        ),
    )


# -- a link that is slow, or carries one direction only ----------------------------------------------------------------


@needs("a cut of one direction that outlasts a session", of_one_group=True)
def outlives_the_silence(run: Run) -> CheckResult:
    """A member that hears nothing stays in the group beyond its session timeout, because its requests arrive.

    Each attempt to connect again names the session, and a server that reads it starts the session's timer again.
    """
    change, session_ms = first_change(run, CUT), timer_ms(run, "session_ms")
    if change is None or change.healed_ms is None or session_ms is None:
        return UNKNOWN, "the trace does not show the cut from start to heal"
    session = f"the session is {session_ms / 1000:g} s"
    if change.takeover_ms is None or change.takeover_ms > change.healed_ms:
        if change.healed_ms < session_ms + SLACK_MS:
            return UNKNOWN, f"the cut of {change.healed_ms / 1000:.1f} s was too short to show anything; {session}"
        silent = f"partitions without an owner for up to {change.unowned_longest_s:.1f} s"
        return EXPECTED, f"nobody took over in {change.healed_ms / 1000:.1f} s; {session}; {silent}"
    summary = f"a takeover after {change.takeover_ms / 1000:.1f} s; {session}"
    return (EXPECTED if change.takeover_ms >= session_ms + SLACK_MS else NOT_EXPECTED), summary


@needs("a cut of one direction that outlasts a session", of_one_group=True)
def two_deliver_past_the_session(run: Run) -> CheckResult:
    """The successor of a member that hears nothing delivers beside it, since nobody tells it.

    None if there is no successor (zookeeper.reconnect), or only just before the heal.
    """
    change = first_change(run, CUT)
    if change is not None and (change.takeover_ms is None or change.takeover_ms + SLACK_MS > (change.healed_ms or 0)):
        return None
    return two_deliver_during_a_cut(run)


@needs("a cut of one direction that outlasts a session", of_one_group=True)
def replaces_a_silent_member(run: Run) -> CheckResult:
    """A member that is not answered sends no further heartbeat, so it is removed when its session timer ends."""
    change = first_change(run, CUT)
    session_ms, heartbeat_ms = timer_ms(run, "session_ms"), timer_ms(run, "heartbeat_ms")
    if change is None or change.healed_ms is None or session_ms is None:
        return UNKNOWN, "the trace does not show the cut from start to heal"
    latest_ms = session_ms + (heartbeat_ms or 0.0) + LATE_MS
    if change.takeover_ms is None or change.takeover_ms > change.healed_ms:
        late = change.healed_ms > latest_ms
        return (
            NOT_EXPECTED if late else UNKNOWN
        ), f"nobody was assigned its partitions in {change.healed_ms / 1000:.1f} s"
    summary = f"a new assignment after {change.takeover_ms / 1000:.1f} s; the session is {session_ms / 1000:g} s"
    return (EXPECTED if change.takeover_ms <= latest_ms else NOT_EXPECTED), summary


@needs("a link whose delay grows to near the session timeout", of_one_group=True)
def outlasts_a_slow_link(run: Run) -> CheckResult:
    """A member behind a link that slows down stays in the group while it is heard from once a session, or longer.

    It may be replaced when what it sends arrives further apart than a session. One heartbeat at a time is outstanding,
    so the next one arrives up to the way back, an interval and the way there after the one before it. On a machine
    that is late it comes still later, and nobody can say why the member was replaced early.
    """
    change, session_ms = first_change(run, GROWING), timer_ms(run, "session_ms")
    injected = injected_fault(run, GROWING)
    if change is None or change.healed_ms is None or session_ms is None or not injected:
        return UNKNOWN, "the trace does not show the slow link from start to heal"
    session = f"the session is {session_ms / 1000:g} s"
    if change.takeover_ms is None:
        largest_ms = 2 * _delay_ms(injected, change.healed_ms)
        summary = f"the member stayed in the group, at round trips of up to {largest_ms / 1000:.1f} s; {session}"
        return (EXPECTED if largest_ms >= session_ms + SLACK_MS else UNKNOWN), summary
    replaced = f"replaced after {change.takeover_ms / 1000:.1f} s"
    if change.silent_ms is not None and not was_silent_for_a_session(run, change):
        return NOT_EXPECTED, f"{replaced}, at most {change.silent_ms / 1000:.1f} s after it was heard from; {session}"
    interval_ms = timer_ms(run, "heartbeat_ms") or session_ms * PING_SHARE
    ways_ms = [_delay_ms(injected, max(0.0, at_ms)) for at_ms in (change.takeover_ms - session_ms, change.takeover_ms)]
    apart_ms = sum(ways_ms) + interval_ms
    summary = f"{replaced}; by then heartbeats arrived up to about {apart_ms / 1000:.1f} s apart; {session}"
    if apart_ms < session_ms:
        return UNKNOWN, f"{summary}: the link alone does not explain it, the machine may have been late"
    return EXPECTED, summary


def _delay_ms(injected: Mapping[str, Any], at_ms: float) -> float:
    """Of one way, so long after it began to grow: in equal steps, the first one at once."""
    step = min(GROWING_STEPS, int(at_ms * GROWING_STEPS / float(injected["within_ms"])) + 1)
    return float(injected["to_ms"]) * step / GROWING_STEPS
