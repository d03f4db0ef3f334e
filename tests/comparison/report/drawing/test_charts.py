"""Charts below the lanes: what is drawn at which value, on one scale for all designs, and the same as rows."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.report.drawing.barrier import barrier
from comparison.report.drawing.chart import steps_of
from comparison.report.drawing.committed import committed
from comparison.report.drawing.layout import Block, Curve, Curves, Step
from comparison.report.drawing.palette import styles
from comparison.report.drawing.panel import Panel
from comparison.report.drawing.phase_bars import phase_bars
from comparison.report.drawing.records import STEPS_MIN, again, delivered, idle, lag
from comparison.report.drawing.scale import Scale, scales
from comparison.report.drawing.svg import painted
from comparison.report.view.model import Interval, Joined, Phase, Rebalance, Round, RunView
from tests.comparison.report.drawing.test_lanes import SPLIT, bars, commit, lane, view

SCALE = Scale(0, 0, 1_000)


def panels(*runs: RunView, marks_max: int = 1_000) -> list[Panel]:
    return [Panel(run, scale, styles(runs), marks_max) for run, scale in zip(runs, scales(runs), strict=True)]


def intervals(*records: int, again: int = 0, left: int | None = 0, lag: int | None = 0) -> tuple[Interval, ...]:
    return tuple(
        Interval(100 * n, 100 * n + 100, delivered=each, duplicates=again, undelivered=left, lag=lag)
        for n, each in enumerate(records)
    )


def values(curves: Curves, name: str) -> list[tuple[int, int, int]]:
    """(from, until, value) of each step of a curve."""
    (drawn,) = [each for each in curves.curves if each.name == name]
    return [(round(step.from_ms), round(step.until_ms), step.value) for step in drawn.steps]


@pytest.mark.parametrize(("classes", "d"), [("line", "M0 7h100v-2h200M400 10h50"), ("area", None)])
def test_curve_has_the_values_themselves_and_gaps(classes: str, d: str | None) -> None:
    steps = steps_of([Step(0, 50, 3), Step(50, 100, 3), Step(100, 300, 5), Step(400, 450, 0)], SCALE)
    assert path(Curve("x", classes, steps, 0)) == (d or "M0 10v-3h100v-2h200V10zM400 10h50V10z")


def test_curve_is_counted_from_its_base() -> None:
    assert path(Curve("x", "line", [Step(0, 100, 105)], 100)) == "M0 5h100"


def path(curve: Curve) -> str:
    """How a curve is drawn in a box for values up to 10."""
    block = Block("records", "", curves=[Curves("eager", 0, 44, 10, [curve], ())])
    ((_, (shape,)),) = painted(block, 1_000).curves
    return str(shape.attributes["d"])


def test_records_of_all_designs_are_on_one_scale_and_rushes_are_cut_off() -> None:
    runs = [view(SPLIT, course=intervals(*[10] * 50, 500)), view(SPLIT, design="eager", course=intervals(*[10] * 40))]
    chart = delivered(panels(*runs))
    assert chart is not None
    one, other = chart.block.curves
    assert (one.design, other.design, one.top, other.top) == ("zookeeper", "eager", 200, 200)
    assert values(one, "delivered a second") == [(0, 5_000, 100), (5_000, 5_100, 5_000)]
    assert chart.note.endswith("Higher values are cut off.")
    assert chart.headings == ["seconds", "zookeeper", "eager"]
    assert chart.rows[0] == ["-2 to -1.5", "100", "100"]
    assert chart.rows[-1] == ["3 to 3.5", "5,000", ""]


def test_page_that_draws_fewer_bars_has_fewer_steps_and_rows() -> None:
    run = view(SPLIT, course=intervals(*range(100)))
    for marks_max, steps, rows in ((1_000, 100, 20), (40, 34, 10)):
        chart = delivered(panels(run, marks_max=marks_max))
        assert chart is not None
        assert len(values(chart.block.curves[0], "delivered a second")) == pytest.approx(steps, abs=1)
        assert len(chart.rows) == rows
    assert steps <= STEPS_MIN


def test_group_stands_still_only_while_records_wait() -> None:
    waiting = intervals(5, *[0] * 8, 5, left=3)
    assert list(idle(waiting)) == [(100, 900)]
    assert list(idle(intervals(5, *[0] * 8, 5, left=0))) == []
    assert list(idle(intervals(5, *[0] * 3, 5, left=3))) == []  # nobody would notice
    assert list(idle(intervals(5, *[0] * 8, 5, *[0] * 8, left=None))) == [(100, 900)]  # unknown: not behind the last
    chart = delivered(panels(view(SPLIT, course=waiting)))
    assert chart is not None
    assert bars(chart.block)["idle"] == [(100, chart.block.rows[0].y, 800)]


def test_lag_has_what_waits_for_a_commit_and_what_for_delivery() -> None:
    chart = lag(panels(view(SPLIT, course=intervals(1, 1, left=4, lag=9))))
    assert chart is not None
    (curves,) = chart.block.curves
    assert (values(curves, "lag"), values(curves, "not delivered")) == ([(0, 200, 9)], [(0, 200, 4)])
    assert chart.rows == [["-2 to -1.9", "9; 4 not delivered"], ["-1.9 to -1.8", "9; 4 not delivered"]]


def test_nothing_is_drawn_where_nothing_is_to_be_seen() -> None:
    run = panels(view(SPLIT, course=intervals(1, 1, lag=None, left=None)))
    assert (lag(run), again(run), barrier(run), phase_bars(run)) == (None, None, None, None)
    run = panels(view(lane(commits=(commit(1_000),))))
    assert (delivered(run), lag(run), again(run), committed(run)) == (None, None, None, None)


def test_duplicates_are_drawn_for_every_design_with_their_sum() -> None:
    runs = [view(SPLIT, course=intervals(9, 9, again=3)), view(SPLIT, design="eager", course=intervals(9, 9))]
    chart = again(panels(*runs))
    assert chart is not None
    assert [name.text for name in chart.block.names] == [
        *("zookeeper", "0 to 30", "6 in all"),
        *("eager", "0 to 30", "0 in all"),
    ]
    assert chart.rows[0] == ["-2 to -1.9", "3", "0"]


def test_committed_offset_is_that_of_the_partition_that_moved_back_furthest() -> None:
    less = lane("t-1", commits=(commit(1_000, offset=50), commit(2_000, offset=49, moved_back_by=1)))
    eager = view(lane("t-0", commits=(commit(1_000, offset=7), commit(3_000, outcome="ILLEGAL_GENERATION"))))
    chart = committed(panels(view(SPLIT, less), eager))
    assert chart is not None
    assert chart.title == "Committed offsets of t-0"
    assert chart.note == "Partition t-0, the one that moved back furthest. It moved back in zookeeper."
    curves, _ = chart.block.curves
    assert values(curves, "committed") == [(1_000, 10_000, 5)]
    signs = [label.text for label in chart.block.labels]
    refused = "m1 refused: ILLEGAL_GENERATION"
    assert signs == ["▼", "m1 moved back by 21", "×", "×", refused]  # where there is no room, the sign alone
    assert chart.rows[1] == ["zookeeper", "6.40", "m1", "5", "accepted, moved back by 21, not from the owner"]


def joined(member: str, at_ms: float | None, waited_ms: float, **given: Any) -> Joined:
    return Joined(number=1, member=member, at_ms=at_ms, waited_ms=waited_ms, **{"is_waited_for": False, **given})


def waiting(last_ms: float | None) -> RunView:
    rounds = (Round(number=1, from_ms=1_000, until_ms=6_000, generation=4),)
    last = joined("m2", last_ms, 0, is_waited_for=True)
    return view(SPLIT, design="eager", rounds=rounds, joined=(joined("m1", 1_500, 3_500), last))


def test_barrier_has_who_waits_and_for_whom() -> None:
    chart = barrier(panels(waiting(5_000)))
    assert chart is not None
    assert {name: [bar[::2] for bar in found] for name, found in bars(chart.block).items()} == {
        "wait": [(1_500, 3_500)],
        "late": [(1_000, 4_000)],
    }
    assert chart.rows == [["eager", "4", "-1.00", "m2", "m1 3.50"]]


def test_barrier_says_who_never_joined() -> None:
    chart = barrier(panels(waiting(None)))
    assert chart is not None
    assert [bar[::2] for bar in bars(chart.block)["late"]] == [(1_000, 4_000)]  # until the others wait no more
    assert chart.rows[0][3] == "m2 (never joined)"


def test_bars_of_phases_begin_at_zero_and_have_one_scale() -> None:
    slow = (Rebalance(3_000, 5_000, "m1"), Rebalance(3_100, 3_200, "m2"), Rebalance(500, 900, "m1"))
    phases = (Phase(3_000, 3_500, "m1", "stop"), Phase(3_500, 5_000, "m1", "join"), Phase(3_150, 3_200, "m2", "stop"))
    rounds = (
        Round(number=1, from_ms=500, until_ms=900, generation=7),
        Round(number=2, from_ms=3_000, until_ms=5_000, generation=8),
    )
    runs = [
        view(SPLIT, rebalances=slow, phases=phases, rounds=rounds),
        view(SPLIT, design="eager", rebalances=(Rebalance(4_000, 4_500, "m1"),), rounds=rounds),
    ]
    chart = phase_bars(panels(*runs))
    assert chart is not None
    assert not chart.is_timed
    found = {name: [bar[::2] for bar in each] for name, each in bars(chart.block).items()}
    assert found == {"p-stop": [(0, 500), (50, 50)], "p-join": [(500, 1_500)]}
    assert [name.text for name in chart.block.names] == ["zookeeper", "8: m1", "8: m2", "eager", "8: m1"]
    assert chart.rows == [
        ["zookeeper", "8", "m1", "2,000", "stop 500, join 1,500"],
        ["zookeeper", "8", "m2", "100", "stop 50"],
        ["eager", "8", "m1", "500", ""],
    ]
    assert chart.length == 2_400


def test_longest_bars_are_kept_and_the_others_counted() -> None:
    rebalances = tuple(Rebalance(3_000, 3_000 + 10 * n, "m1") for n in range(1, 41))
    chart = phase_bars(panels(view(SPLIT, rebalances=rebalances), marks_max=100))
    assert chart is not None
    assert [row[3] for row in chart.rows] == ["360", "370", "380", "390", "400"]
    assert chart.remarks == ["Shorter ones left out: 35 in zookeeper."]
