"""Lanes as blocks: what is drawn where, on one axis, with as many distinct members as there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from comparison.playground.live.lanes import style_of
from comparison.report.drawing.course import course, phases
from comparison.report.drawing.figure import figure
from comparison.report.drawing.lanes import partition_lanes
from comparison.report.drawing.layout import DELIVERS, NAMED, Area, Bars, Block, Label, Row, Strip, packed
from comparison.report.drawing.member_lanes import member_lanes
from comparison.report.drawing.palette import COLOURS, PATTERNS, style, styles
from comparison.report.drawing.panel import Panel
from comparison.report.drawing.scale import Scale, scales
from comparison.report.drawing.svg import painted
from comparison.report.view.model import (
    Change,
    Commit,
    Fault,
    Holding,
    Overlap,
    PartitionView,
    Phase,
    Round,
    RunView,
    Stretch,
)
from comparison.report.view.naming import named


def commit(at_ms: float, **given: Any) -> Commit:
    usual = {"member": "m1", "offset": 5, "outcome": "accepted", "is_stale": False, "moved_back_by": 0}
    return Commit(at_ms=at_ms, **{**usual, **given})


def lane(name: str = "t-0", **given: Any) -> PartitionView:
    empty: dict[str, Any] = dict.fromkeys(("named", "delivering", "overlaps", "unnamed", "unclaimed", "commits"), ())
    return PartitionView(name=name, **{**empty, **given})


def view(*partitions: PartitionView, **given: Any) -> RunView:
    """A run of 10 s with a cut from 2 s to 8 s."""
    usual: dict[str, Any] = {
        "scenario": "split-brain",
        "design": "zookeeper",
        "seed": 1,
        "authority": "ZooKeeper",
        "members": ("m1", "m2"),
        "places": {"m1": "m1", "m2": "m2"},
        "full_names": {},
        "partitions": partitions,
        "phases": (),
        "rounds": (),
        "faults": (Fault("cut", "m1", 2_000, 8_000),),
        "changes": (),
        "began_ms": 0,
        "ended_ms": 10_000,
        "left_out": {},
    }
    return RunView(**{**usual, **given})


SPLIT = lane(
    named=(Holding(0, 4_000, "m1"), Holding(4_500, 10_000, "m2")),
    delivering=(Holding(0, 8_500, "m1"), Holding(5_000, 10_000, "m2")),
    overlaps=(Overlap(5_000, 8_500, ("m1", "m2")),),
    unnamed=(Stretch(4_000, 4_500),),
    commits=(
        commit(1_000),
        commit(8_400, is_stale=True, moved_back_by=21),
        commit(9_000, outcome="ILLEGAL_GENERATION"),
    ),
)


def panel(run: RunView, marks_max: int = 1_000) -> Panel:
    (scale,) = scales([run])
    return Panel(run, scale, styles([run]), marks_max)


def hints(found: Iterable[Area | Label | Strip]) -> list[str]:
    return [each.hint for each in found if each.hint]


def bars(block: Block) -> dict[str, list[tuple[int, int, int]]]:
    """By class: (from, y, length) of each bar."""
    return {
        classes: [(bar.from_, bar.row.y, bar.until - bar.from_) for bar in found]
        for classes, found in block.by_class().items()
    }


def test_lane_has_whom_the_authority_names_above_and_who_delivers_below() -> None:
    block, joined = partition_lanes(panel(view(SPLIT)))
    above, *below = [row for row in block.rows if row.what in (NAMED, DELIVERS)]
    assert joined == 0
    assert [row.y > above.y for row in below] == [True, True]  # two deliver at once, one below the other
    of_m1, of_m2 = bars(block).values()
    assert of_m1 == [(0, above.y, 4_000), (0, below[0].y, 8_500)]
    assert of_m2 == [(4_500, above.y, 5_500), (5_000, below[1].y, 5_000)]


def test_overlap_is_labelled_with_both_members_and_described_for_screen_readers() -> None:
    block, _ = partition_lanes(panel(view(SPLIT)))
    assert "two deliver: m1 + m2" in [shape.text for shape in painted(block, 10_000).over]
    assert "t-0: m1 + m2 both deliver for 3.50 s" in hints(block.overlaps)
    assert "1 overlap of two members delivering" in block.title


def test_overlap_too_short_for_its_label_has_it_beside() -> None:
    short = lane(delivering=SPLIT.delivering, overlaps=(Overlap(5_000, 5_050, ("m1", "m2")),))
    block, _ = partition_lanes(panel(view(short)))
    (label,) = [shape for shape in painted(block, 10_000).over if shape.text]
    assert (label.text, label.attributes["class"], label.attributes["x"]) == ("m1 + m2", "bo", "50.5%")


def test_unowned_stretch_is_hatched_and_a_short_one_too() -> None:
    short = lane(named=(Holding(0, 4_000, "m1"),), unnamed=(Stretch(4_000, 4_500), Stretch(6_000, 6_010)))
    block, _ = partition_lanes(panel(view(short)))
    assert "named by nobody for 0.50 s" in hints(block.behind)
    assert bars(block)["gapped"] == [(6_000, block.rows[0].y, 10)]


def test_commits_have_different_signs() -> None:
    block, _ = partition_lanes(panel(view(SPLIT)))
    assert {name: len(paths) for name, paths in block.ticks.items()} == {"ok": 1, "stale": 1}
    signs = {label.text: label.hint for label in block.labels}
    assert signs == {"▼": "m1 commits 5, moved back by 21", "×": "m1 commits 5, refused: ILLEGAL_GENERATION"}


def test_fault_has_a_band_a_begin_and_a_heal() -> None:
    block = course(panel(view(SPLIT, changes=(Change("join", 3_000),))))
    assert hints(block.behind) == ["cut m1", "healed", "cut m1", "join"]
    assert [label.text for label in block.labels] == ["cut m1", "join", "heal"]
    band = next(shape for shape in painted(block, 10_000).under if shape.attributes["class"] == "band")
    assert (band.attributes["x"], band.attributes["width"]) == ("20%", "60%")


def test_kill_is_a_moment_without_a_heal() -> None:
    block = course(panel(view(SPLIT, faults=(Fault("kill", "m1", 2_000, 2_010),))))
    assert [label.text for label in block.labels] == ["kill m1"]


@pytest.mark.parametrize(("generation", "name", "step"), [(7, "generation", "7"), (None, "rebalances", "1")])
def test_rebalances_are_steps_of_the_generation(generation: int | None, name: str, step: str) -> None:
    rounds = (Round(number=1, from_ms=100, until_ms=300, generation=generation),)
    block = course(panel(view(SPLIT, rounds=rounds)))
    assert name in [each.text for each in block.names]
    assert step in [label.text for label in block.labels]
    assert bars(block) == {"round": [(100, block.rows[0].y, 200)]}


def test_phases_have_a_row_for_each_member_also_after_a_restart() -> None:
    run = view(
        members=("m1", "m1.2"),
        places={"m1": "m1", "m1.2": "m1"},
        phases=(Phase(0, 100, "m1", "join"), Phase(5_000, 5_100, "m1.2", "join")),
    )
    block, _ = phases(panel(run))
    assert [each.text for each in block.names] == ["m1"]
    assert [x for x, _, _ in bars(block)["p-join"]] == [0, 5_000]


def test_lanes_of_members_name_the_partitions_of_each() -> None:
    both = lane("t-1", named=(Holding(0, 10_000, "m1"),))
    block, _ = member_lanes(panel(view(SPLIT, both)))
    of_m1 = [bar.label for bar in block.bars if bar.row.lane == "m1"]
    assert of_m1 == ["0-1", "1", "0"]  # m1 is named for both, then for one, and delivers the other
    assert [each.text for each in block.names] == ["m1", "m2"]


@pytest.mark.parametrize(
    ("partitions", "text"),
    [(["t-0", "t-1", "t-2", "t-7"], "0-2, 7"), (["t-10", "t-9"], "9-10"), (["t-3"], "3"), ([], "")],
)
def test_partitions_are_named_in_ranges(partitions: list[str], text: str) -> None:
    assert named(partitions, short=True) == text


def test_partitions_of_several_topics_are_named_with_them() -> None:
    assert named(["a-1", "b-c-0", "b-c-1"], short=False) == "a 1; b-c 0-1"


def test_designs_are_aligned_at_their_first_change() -> None:
    one, other = view(SPLIT), view(SPLIT, faults=(Fault("cut", "m1", 3_000, 9_000),))
    axes = scales([one, other])
    assert axes[0].length_ms == axes[1].length_ms == 11_000
    assert axes[0].unit(2_000) == axes[1].unit(3_000) == 3_000
    assert axes[0].seconds(2_500) == 0.5
    assert "0" in [text for _, text in axes[0].ticks()]
    assert len(axes[0].ticks()) <= 12


def test_ticks_are_round_seconds() -> None:
    assert Scale(0, -1_500, 8_000).ticks() == [(500 + 1_000 * n, str(n - 1)) for n in range(10)]
    assert [text for _, text in Scale(0, -30, 60).ticks()] == [f"{n / 100:.2f}" for n in range(-3, 7)]


def test_there_are_as_many_distinct_styles_as_members_of_the_largest_scenario() -> None:
    assert len({style(number) for number in range(len(COLOURS) * PATTERNS)}) == 24


def test_member_has_the_same_style_in_all_designs_and_lives() -> None:
    one = view(members=("m1", "m1.2", "m2"), places={"m1": "m1", "m1.2": "m1", "m2": "m2"})
    other = view(members=("m2",), places={"m2": "m2"})
    classes = styles([one, other])
    assert classes["m1"] == classes["m1.2"] != classes["m2"] == styles([other, one])["m2"]
    assert styles([other])["m2"] == style_of("m2") == style(1), "as in a replay, where m1 has a lane, too"
    parted = styles([view(members=("m2", "m2-0", "m2-1"), places={name: name for name in ("m2", "m2-0", "m2-1")})])
    assert [*parted.values()] == [style(1), style(1, 1), style(1, 2)], "one colour, three patterns"
    foreign = view(members=("b", "m2"), places={"b": "b", "m2": "m2"})
    assert set(styles([foreign]).values()) == {style(0), style(1)}


def test_too_many_bars_are_joined_in_grey_and_counted() -> None:
    scale = Scale(0, 0, 10_000)
    found, block, row = Bars(scale), Block("b", ""), Row(0, 9, "t-0", NAMED)
    found.add(0, 5_000, row, "k0", "m1")
    for start in range(6_000, 6_100, 10):
        found.add(start, start + 9, row, "k1", "m2")
    assert found.laid_into(block, 1) == 10
    assert bars(block) == {"k0": [(0, 0, 5_000)], "many": [(6_000, 0, 99)]}
    drawn = figure(view(lane(named=tuple(Holding(n, n + 5, "m1") for n in range(0, 9_000, 10)))), scale, {}, 10)
    assert drawn.remarks == ["890 of the shortest stretches are drawn together in grey"]


def test_table_says_the_same_as_the_lanes() -> None:
    run = view(SPLIT)
    (row,) = figure(run, scales([run])[0], styles([run]), 1_000).rows
    assert row == [
        "t-0",
        "m1 -2.00…2.00; m2 2.50…8.00",
        "m1 -2.00…6.50; m2 3.00…8.00",
        "m1 and m2 3.00…6.50",
        "",
        "2 accepted; at 6.40 m1 commits 5: moved back by 21; at 7.00 m1 commits 5: refused, ILLEGAL_GENERATION",
    ]


def test_stretches_at_the_same_time_are_below_each_other_up_to_the_last_row() -> None:
    assert packed([(0, 5), (1, 3), (3, 4), (5, 6)], 3) == [0, 1, 1, 0]
    assert packed([(0, 5)] * 4, 2) == [0, 1, 1, 1]


def test_ticks_of_commits_are_apart_where_few_bars_are_drawn() -> None:
    some = lane(commits=(commit(1_000), commit(1_020), commit(1_030, is_stale=True), commit(1_100)))
    for marks_max, ticks in ((1_000, 3), (50, 2)):
        block, _ = partition_lanes(panel(view(some), marks_max))
        assert (len(block.ticks["ok"]), len(block.ticks["stale"])) == (ticks, 1)
