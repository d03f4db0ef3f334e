"""Live lanes: rows of those who deliver at once, and what lies between those who have a partition."""

from __future__ import annotations

import pytest

from comparison.playground.live.lanes import ROWS_MAX, Lanes
from comparison.playground.messages import Interval, IntervalKind


def laid(*moves: tuple[str, int, int | None]) -> list[Interval]:
    """Of one partition: each member, and from when until when it delivers."""
    lanes = Lanes()
    edges = [(at_ms, 1, member) for member, at_ms, _ in moves] + [
        (at, 0, who) for who, _, at in moves if at is not None
    ]
    for at_ms, opens, member in sorted(edges):
        (lanes.open if opens else lanes.close)(IntervalKind.DELIVERING, member, at_ms, partition="t-0")
    return list(lanes.drained())


@pytest.mark.parametrize(
    ("moves", "between"),
    [
        ((), []),
        ((("m1", 0, None),), []),
        ((("m1", 0, 5), ("m2", 7, 9)), [("nobody", 5, 7, ""), ("nobody", 9, None, "")]),
        ((("m10", 0, 8), ("m2", 3, None)), [("both", 3, 8, "m2 + m10")]),
        (
            (("m1", 0, 9), ("m2", 2, 7), ("m3", 4, 7)),
            [
                ("both", 2, 4, "m1 + m2"),
                ("both", 4, 7, "m1 + m2 + m3"),
                ("both", 7, 7, "m1 + m3"),
                ("nobody", 9, None, ""),
            ],
        ),
    ],
)
def test_between_those_who_deliver_lie_nobody_and_several(
    moves: tuple[tuple[str, int, int | None], ...], between: list[tuple[str, int, int | None, str]]
) -> None:
    others = [each for each in laid(*moves) if each.kind is not IntervalKind.DELIVERING]
    assert [(each.kind, each.from_ms, each.to_ms, each.member) for each in others] == between


def test_those_who_deliver_at_once_are_below_each_other_up_to_the_last_row() -> None:
    moves = (("m1", 0, 5), ("m2", 1, 3), ("m3", 3, 9), ("m4", 4, 9), ("m5", 4, 9), ("m6", 6, 9))
    rows = {each.member: each.row for each in laid(*moves) if each.kind is IntervalKind.DELIVERING}
    assert rows == {"m1": 0, "m2": 1, "m3": 1, "m4": 2, "m5": ROWS_MAX - 1, "m6": 0}


def test_named_lane_is_empty_from_the_moment_on_when_nobody_is_named_any_more() -> None:
    lanes = Lanes()
    lanes.open(IntervalKind.NAMED, "m1", 0, partition="t-0")
    lanes.close(IntervalKind.NAMED, "m1", 4, partition="t-0")
    lanes.open(IntervalKind.NAMED, "m2", 6, partition="t-0")
    (unnamed,) = [each for each in lanes.drained() if each.kind is IntervalKind.UNNAMED]
    assert (unnamed.from_ms, unnamed.to_ms) == (4, 6)
