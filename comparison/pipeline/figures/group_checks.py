"""Decide the checks on the group as a whole: who waits, what goes on, what survives a coordinator.

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
    shown,
    timer_s,
)
from comparison.pipeline.figures.model import CRASH, JOIN, LEAVE
from comparison.results.keys import FORMING

if TYPE_CHECKING:
    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Change, Run, Term, Wait

SLOW, FAILOVER = "slow", "failover"
#: Why `kept_goes_on` may be unknown.
NONE_KEPT = "no partition was kept through a rebalance"
#: The share of the wait for a slow member in which nothing is delivered: at least, where all partitions are revoked
#: first; at most, where kept partitions go on.
STALLED_SHARE_MIN, STALLED_SHARE_MAX = 0.5, 0.25
#: A wait shorter than this is an ordinary round.
WAIT_MS_MIN = 1_000.0
#: How much too early one of our timers may seem to fire, and how late rounds may be on a busy machine.
DELAY_EARLY_SHARE, DELAY_LATE_S = 0.05, 5.0


@needs("a partition kept through a rebalance")
def kept_goes_on(run: Run) -> CheckResult:
    """A kept partition never stops, and is delivered in the middle of the rebalance."""
    changes = [change for change in run.changes if change.change != FORMING]
    stopped = [change for change in changes if change.stopped_kept]
    if stopped:
        worst = max(stopped, key=lambda change: change.stopped_kept)
        return NOT_EXPECTED, f"{counted_noun(worst.stopped_kept, 'partition')} stopped and given back ({named(worst)})"
    kept, shown, delivered = (
        sum(getattr(change, name) or 0 for change in changes) for name in ("kept", "kept_shown", "kept_delivered")
    )
    if not kept:
        return UNKNOWN, NONE_KEPT
    summary = f"{counted_noun(run.metrics['stopped'] or 0, 'partition')} stopped and moved; {kept} kept"
    if delivered < shown:
        return NOT_EXPECTED, f"{summary}; {shown - delivered} of {shown} delivered nothing during a long rebalance"
    if not shown:
        return EXPECTED, f"{summary}; the rebalances were too short to show deliveries"
    return EXPECTED, f"{summary}; all {shown} in long rebalances went on delivering"


@needs("a partition that a member claimed")
def never_owned_by_two(run: Run) -> CheckResult:
    """No partition is ever claimed by two members at once, by what each of them believes."""
    seconds = shown(run.metrics["double_owned_partition_s"], "no ownership was traced")
    if seconds:
        return NOT_EXPECTED, f"{seconds:g} partition-seconds claimed by two members"
    return EXPECTED, f"{counted_noun(run.metrics['moved'] or 0, 'partition')} moved, none claimed by two members"


@needs("a member with partitions that left, in more than one rebalance", of_one_group=True)
def delay_honoured(run: Run) -> CheckResult:
    """A lost member's partitions stay unowned for the delay; not if the leader was lost, which knew of the delay."""
    delay_s = timer_s(run, "delay_ms")
    change = first_change(run, LEAVE, CRASH)
    if change is None or delay_s is None or change.unowned_longest_s is None:
        return UNKNOWN, "the trace does not show a member leaving, or the configured delay"
    if change.stopped:
        return NOT_EXPECTED, f"{counted_noun(change.stopped, 'partition')} taken from members that stayed"
    longest_s, rounds = change.unowned_longest_s, change.rounds
    summary = f"unowned for up to {longest_s:.1f} s, the delay is {delay_s:g} s; no other partition stopped"
    if rounds < 2:
        return UNKNOWN, f"one rebalance only, as when the leader or a member without partitions leaves; {summary}"
    latest_s = (timer_s(run, "session_ms") or 0.0) + delay_s + DELAY_LATE_S
    within = delay_s * (1 - DELAY_EARLY_SHARE) <= longest_s <= latest_s
    return (EXPECTED if within else NOT_EXPECTED), summary


@needs("a coordinator killed, and a generation that goes on", of_one_group=True)
def generation_kept(run: Run) -> CheckResult:
    """The group goes on under another coordinator, and no member has to rejoin."""
    change = shown(first_change(run, FAILOVER), "no coordinator was killed")
    successor = _successor(run, change)
    summary = f"{successor.broker} took over the group" if successor else "no broker was seen taking over the group"
    if change.rounds:
        began = f"{counted_noun(change.rounds, 'new generation')} began"
        if successor and (too_late := _after_sessions(run, (successor.from_ms - change.from_ms) / 1000)):
            return UNKNOWN, f"{summary} {too_late}: {began}; use a longer --session-timeout"
        return NOT_EXPECTED, f"{summary}; {began}, {counted_noun(change.stopped, 'partition')} stopped"
    if not successor:
        return UNKNOWN, f"{summary}; no new generation began"
    return EXPECTED, f"{summary}; no new generation began, no partition stopped"


