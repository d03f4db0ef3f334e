"""Decide each check of comparison.pipeline.figures.verdicts: a run's figures in, an outcome and its reason out."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
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
)
from comparison.pipeline.figures.model import RESTART
from comparison.results.keys import COMPLETE, FORMING
from kernel.designs import COORDINATED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Change, Counted, Run, Term

#: The share of a cut, less the takeover, in which two members must be seen delivering.
TWO_DELIVERING_SHARE_MIN = 0.5
#: Changes in which a member's process is killed.
CRASHES = ("crash", "crash-and-return")
#: The originals made 3 to 6 stale writes in a cut, one or two per partition of the member that was cut off.
STALE_WRITES_IN_A_CUT_MIN = 2
#: How a fault's target names a member.
_MEMBER = re.compile("owner|m[0-9]+")
#: How many changes a reason names.
_NAMED_MAX = 5
#: Why `counts_equal_the_model` may be unknown.
NONE_PREDICTED = "the model covers no change of this run"


@needs("a numbered record that was acknowledged and delivered")
def no_record_lost(run: Run) -> CheckResult:
    """Every acknowledged record was delivered to some member.

    With auto-commit the 0.8 consumer commits a record when it delivers it, so a crash may lose the one in hand.
    """
    lost = run.metrics["lost"]
    if lost is None:
        if run.metrics["delivered"] is not None and not run.drained:
            return UNKNOWN, "the run ended before the log was drained"
        return UNKNOWN, "no numbered record was both acknowledged and delivered"
    delivered = run.metrics["delivered"]
    if lost == 0:
        skipped = f"; {run.metrics['skipped']:g} skipped by a reset" if run.metrics["skipped"] else ""
        return EXPECTED, f"0 lost; {delivered:g} delivered, {run.metrics['duplicates']:g} of them repeats{skipped}"
    in_hand = int(run.parameters.get("streams", 1)) * _killed(run) if run.design == "zookeeper" else 0
    if lost <= in_hand:
        return EXPECTED, f"{counted_noun(lost, 'record')} lost in the crash: auto-commit may lose the one in hand"
    return NOT_EXPECTED, f"{counted_noun(lost, 'record')} lost, {delivered:g} delivered"


def _killed(run: Run) -> int:
    """How often the run killed a member."""
    injected = run.parameters.get("injected", [])
    by_steps = sum(
        int(each.get("times", 1))
        for each in injected
        if each["fault"] in ("kill", "flap", "slow-start") and _MEMBER.fullmatch(each["target"])
    )
    return by_steps + sum(change.change in CRASHES for change in run.changes)


@needs("a change of the group")
def settles(run: Run) -> CheckResult:
    """Every partition has one owner again after each change and each fault.

    A fault that was still in effect when the next change or fault came is not measured by itself, nor is a change
    that was not waited for.
    """
    measured = [change for change in run.changes if change.change != FORMING and not _outlasted(run, change)]
    if not measured:
        return UNKNOWN, "no change was made in this run"
    open_ones = [named(change) for change in measured if change.converge_ms is None]
    if open_ones and run.outcome != COMPLETE:
        return UNKNOWN, f"the run ended before the group had settled after {open_ones[0]}"
    if open_ones:
        more = f" and {len(open_ones) - _NAMED_MAX} more" if len(open_ones) > _NAMED_MAX else ""
        first = ", ".join(open_ones[:_NAMED_MAX])
        return NOT_EXPECTED, f"partitions stayed unowned or claimed by two members after {first}{more}"
    slowest = max(measured, key=lambda change: change.converge_ms or 0.0)
    return EXPECTED, f"within {slowest.converge_ms:.0f} ms (slowest: {named(slowest)})"


def _outlasted(run: Run, change: Change) -> bool:
    later_ms = next((each.from_ms for each in run.changes if each.from_ms > change.from_ms), None)
    if later_ms is None:
        return False
    if change.members is not None and change.settled_ms is None:
        return True
    over_ms = change.settled_ms if change.members is not None else change.healed_ms
    return over_ms is not None and change.from_ms + over_ms > later_ms


@needs("a commit that the authority accepted")
def no_offset_moved_back(run: Run) -> CheckResult:
    """No accepted commit moves the offset of a partition back."""
    moved_back = shown(run.metrics["moved_back"], "no commit was traced at the authority")
    if moved_back:
        records = counted_noun(run.metrics["moved_back_records"] or 0, "record")
        return NOT_EXPECTED, f"{counted_noun(moved_back, 'offset')} moved back, by {records}"
    return EXPECTED, f"{counted_noun(run.metrics['commits'] or 0, 'commit')}, none moved an offset back"


@needs("a commit that the authority accepted")
def final_offsets_kept(run: Run) -> CheckResult:
    """No committed offset is lost: at the end each one is as last committed, and within its log."""
    read = run.metrics["final_read"]
    if read is None:
        return None
    behind, beyond = run.metrics["final_behind"] or 0, run.metrics["final_beyond"] or 0
    if behind or beyond:
        return NOT_EXPECTED, (
            f"of {counted_noun(read, 'final offset')}, {behind:g} behind the last accepted commit, "
            f"{beyond:g} beyond the end of the log"
        )
    if run.metrics["commits"] is None:
        return UNKNOWN, "no commit was traced at the authority"
    return EXPECTED, f"{counted_noun(read, 'final offset')}, each as last committed and within its log"


@needs("a commit that the authority accepted, and an owner there")
def no_stale_write(run: Run) -> CheckResult:
    """Every accepted commit is from the owner of its partition, or comes while the partition has none."""
    stale = shown(run.metrics["stale_writes"], "no commit or no owner was traced at the authority")
    if stale:
        return NOT_EXPECTED, f"{counted_noun(stale, 'commit')} accepted from a member that was not the owner"
    commits = counted_noun(run.metrics["commits"] or 0, "commit")
    return EXPECTED, f"{commits}, each from the owner or while the partition had no owner"


@needs("a commit with an old generation or member id")
def old_commits_refused(run: Run) -> CheckResult:
    """No commit with an old generation or member id is accepted, and at least one is tried."""
    old = shown(run.metrics["old_accepted"], "no commit was traced at the authority")
    if old:
        return NOT_EXPECTED, f"{counted_noun(old, 'commit')} with an old generation accepted"
    fenced, dropped = run.metrics["fenced"] or 0, run.metrics["dropped"] or 0
    summary = f"0 old commits accepted, {fenced:g} refused, {dropped:g} dropped by their sender"
    if not fenced + dropped:
        return UNKNOWN, f"{summary}; none was tried"
    return EXPECTED, summary


@needs("another broker that takes the group over during the cut", of_one_group=True)
def old_coordinator_silenced(run: Run) -> CheckResult:
    """During the cut another broker takes over the group, and the old one acknowledges nothing more."""
    if not run.coordinators:
        return UNKNOWN, "no takeover of the group's partition was traced"
    if late := [term for term in run.coordinators if term.late]:
        return NOT_EXPECTED, f"{_named_term(late[0])} was still accepting after another broker took over"
    if old := run.metrics["old_accepted"]:
        return NOT_EXPECTED, f"{counted_noun(old, 'commit')} with an old generation accepted"
    cut = first_change(run, "cut")
    if cut is None or cut.healed_ms is None:
        return UNKNOWN, "the trace does not show the cut from start to heal"
    moves = [
        (before, after)
        for before, after in pairwise(run.coordinators)
        if before.group == after.group
        and before.broker != after.broker
        and cut.from_ms <= after.from_ms <= cut.from_ms + cut.healed_ms
    ]
    if not moves:
        return UNKNOWN, f"{_named_term(run.coordinators[-1])} kept the group during the cut; no broker replaced it"
    before, after = moves[-1]
    summary = (
        f"{_named_term(after)} took over from {before.broker} after {(after.from_ms - cut.from_ms) / 1000:.1f} s "
        f"and accepted {counted_noun(after.commits, 'commit')}"
    )
    if not after.commits:
        return (NOT_EXPECTED if run.outcome == COMPLETE else UNKNOWN), f"{summary}; the group made no progress"
    refused = run.metrics["misdirected"] or 0
    return (
        EXPECTED,
        f"{summary}, {before.broker} none after that; {counted_noun(refused, 'misdirected request')} refused",
    )


def _named_term(term: Term) -> str:
    return f"{term.broker} (leader epoch {term.leader_epoch})"


@needs("a commit that the authority accepted, and an owner there")
def zombie_commits(run: Run) -> CheckResult:
    """A member that was replaced while it was paused commits, and moves an offset back: nothing fences it."""
    return _zombie_commits(run, stale_min=1)


@needs("a commit that the authority accepted, and an owner there")
def zombie_commits_after_a_cut(run: Run) -> CheckResult:
    """A member that was replaced while it was cut off commits, and moves an offset back: nothing fences it."""
    return _zombie_commits(run, stale_min=STALE_WRITES_IN_A_CUT_MIN)


def _zombie_commits(run: Run, *, stale_min: int) -> CheckResult:
    """The replaced member's offset writes are accepted, and one of them moves the offset back.

    A write after the new owner's release (because the old one is back) does not count as stale but moves the offset
    back all the same. How many writes precede the release is a race that a busy machine loses.
    """
    stale, moved_back = run.metrics["stale_writes"], run.metrics["moved_back"]
    if stale is None or moved_back is None:
        return UNKNOWN, "no commit or no owner was traced at the authority"
    summary = (
        f"{counted_noun(stale, 'commit')} accepted from a non-owner, {counted_noun(moved_back, 'offset')} moved back"
    )
    if min(stale, moved_back) >= 1 and max(stale, moved_back) >= stale_min:
        return EXPECTED, f"{summary}; nothing fences them"
    return NOT_EXPECTED, f"{summary}; the original consumer shows at least {stale_min} and 1"


@needs("a session that expired, and a commit of a member after it was replaced")
def no_write_of_an_ended_session(run: Run) -> CheckResult:
    """ZooKeeper takes nothing from a session that it has expired: a zombie writes in the session that follows."""
    late = shown(
        run.metrics["of_ended_sessions"], "ZooKeeper expired no session of a member, or its log was not traced"
    )
    stale = run.metrics["stale_writes"]
    if late:
        return NOT_EXPECTED, f"{counted_noun(late, 'commit')} stored after the end of the session they were sent in"
    if not stale:
        return UNKNOWN, "no zombie committed, so no commit could show in which session"
    return EXPECTED, f"{counted_noun(stale, 'commit')} from a non-owner, none in a session that had ended"


@needs("a delivered record")
def two_deliver_after_a_pause(run: Run) -> CheckResult:
    """A member that was replaced while it was paused delivers until it notices, and so does the new owner."""
    seconds = shown(run.metrics["two_delivering_partition_s"], "no delivery was traced")
    records = run.metrics["stale_deliveries"]
    summary = f"{seconds:g} partition-seconds, {counted_noun(records or 0, 'record')} delivered by a non-owner"
    return (EXPECTED if seconds > 0 or records else NOT_EXPECTED), summary


@needs("a takeover long enough before the heal of the cut", of_one_group=True)
def two_deliver_during_a_cut(run: Run) -> CheckResult:
    """The member that is cut off delivers throughout the cut, its successor from the takeover on."""
    longest = shown(run.metrics["two_delivering_longest_s"], "no delivery was traced")
    cut = first_change(run, "cut")
    if cut is None or cut.healed_ms is None or cut.takeover_ms is None:
        return UNKNOWN, "the trace does not show the cut from start to takeover and heal"
    possible_s = (cut.healed_ms - cut.takeover_ms) / 1000
    summary = (
        f"two members delivered one partition for {longest:.1f} s; the cut lasted {cut.healed_ms / 1000:.1f} s, "
        f"the takeover came after {cut.takeover_ms / 1000:.1f} s"
    )
    if possible_s <= 0:
        return UNKNOWN, f"{summary}; the cut was too short for two members to deliver"
    return (EXPECTED if longest >= TWO_DELIVERING_SHARE_MIN * possible_s else NOT_EXPECTED), summary


@needs("a change whose counts have a formula", of_one_group=True)
def counts_equal_the_model(run: Run) -> CheckResult:
    """Every count of every change equals its formula exactly.

    Under a coordinator, members with several streams have no formula: see comparison.pipeline.figures.predictions. Nor
    has a group that has refused members.
    """
    if run.refusals or (run.design in COORDINATED and int(run.parameters.get("streams", 1)) > 1):
        return None
    counted = [(change, count) for change in run.changes for count in change.counted]
    known = [(change, count) for change, count in counted if None not in (count.measured, count.model)]
    if not known:
        return UNKNOWN, NONE_PREDICTED
    wrong = [(change, count) for change, count in known if count.measured != count.model]
    if wrong:
        summary = ", ".join(f"{named(change)}: {_mismatch(count)}" for change, count in wrong)
        return NOT_EXPECTED, f"{summary} ({wrong[0][1].formula})"
    restarts = [change for change in run.changes if change.counted and change.change == RESTART]
    others = [change for change in run.changes if change.counted and change not in restarts]
    parts = [f"{named(change)}: {_all_of(change)}" for change in others]
    return EXPECTED, "; ".join([*parts, *([_together(restarts)] if restarts else [])])


def _together(changes: Sequence[Change]) -> str:
    """The summed counts of changes of one name; a count not predicted for all of them says for how many."""
    sums: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for count in (count for change in changes for count in change.counted):
        sums[count.what] += count.measured or 0
        times[count.what] += 1
    summary = ", ".join(
        f"{_with_noun(count, what)}{f' in {times[what]} of them' if times[what] < len(changes) else ''}"
        for what, count in sums.items()
    )
    return f"{len(changes)} {changes[0].change}s: {summary}"


def _all_of(change: Change) -> str:
    failed = f", {counted_noun(change.attempts_failed, 'attempt')} failed" if change.attempts_failed else ""
    return ", ".join(_with_noun(count.measured or 0, count.what) for count in change.counted) + failed


def _with_noun(count: int, what: str) -> str:
    """The count with its noun, which is given in the plural."""
    return f"{count} {what.removesuffix('s') if count == 1 else what}"


def _mismatch(count: Counted) -> str:
    return f"{_with_noun(count.measured or 0, count.what)} instead of {count.model}"


@needs("the counters of the run's own ZooKeeper servers")
def counters_equal_the_trace(run: Run) -> CheckResult:
    """The servers counted exactly the traced operations, except for those in progress at a reading.

    Foreign servers also count their other clients, such as an observer, so they are not checked.
    """
    if run.parameters.get("observed") in ("live", "given log"):
        return None
    if not run.counters:
        return UNKNOWN, "the servers' counters were not read"
    wrong = [c for c in run.counters if not c.traced_min <= c.server <= c.traced_max]
    if wrong:
        summary = ", ".join(
            f"{c.label} {c.namespace} {'reads' if c.reads else 'writes'}: {c.server} counted, {c.traced} traced"
            for c in wrong
        )
        return NOT_EXPECTED, summary
    reads, writes = (sum(c.server for c in run.counters if c.reads is kind) for kind in (True, False))
    apart = sum(abs(c.server - c.traced) for c in run.counters)
    under_way = f" except for {apart} in progress at a reading" if apart else ""
    return EXPECTED, f"{reads} reads and {writes} writes, as traced{under_way}"
