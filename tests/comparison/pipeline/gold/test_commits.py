"""Commits at the authority: sender, generation, movement of the offset, and which refusals count as fenced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from comparison.ownership.cover import TOLERANCE_ACROSS_BOOTS_NS
from comparison.pipeline.bronze.tables import Tables
from comparison.pipeline.gold.commits import Judged, final_offsets, judged
from comparison.pipeline.gold.run import measure
from comparison.pipeline.measured import CommitTotals
from comparison.pipeline.measured_offsets import FinalOffsets
from comparison.pipeline.silver.context import Context
from comparison.pipeline.silver.naming import naming_rows
from comparison.pipeline.silver.offsets import offset_rows
from tests.support.oracle.twin import measured_of
from tests.support.trace.traces import e, staged, tables, traced_run


def named(at_ms: float, owner: str) -> dict:
    return e(at_ms, "observer", "authority_named", group="g", p=0, owner=owner, epoch=1)


def cleared(at_ms: float) -> dict:
    return e(at_ms, "observer", "authority_cleared", group="g", p=0, owner="", epoch=1, reason="delete")


def written(at_ms: float, by: str, offset: int, epoch: int = -1) -> dict:
    return e(at_ms, "observer", "offset_written", group="g", p=0, offset=offset, by=by, epoch=epoch)


def refused(at_ms: float, by: str, error: str, epoch: int = 1) -> dict:
    return e(at_ms, "broker-1", "offset_refused", group="g", p=0, offset=1, by=by, epoch=epoch, error=error)


def group(at_ms: float, state: str, generation: int) -> dict:
    return e(at_ms, "broker-1", "group_changed", group="g", state=state, generation=generation, members=2, reason="")


def member(at_ms: float, what: str, name: str) -> dict:
    fields = {"reason": "session"} if what == "left" else {}
    return e(at_ms, "broker-1", f"group_member_{what}", group="g", id=name, **fields)


def advanced(at_ms: float, name: str, epoch: int) -> dict:
    return e(at_ms, "broker-1", "group_member_advanced", group="g", id=name, epoch=epoch)


def delivered(at_ms: float, by: str) -> dict:
    return e(at_ms, "m1", "records_delivered", p=0, first=0, last=4, member=by)


#: A trace, and for each commit or delivery: (by, owner, is stale, moved back by, is old, is fenced).
CASES: dict[str, tuple[list[dict], list[tuple]]] = {
    "a thread's consumer is the owner": (
        [named(1, "g_host-1-ab-0"), written(2, "g_host-1-ab", 7)],
        [("g_host-1-ab", "g_host-1-ab-0", False, None, False, False)],
    ),
    "a consumer whose name has the same prefix is not the owner": (
        [named(1, "g_host-1-ab-0"), written(2, "g_host-1", 7)],
        [("g_host-1", "g_host-1-ab-0", True, None, False, False)],
    ),
    "an 0.8 consumer's commit to Kafka names only its group": (
        [named(1, "g_host-1-ab-0"), written(2, "g", 7), named(3, "g_host-2-cd-0"), written(4, "g", 8)],
        [("g", "g_host-1-ab-0", False, None, False, False), ("g", "g_host-2-cd-0", False, None, False, False)],
    ),
    "the former owner's write is stale and moves the offset back": (
        [named(1, "a-0"), written(2, "a", 5), cleared(3), named(4, "b-0"), written(5, "b", 9), written(6, "a", 6)],
        [
            ("a", "a-0", False, None, False, False),
            ("b", "b-0", False, None, False, False),
            ("a", "b-0", True, 3, False, False),
        ],
    ),
    "a commit that names nobody is not stale": (
        [named(1, "a-0"), written(2, "", 7)],
        [("", "a-0", False, None, False, False)],
    ),
    "without an owner nothing is stale": (
        [named(1, "a-0"), written(2, "a", 5), cleared(3), written(4, "a", 4)],
        [("a", "a-0", False, None, False, False), ("a", None, False, 1, False, False)],
    ),
    "an old generation is accepted": (
        [group(1, "Stable", 3), written(2, "a", 5, 3), group(10, "Stable", 4), written(200, "a", 6, 3)],
        [("a", None, False, None, False, False), ("a", None, False, None, True, False)],
    ),
    "a commit in flight when the generation began is not old": (
        [group(1, "Stable", 3), group(10, "CompletingRebalance", 4), written(12, "a", 6, 3)],
        [("a", None, False, None, False, False)],
    ),
    "a commit without a generation is not old": (
        [group(1, "Stable", 3), written(200, "tool", 6, -1)],
        [("tool", None, False, None, False, False)],
    ),
    "an unknown member is fenced": (
        [member(1, "joined", "a"), group(2, "Stable", 1), member(3, "left", "a"), refused(4, "a", "UNKNOWN_MEMBER_ID")],
        [("a", None, False, None, False, True)],
    ),
    "an old generation is fenced": (
        [member(1, "joined", "a"), group(2, "Stable", 2), refused(4, "a", "ILLEGAL_GENERATION")],
        [("a", None, False, None, False, True)],
    ),
    "a member refused during a rebalance is not fenced": (
        [member(1, "joined", "a"), group(2, "CompletingRebalance", 2), refused(4, "a", "ILLEGAL_GENERATION")],
        [("a", None, False, None, False, False)],
    ),
    "a member may be behind its group's epoch": (
        [group(1, "Assigning", 1), advanced(1, "a", 1), group(10, "Assigning", 2), written(200, "a", 6, 1)],
        [("a", None, False, None, False, False)],
    ),
    "an epoch older than the member's is accepted": (
        [
            group(1, "Stable", 2),
            advanced(1, "a", 1),
            advanced(2, "b", 2),
            advanced(10, "a", 2),
            written(200, "a", 6, 1),
        ],
        [("a", None, False, None, True, False)],
    ),
    "a commit in flight when the member's epoch rose is not old": (
        [group(1, "Stable", 2), advanced(1, "a", 1), advanced(10, "a", 2), written(12, "a", 6, 1)],
        [("a", None, False, None, False, False)],
    ),
    "a member whose epoch rose is too late, and not fenced": (
        [
            group(1, "Stable", 2),
            member(1, "joined", "a"),
            advanced(2, "a", 1),
            advanced(3, "a", 2),
            refused(4, "a", "STALE_MEMBER_EPOCH", 1),
        ],
        [("a", None, False, None, False, False)],
    ),
    "a commit from before the member joined anew is fenced": (
        [
            member(1, "joined", "a"),
            advanced(1, "a", 1),
            member(2, "left", "a"),
            member(3, "joined", "a"),
            advanced(4, "a", 3),
            refused(5, "a", "STALE_MEMBER_EPOCH", 1),
        ],
        [("a", None, False, None, False, True)],
    ),
    "a member that was removed is fenced": (
        [
            member(1, "joined", "a"),
            advanced(1, "a", 1),
            group(1, "Stable", 1),
            member(2, "left", "a"),
            refused(3, "a", "UNKNOWN_MEMBER_ID", 1),
        ],
        [("a", None, False, None, False, True)],
    ),
    "a retriable refusal is not fencing": (
        [member(1, "joined", "a"), group(2, "CompletingRebalance", 2), refused(4, "a", "REBALANCE_IN_PROGRESS")],
        [("a", None, False, None, False, False)],
    ),
}


def _judged(tables: Tables, context: Context) -> Judged:
    return judged(offset_rows(tables, context), naming_rows(tables), context)


def _rows(tables: Tables, context: Context) -> list[tuple]:
    found = _judged(tables, context)
    columns = (found.is_stale, found.moved_back_by, found.is_old, found.is_fenced)
    return list(zip(found.rows["by"].to_pylist(), found.owner, *(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_commit_is_judged_by_the_state_at_its_time(case: str) -> None:
    trace, expected = CASES[case]
    assert staged({case: trace}, _rows)[case] == [(*row[:3], row[3] or 0, *row[4:]) for row in expected]


def test_table_of_commits_has_each_as_judged_and_no_start_of_delivery() -> None:
    trace, _ = CASES["the former owner's write is stale and moves the offset back"]
    started = e(8, "m1", "position_started", p=0, offset=5)
    cases = {"z": [*trace, refused(7, "x", "UNKNOWN_MEMBER_ID"), started]}
    (table,) = staged(cases, lambda *given: [_judged(*given).commits()])["z"]
    columns = ("by", "offset", "outcome", "owner", "is_stale", "moved_back_by", "is_fenced")
    assert list(zip(*(table[name].to_pylist() for name in columns), strict=True)) == [
        ("a", 5, "accepted", "a-0", False, 0, False),
        ("b", 9, "accepted", "b-0", False, 0, False),
        ("a", 6, "accepted", "b-0", True, 3, False),
        ("x", 1, "UNKNOWN_MEMBER_ID", "b-0", True, 0, True),
    ]


def test_deliveries_by_a_member_that_is_not_the_owner_are_counted() -> None:
    trace = [named(1, "a"), delivered(2, "a"), named(30, "b"), delivered(40, "a"), cleared(50), delivered(60, "a")]
    found, _ = measure(traced_run(), tables(trace))
    assert found.commits is not None
    assert found.commits.stale_delivered == 5


def test_commits_are_counted_by_run() -> None:
    trace, _ = CASES["the former owner's write is stale and moves the offset back"]
    cases = {"z": [*trace, refused(7, "x", "UNKNOWN_MEMBER_ID"), delivered(8, "a"), delivered(9, "b")]}
    found, _ = measure(traced_run(), tables(cases["z"]))
    assert found.commits == CommitTotals(
        written=3,
        stale_writes=1,
        moved_back=1,
        moved_back_records=3,
        old_accepted=0,
        refused=1,
        fenced=1,
        stale_delivered=5,
        started_behind=0,
        reset_behind=0,
        of_ended_sessions=None,
    )


@pytest.mark.parametrize(
    ("reason", "session", "at_ms", "late"),
    [
        ("session", "0x1", 11, 1),
        ("session", "0x1", 9, 0),
        ("session", "0x2", 11, 0),  # the session that follows
        ("leave", "0x1", 11, None),  # it left the group, not its session
    ],
)
def test_commits_of_a_session_that_has_ended_are_counted(
    reason: str, session: str, at_ms: float, late: int | None
) -> None:
    gone = e(10, "observer", "group_member_left", group="g", id="a", reason=reason, session="0x1")
    trace = [gone, written(at_ms, "a", 5) | {"session": session}, written(12, "b", 6)]
    found, _ = measure(traced_run(), tables(trace))
    assert found.commits is not None
    assert found.commits.of_ended_sessions == late


def test_delivery_that_starts_behind_an_accepted_commit_is_counted() -> None:
    def started(at_ms: float, offset: int) -> dict:
        return e(at_ms, "m1", "position_started", p=0, offset=offset, member="a")

    cases = {
        "at the commit": [written(1, "a", 5), started(900, 5)],
        "behind": [written(1, "a", 5), started(900, 4)],
        "read before the commit": [written(850, "a", 5), started(900, 4)],
        "nothing was committed": [started(900, 4)],
    }
    expected = {"at the commit": 0, "behind": 1, "read before the commit": 0, "nothing was committed": 0}
    assert _counted(cases, lambda of_case: of_case.starts_behind) == expected
    resets = {case: [_as_reset(event) for event in trace] for case, trace in cases.items()}
    assert _counted(resets, lambda of_case: of_case.resets_behind) == expected
    assert not any(_counted(resets, lambda of_case: of_case.starts_behind).values())


def _as_reset(event: dict) -> dict:
    return event | {"kind": "position_reset", "reset": "earliest"} if event["kind"] == "position_started" else event


def _counted(cases: dict[str, list[dict]], of: Callable[[Judged], Any]) -> dict[str, int]:
    rows = staged(cases, lambda tables, context: [int(of(_judged(tables, context)).sum())])
    return {case: behind for case, (behind,) in rows.items()}


def _finals(tables: Tables, context: Context) -> list[FinalOffsets]:
    found = final_offsets(offset_rows(tables, context))
    return [found] if found is not None else []


def test_final_offset_is_compared_with_the_last_accepted_commit_before_it() -> None:
    def wrote(at_ms: float, offset: int, partition: int = 0) -> dict:
        return e(at_ms, "observer", "offset_written", group="g", p=partition, offset=offset, by="m", epoch=1)

    def final(committed: int, end: int = 50, partition: int = 0) -> dict:
        return e(1_000, "runner", "final_offset", group="g", p=partition, committed=committed, end=end)

    cases = {
        "kept": [wrote(1, 10), wrote(2, 20), final(20)],
        "moved back before": [wrote(1, 20), wrote(2, 10), final(10)],
        "lost": [wrote(1, 10), wrote(2, 20), final(10)],
        "forgotten": [wrote(1, 10), final(-1)],
        "further": [wrote(1, 10), final(20)],
        "beyond": [wrote(1, 60), final(60)],
        "committed meanwhile": [wrote(1, 10), wrote(901, 20), final(10)],
        "committed long enough before": [wrote(1, 10), wrote(900, 20), final(10)],
        "committed afterwards": [wrote(1, 10), final(10), wrote(1_200, 20)],
        "nothing committed": [final(-1)],
        "one of two": [wrote(1, 10), wrote(1, 10, 1), final(10), final(5, partition=1)],
        "not read": [wrote(1, 10)],
    }
    rows = staged(cases, _finals)
    assert {case: [(row.read, row.behind, row.beyond) for row in found] for case, found in rows.items()} == {
        "kept": [(1, 0, 0)],
        "moved back before": [(1, 0, 0)],
        "lost": [(1, 1, 0)],
        "forgotten": [(1, 1, 0)],
        "further": [(1, 0, 0)],
        "beyond": [(1, 0, 1)],
        "committed meanwhile": [(1, 0, 0)],
        "committed long enough before": [(1, 1, 0)],
        "committed afterwards": [(1, 0, 0)],
        "nothing committed": [(1, 0, 0)],
        "one of two": [(2, 1, 0)],
        "not read": [],
    }


def _by(process: str, event: dict) -> dict:
    return {**event, "process": process, "role": "broker"}


#: Traces of two brokers in different boots, and (stale writes, commits that move back, old ones accepted).
ACROSS_BOOTS: dict[str, tuple[list[dict], tuple[int, int, int]]] = {
    "a hand-over whose clock is 20 ms ahead": (
        [_by("broker-1", named(1, "a")), _by("broker-2", named(180, "b")), _by("broker-1", written(190, "a", 5))],
        (0, 0, 0),
    ),
    "a hand-over before the tolerance": (
        [_by("broker-1", named(1, "a")), _by("broker-2", named(180, "b")), _by("broker-1", written(240, "a", 5))],
        (1, 0, 0),
    ),
    "a hand-over in the commit's own boot": (
        [_by("broker-1", named(1, "a")), _by("broker-1", named(180, "b")), _by("broker-1", written(190, "a", 5))],
        (1, 0, 0),
    ),
    "an owner who may be gone by then": (
        [_by("broker-1", named(1, "b")), _by("broker-2", cleared(230)), _by("broker-1", written(190, "a", 5))],
        (0, 0, 0),
    ),
    "commits of two brokers 5 ms apart": (
        [
            _by("broker-1", written(1, "a", 5)),
            _by("broker-1", written(100, "a", 9)),
            _by("broker-2", written(105, "b", 6)),
        ],
        (0, 0, 0),
    ),
    "commits of two brokers further apart, of which the later one is lower": (
        [_by("broker-1", written(100, "a", 9)), _by("broker-2", written(151, "b", 6))],
        (0, 1, 0),
    ),
    "commits of one broker 5 ms apart": (
        [_by("broker-1", written(100, "a", 9)), _by("broker-1", written(105, "b", 6)), _by("broker-2", named(1, "x"))],
        (2, 1, 0),
    ),
    "a generation that may have begun while the commit was in flight": (
        [
            _by("broker-1", group(1, "Stable", 3)),
            _by("broker-2", group(100, "Stable", 4)),
            _by("broker-1", written(245, "a", 6, 3)),
        ],
        (0, 0, 0),
    ),
    "a generation that began well before": (
        [
            _by("broker-1", group(1, "Stable", 3)),
            _by("broker-2", group(100, "Stable", 4)),
            _by("broker-1", written(251, "a", 6, 3)),
        ],
        (0, 0, 1),
    ),
}


@pytest.mark.parametrize("case", ACROSS_BOOTS)
def test_commit_across_boots_is_accused_only_of_what_is_certain(case: str) -> None:
    trace, expected = ACROSS_BOOTS[case]
    boots = {"broker-1": "one", "broker-2": "two"}
    found, _ = measure(traced_run(tolerance_ns=TOLERANCE_ACROSS_BOOTS_NS, boots=boots), tables(trace))
    assert found.commits is not None
    assert (found.commits.stale_writes, found.commits.moved_back, found.commits.old_accepted) == expected
    seen = measured_of(
        [{**event, "seq": seq} for seq, event in enumerate(trace)], tolerance_ns=TOLERANCE_ACROSS_BOOTS_NS, boots=boots
    )
    assert seen.commits == found.commits
