"""Windows: from the first measured change to the end of the group."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.silver.windows import fault_table
from tests.support.trace.traces import MS, e, staged


def change(at_ms: float, kind: str, name: str = "join", round_: int = 1, members: int = 3) -> dict:
    return e(at_ms, "runner", kind, change=name, round=round_, members=members)


def stage(at_ms: float, name: str) -> dict:
    return e(at_ms, "runner", "stage_entered", stage=name)


CASES = {
    "join": [
        stage(0, "warm"),
        change(5, "change_started", "form", 1, 2),
        change(9, "change_settled", "form", 1, 2),
        stage(10, "steady"),
        change(20, "change_started"),
        change(27, "change_settled"),
        stage(40, "final"),
        e(50, "runner", "run_ended", outcome="complete"),
    ],
    "never settled": [
        change(20, "change_started", "join", 1),
        change(30, "change_started", "join", 2),
        change(35, "change_settled", "join", 2),
    ],
    "freeze": [
        e(10, "runner", "fault_started", fault="freeze", target="m1"),
        e(50, "runner", "fault_started", fault="kill", target="m2"),
        e(51, "runner", "fault_ended", fault="kill", target="m2"),
        e(60, "runner", "fault_ended", fault="freeze", target="m1"),
        stage(90, "stop"),
    ],
    "kill": [
        change(10, "change_started", "crash"),
        e(11, "runner", "fault_started", fault="kill", target="m1"),
        e(12, "runner", "fault_ended", fault="kill", target="m1"),
        change(30, "change_settled", "crash"),
        stage(90, "stop"),
    ],
    "no runner": [e(3, "m1", "member_started", group="g"), e(8, "m1", "member_closed", group="g")],
}


@pytest.fixture(scope="module")
def spans() -> dict[str, list[Any]]:
    return staged(CASES, lambda _, context: [context.span])


@pytest.fixture(scope="module")
def changes() -> dict[str, list[Any]]:
    return staged(CASES, lambda _, context: context.changes)


@pytest.mark.parametrize(
    ("case", "start_ms", "end_ms"),
    [
        ("join", 10, 40),  # neither the forming of the group nor anything after the final reads is measured
        ("freeze", 10, 90),
        ("kill", 10, 90),
    ],
)
def test_span_lasts_from_the_first_measured_event_to_the_end(
    spans: dict[str, list[Any]], case: str, start_ms: int, end_ms: int
) -> None:
    assert [(row.start_ns, row.end_ns) for row in spans[case]] == [(start_ms * MS, end_ms * MS)]


def test_span_of_a_trace_without_a_runner_begins_with_its_first_member(spans: dict[str, list[Any]]) -> None:
    assert [(row.start_ns, row.end_ns) for row in spans["no runner"]] == [(3 * MS, 8 * MS + 1)]


def test_change_lasts_until_the_next_one_or_the_end(changes: dict[str, list[Any]]) -> None:
    assert [(r.window, r.change, r.round, r.members, r.from_ns, r.settled_ns, r.until_ns) for r in changes["join"]] == [
        (0, "form", 1, 2, 5 * MS, 9 * MS, 20 * MS),
        (1, "join", 1, 3, 20 * MS, 27 * MS, 40 * MS),
    ]


def test_change_that_never_settled_does_not_use_the_settling_of_the_next_one(changes: dict[str, list[Any]]) -> None:
    assert [(row.round, row.settled_ns) for row in changes["never settled"]] == [(1, None), (2, 35 * MS)]


def test_freeze_is_its_own_change(changes: dict[str, list[Any]]) -> None:
    (row,) = changes["freeze"]
    assert (row.change, row.members, row.from_ns, row.healed_ns, row.until_ns) == (
        "freeze",
        None,
        10 * MS,
        60 * MS,
        90 * MS,
    )


def test_fault_lasts_until_its_own_target_is_healed() -> None:
    trace = [
        e(10, "runner", "fault_started", fault="freeze", target="m1"),
        e(20, "runner", "fault_started", fault="freeze", target="m2"),
        e(30, "runner", "fault_ended", fault="freeze", target="m2"),
        e(50, "runner", "fault_ended", fault="freeze", target="m1"),
    ]
    (changes,) = staged({"two": trace}, lambda _, context: [context.changes]).values()
    assert [each.healed_ns for each in changes[0]] == [50 * MS, 30 * MS]


def test_kill_is_part_of_its_change(changes: dict[str, list[Any]]) -> None:
    assert [(row.change, row.settled_ns) for row in changes["kill"]] == [("crash", 30 * MS)]


def test_faults_of_several_targets_last_until_each_is_healed() -> None:
    trace = [
        e(10, "runner", "fault_started", fault="cut", target="m1"),
        e(12, "runner", "fault_started", fault="cut", target="m2"),
        e(60, "runner", "fault_ended", fault="cut", target="m1"),
        e(70, "runner", "fault_started", fault="cut", target="m1"),
    ]
    (faults,) = staged({"cut": trace}, lambda _, context: [context.faults]).values()
    assert [(each.target, each.from_ns, each.healed_ns) for each in faults[0]] == [
        ("m1", 10 * MS, 60 * MS),
        ("m2", 12 * MS, None),
        ("m1", 70 * MS, None),
    ]
    assert fault_table(faults[0]).column("healed_ns").to_pylist() == [60 * MS, None, None]
