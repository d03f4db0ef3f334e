"""A change's figures from the measured values: its target, what was kept, when nothing was delivered."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.figures.per_change import RunKind, change_of, delivery_of
from comparison.pipeline.figures.window_counts import WindowCounts
from comparison.pipeline.measured import (
    ChangeStarted,
    ChangeWindow,
    DeliveryBin,
    FaultStarted,
    KeptThrough,
    Measured,
    MemberPhase,
    PartitionOwners,
    ProcessEnded,
    Round,
    RunnerEvent,
    RunSpan,
    StageEntered,
)
from comparison.pipeline.measured_members import Refused, Silence
from comparison.results.run import Change

MS = 1_000_000
KIND = RunKind("cooperative", {"topics": 1, "partitions": 4, "rate": 40, "streams": 1})


def change_started(at_ms: int, detail: dict[str, Any] | None = None) -> ChangeStarted:
    return ChangeStarted(t_ns=at_ms * MS, detail=detail)


def fault_started(at_ms: int, target: str, **detail: Any) -> FaultStarted:
    return FaultStarted(t_ns=at_ms * MS, target=target, detail=detail or None)


def process_ended(at_ms: int, target: str) -> ProcessEnded:
    return ProcessEnded(t_ns=at_ms * MS, target=target)


def drained(at_ms: int) -> StageEntered:
    return StageEntered(t_ns=at_ms * MS, stage="drain")


def window(from_ms: int, until_ms: int, change: str = "join", members: int | None = 2) -> ChangeWindow:
    ends: dict[str, Any] = {"settled_ns": None, "healed_ns": None, "until_ns": until_ms * MS}
    return ChangeWindow(window=0, change=change, round=1, members=members, from_ns=from_ms * MS, **ends)


def phase(process: str, name: str, from_ms: int, member: str = "") -> MemberPhase:
    member = member or f"{process}-id"
    return MemberPhase(process=process, member=member, phase=name, from_ns=from_ms * MS, until_ns=(from_ms + 1) * MS)


def owner(partition: int, before: str | None, after: str | None) -> PartitionOwners:
    return PartitionOwners(topic="t", partition=partition, before=before, after=after)


def measured(**given: Any) -> Measured:
    return Measured(**{"span": RunSpan(start_ns=1_000 * MS, end_ns=9_000 * MS), **given})


def change(row: ChangeWindow, *, kind: RunKind = KIND, **given: Any) -> Change:
    return change_of(kind, measured(**given), row, WindowCounts(()))


@pytest.mark.parametrize(
    ("events", "target"),
    [
        ([change_started(2_000, {"target": "m3"}), process_ended(2_001, "m4")], "m3"),
        ([change_started(2_000), process_ended(2_001, "m4")], "m4"),
        ([fault_started(2_000, "m1")], "m1"),
        ([process_ended(1_999, "m1"), fault_started(3_000, "m2")], ""),
    ],
)
def test_target_is_the_runners_or_else_the_first_process_that_ended_or_had_a_fault(
    events: list[RunnerEvent], target: str
) -> None:
    assert change(window(2_000, 3_000), runner=events).target == target


@pytest.mark.parametrize(
    ("started", "asked_ms"),
    [
        (fault_started(2_000, "m1", for_ms=5_000), 5_000.0),
        (fault_started(2_000, "m1", processing_ms=11_000, max_poll_interval_ms=10_000), 11_000.0),
        (fault_started(2_000, "m1", ways="in"), None),
        (fault_started(2_500, "m1", for_ms=5_000), None),  # another fault, later in the window
    ],
)
def test_fault_says_how_long_it_was_to_last(started: FaultStarted, asked_ms: float | None) -> None:
    assert change(window(2_000, 9_000, members=None), runner=[started]).asked_ms == asked_ms


def test_rounds_of_a_change_are_those_that_began_in_its_window() -> None:
    rounds = [Round(1_500 * MS, 1_600 * MS), Round(2_000 * MS, 2_100 * MS), Round(2_900 * MS, 3_100 * MS)]
    assert change(window(2_000, 3_000), rounds=rounds).rounds == 2


def test_deliveries_of_kept_partitions_are_checked_in_long_rounds() -> None:
    rounds = [Round(2_000 * MS, 2_450 * MS), Round(2_500 * MS, 3_100 * MS), Round(3_200 * MS, None)]
    kept = {0: KeptThrough(kept=4, delivered=1), 1: KeptThrough(kept=3, delivered=2)}
    found = change(window(2_000, 4_000), rounds=rounds, kept=kept)
    assert (found.kept, found.kept_shown, found.kept_delivered) == (7, 3, 2)
    # With few records, only a longer round shows deliveries.
    rare = KIND._replace(parameters={**KIND.parameters, "rate": 4})
    assert change(window(2_000, 4_000), kind=rare, rounds=rounds, kept=kept).kept_shown == 0
    assert change(window(2_000, 4_000), rounds=rounds).kept is None


def polls(*bins: int | None) -> list[DeliveryBin]:
    return [DeliveryBin(bin=number, records=5) for number in bins]


@pytest.mark.parametrize(
    ("row", "stalled_s"),
    [
        (window(1_950, 3_000), 0.8),  # bins 10 to 19, of which 10 and 12 have records
        (window(1_000, 1_200), 0.2),
        (window(500, 1_200), None),  # began before anything is measured
        (window(2_500, 9_999), 0.6),  # no load from 3100 on
        (window(3_100, 4_000), None),
    ],
)
def test_time_without_deliveries_under_load(row: ChangeWindow, stalled_s: float | None) -> None:
    found = change(row, runner=[drained(3_100)], delivered=polls(None, 10, 12, 40))
    assert found.stalled_s == pytest.approx(stalled_s)
    assert change(row, runner=[drained(3_100)]).stalled_s is None


def test_delivery_is_reported_until_the_load_ends() -> None:
    delivery = delivery_of(measured(delivered=polls(0, 2, 7, None)))
    assert delivery is not None
    assert (delivery.from_ms, delivery.bin_ms, delivery.records) == (1_000.0, 100.0, [5, 0, 5, 0, 0, 0, 0, 5])
    whole = delivery_of(measured(delivered=polls(0, 2, 7), runner=[drained(1_400)]))
    assert whole is not None
    assert whole.records == [5, 0, 5, 0]
    assert delivery_of(measured(delivered=polls(None))) is None


def test_restarted_member_is_the_same_in_the_minimum_of_moves() -> None:
    owners = [
        owner(0, "old", "m2-id"),
        owner(1, "m1-id", "m1-id"),
        owner(2, "m1-id", "m1-id"),
        owner(3, "old", "m2-id"),
    ]
    phases = [phase("m1", "join", 1), phase("m2", "join", 1)]
    again = [*phases, phase("m2", "join", 0, "old")]
    row = window(2_000, 3_000)
    assert change(row, owners={0: owners}, phases=phases).moved_minimum == 2
    assert change(row, owners={0: owners}, phases=again).moved_minimum == 0
    assert change(window(2_000, 3_000, "restart"), owners={0: owners}, phases=phases).moved_minimum == 0
    # Two members in one process at the same time are two.
    shared = [phase("p", "join", 0, name) for name in ("old", "m1-id", "m2-id")]
    assert change(row, owners={0: owners}, phases=shared).moved_minimum == 2


def test_minimum_of_moves_is_that_of_the_members_that_the_group_took() -> None:
    """Two of three new members are refused: one partition for the third is enough."""
    owners = [owner(n, f"m{1 + n // 2}", f"m{1 + n // 2}" if n < 5 else "m4") for n in range(6)]
    about = {"group": "g", "api": "ConsumerGroupHeartbeat", "error": "GROUP_MAX_SIZE_REACHED"}
    full = [Refused(process=process, t_ns=2_100 * MS, **about) for process in ("m5", "m6")]
    row = window(2_000, 3_000, members=6)
    assert change(row, owners={0: owners}).moved_minimum == 3
    assert change(row, owners={0: owners}, refusals=full).moved_minimum == 1


@pytest.mark.parametrize(("leader", "generations"), [("m2", 2), ("m3", 1)])
def test_leader_that_crashed_is_the_last_one_that_computed_an_assignment(leader: str, generations: int) -> None:
    """m3 crashes; the leader before it had been m1."""
    owners = [owner(0, "m3-id", "m1-id"), owner(1, "m1-id", "m1-id"), owner(2, "m2-id", "m2-id")]
    found = change(
        window(2_000, 9_000, "crash"),
        kind=KIND._replace(design="delayed"),
        owners={0: owners},
        runner=[fault_started(2_000, "m3")],
        phases=[phase("m1", "decide", 1_100), phase(leader, "decide", 1_500), phase("m1", "decide", 5_000)],
    )
    assert {count.what: count.model for count in found.counted}["generations"] == generations


def test_nothing_is_predicted_in_scenarios_where_more_than_the_change_happens() -> None:
    assert change(window(2_000, 3_000)).counted
    assert (
        change(
            window(2_000, 3_000), kind=KIND._replace(parameters={**KIND.parameters, "counts_predicted": False})
        ).counted
        == []
    )


def test_change_followed_immediately_by_another_has_settled() -> None:
    assert change(window(2_000, 2_000, "slow", None)).converge_ms == 0.0
    assert change(window(2_000, 3_000)).converge_ms is None


@pytest.mark.parametrize(
    ("silences", "silent_ms"),
    [([], None), ([(2_500, 3_100), (2_900, 3_050)], 3_050.0), ([(1_999, 700)], None), ([(3_000, 700)], None)],
)
def test_the_shortest_silence_before_a_session_ended_in_the_window_is_its(
    silences: list[tuple[int, int]], silent_ms: float | None
) -> None:
    found = [Silence(t_ns=at_ms * MS, longest_ns=longest_ms * MS) for at_ms, longest_ms in silences]
    assert change(window(2_000, 3_000), silences=found).silent_ms == silent_ms


@pytest.mark.parametrize(("from_ms", "unowned_s"), [(500, None), (1_500, 0.0)])
def test_unowned_time_is_unknown_of_a_change_before_the_measured_stretch(from_ms: int, unowned_s: float | None) -> None:
    """So it is of the forming of a group, in which every partition is owned by nobody for a while."""
    found = change(window(from_ms, 2_000, "form"))
    assert (found.unowned_partition_s, found.unowned_longest_s) == (unowned_s, unowned_s)