@needs("a broker that takes the group over, and a commit that the authority accepted", of_one_group=True)
def acknowledged_commits_kept(run: Run) -> CheckResult:
    """Deliveries and commits continue from what the old coordinator had acknowledged."""
    change = first_change(run, FAILOVER)
    behind, moved_back, final = (run.metrics[name] for name in ("started_behind", "moved_back", "final_behind"))
    if behind is None or moved_back is None:
        return UNKNOWN, "no commit was traced at the authority"
    if behind or moved_back or final:
        return NOT_EXPECTED, (
            f"{counted_noun(behind, 'delivery', 'deliveries')} started behind an accepted commit, "
            f"{counted_noun(moved_back, 'offset')} moved back, {counted_noun(final or 0, 'final offset')} behind"
        )
    if change is None or not _successor(run, change):
        return UNKNOWN, "no broker was seen taking over the group"
    return EXPECTED, f"{counted_noun(run.metrics['commits'] or 0, 'commit')} accepted, none lost in the takeover"


def _successor(run: Run, change: Change) -> Term | None:
    """The term of the broker that accepted commits for the group after another one was killed; None if none did."""
    after = [term for term in run.coordinators if term.broker != change.target and term.commits]
    late = [term for term in after if term.last_ms is not None and term.last_ms > change.from_ms]
    return late[-1] if late else None


def _after_sessions(run: Run, away_s: float) -> str:
    """How long the group had no coordinator, if members' own session timers can have ended meanwhile; '' if not.

    A member's timer started at its last answered heartbeat, up to an interval before the kill. Members without
    heartbeats (server) have their sessions with ZooKeeper.
    """
    session_s, heartbeat_s = timer_s(run, "session_ms"), timer_s(run, "heartbeat_ms")
    if session_s is None or heartbeat_s is None or away_s < session_s - heartbeat_s:
        return ""
    return f"after {away_s:.1f} s, and members with sessions of {session_s:g} s may have given up before"


@needs("a member that was slowed down, and a rebalance", of_one_group=True)
def waits_for_the_slow_member(run: Run) -> CheckResult:
    """All members revoke everything and wait: the whole group stands still until its slowest member joins."""
    wait, change, slow = _slow_wait(run)
    summary = _wait_summary(wait, change)
    if wait.waited_for != slow or change.stalled_s is None:
        return NOT_EXPECTED, f"{summary}, but {slow} was the slow member"
    enough = change.stalled_s * 1000 >= STALLED_SHARE_MIN * wait.longest_ms and wait.longest_ms >= WAIT_MS_MIN
    return (EXPECTED if enough else NOT_EXPECTED), summary


@needs("a slow member that is waited for, long enough to deliver", of_one_group=True)
def goes_on_while_it_waits(run: Run) -> CheckResult:
    """The group waits for its slow member, and goes on delivering what it keeps."""
    wait, change, _ = _slow_wait(run)
    summary = _wait_summary(wait, change)
    if change.stopped_kept:
        return NOT_EXPECTED, f"{summary}; {counted_noun(change.stopped_kept, 'partition')} stopped and given back"
    if wait.longest_ms < WAIT_MS_MIN or change.stalled_s is None:
        return UNKNOWN, f"{summary}; too short to show anything"
    return (EXPECTED if change.stalled_s * 1000 <= STALLED_SHARE_MAX * wait.longest_ms else NOT_EXPECTED), summary


@needs("a member that was slowed down, and a rebalance meanwhile")
def waits_for_nobody(run: Run) -> CheckResult:
    """Others take over what they are given while one member is slow; only what that one owns is not delivered."""
    slow = first_change(run, SLOW)
    if slow is None or slow.healed_ms is None:
        return UNKNOWN, "the trace does not show a slow member from start to end"
    joined = next((each for each in run.changes if each.change == JOIN and each.from_ms >= slow.from_ms), None)
    if joined is None or not joined.rounds or joined.stalled_s is None:
        return UNKNOWN, "no rebalance began under load after a member was slowed down"
    slow_s = slow.healed_ms / 1000
    summary = (
        f"{slow.target} was slow for {slow_s:.1f} s; {counted_noun(joined.rounds, 'rebalance')} meanwhile, nothing was "
        f"delivered for {joined.stalled_s:.1f} s"
    )
    if joined.stopped_kept:
        return NOT_EXPECTED, f"{summary}; {counted_noun(joined.stopped_kept, 'partition')} stopped and given back"
    if slow.healed_ms < WAIT_MS_MIN:
        return UNKNOWN, f"{summary}; too short to show anything"
    return (EXPECTED if joined.stalled_s <= STALLED_SHARE_MAX * slow_s else NOT_EXPECTED), summary


def _slow_wait(run: Run) -> tuple[Wait, Change, str]:
    """The longest wait after a member was slowed down, the change that was held up, and the slow member."""
    slow = shown(first_change(run, SLOW), "no member was slowed down")
    later = (wait for wait in run.waits if wait.from_ms >= slow.from_ms)
    longest = max(later, key=lambda each: each.longest_ms, default=None)
    wait = shown(longest, "no generation began after a member was slowed down")
    held_up = [change for change in run.changes if change.from_ms <= wait.from_ms]
    return wait, held_up[-1], slow.target


def _wait_summary(wait: Wait, change: Change) -> str:
    why = "which never joined" if wait.gone else "which joined last"
    return (
        f"{counted_noun(wait.waiting, 'member')} waited up to {wait.longest_ms / 1000:.1f} s for {wait.waited_for}, "
        f"{why}; nothing was delivered for {change.stalled_s or 0:.1f} s"
    )
