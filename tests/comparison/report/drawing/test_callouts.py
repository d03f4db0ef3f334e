"""Callouts: what a picture says of its run in words, and that no word of it covers another."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from comparison.report.drawing.callouts import MOST, Callout, callouts, placed
from comparison.report.view.model import Change, Holding, Phase, RunView, Stretch
from tests.comparison.report.drawing.test_lanes import SPLIT, lane, view

LEFT, RIGHT = 80, 986


def told(run: RunView) -> list[tuple[float, str, str]]:
    return [(each.at_ms, each.lane, each.says) for each in callouts(run)]


def group(*partitions, **given) -> RunView:
    members = ("m1", "m2", "m3")
    return view(*partitions, members=members, places={each: each for each in members}, faults=(), **given)


def moving(name: str, gap: Stretch, before: str, after: str):
    """A partition that its owner stops delivering at the gap's begin."""
    held = (Holding(0, gap.from_ms, before), Holding(gap.until_ms, 10_000, after))
    return lane(name, named=held, delivering=held, unclaimed=(gap,))


def steady(member: str, name: str):
    return lane(name, named=(Holding(0, 10_000, member),), delivering=(Holding(0, 10_000, member),))


def test_a_join_says_who_comes_who_hears_and_that_everything_stops():
    run = group(
        moving("t-0", Stretch(4_000, 6_000), "m1", "m1"),
        moving("t-1", Stretch(4_500, 6_500), "m2", "m3"),
        phases=(
            Phase(3_000, 6_500, "m3", "join"),
            Phase(3_900, 6_000, "m1", "stop"),
            Phase(4_400, 6_000, "m2", "stop"),
        ),
    )
    assert told(run) == [
        (3_000, "m3", "m3 joins"),
        (3_900, "m1", "m1 hears of m3"),
        (4_400, "m2", "m2 hears of it, too"),
        (4_500, "t-0", "everything has stopped"),
        (6_500, "t-1", "everything may run again"),
        (6_500, "t-1", "m3 delivers"),
    ]


def test_what_stops_one_after_another_or_in_part_is_not_everything():
    first, second = Stretch(4_000, 5_000), Stretch(5_500, 6_000)
    one_by_one = told(group(moving("t-0", first, "m1", "m1"), moving("t-1", second, "m2", "m2")))
    assert (4_000, "t-0", "everything stops, one after another") in one_by_one
    in_part = told(group(moving("t-0", first, "m1", "m1"), steady("m2", "t-1")))
    assert in_part == [(4_000, "t-0", "1 of 2 stop, the rest goes on")]


def test_a_member_that_is_dropped_delivers_on_and_does_not_know():
    hear = (Phase(4_100, 5_000, "m2", "detect"), Phase(8_600, 9_000, "m1", "detect"))
    assert told(view(SPLIT, steady("m2", "t-1"), phases=hear)) == [
        (4_000, "t-0", "ZooKeeper drops m1"),
        (4_100, "m2", "m2 hears of it"),
        (5_000, "t-0", "m1 does not know yet: two deliver"),
        (8_500, "m1", "m1 hears of it"),
    ]


def restarted(*named: Holding, unnamed: tuple[Stretch, ...] = ()):
    """m1 stops at 2 s and delivers again at 6 s; another restart begins at 9 s."""
    delivering = (Holding(0, 2_000, "m1"), Holding(6_000, 10_000, "m1.2"))
    return view(
        lane("t-0", delivering=delivering, named=named, unclaimed=(Stretch(2_000, 6_000),), unnamed=unnamed),
        lane("t-1", delivering=(Holding(0, 8_950, "m2"),), named=(Holding(0, 8_950, "m2"),)),
        members=("m1", "m1.2", "m2"),
        places={"m1": "m1", "m1.2": "m1", "m2": "m2"},
        faults=(),
        changes=(Change("restart", 2_000), Change("restart", 9_000)),
        phases=(Phase(5_000, 6_000, "m1.2", "join"), Phase(9_500, 9_900, "m2", "join")),
    )


def test_a_restart_says_what_is_kept_for_whom_and_nothing_of_the_next_one():
    assert told(restarted(Holding(0, 5_900, "m1"), Holding(5_900, 10_000, "m1.2"))) == [
        (2_000, "t-0", "1 of 2 stop, the rest goes on"),
        (2_000, "t-0", "m1 stops"),
        (4_000, "t-0", "kept for m1"),
        (5_000, "m1", "m1.2 joins"),
        (6_000, "t-0", "m1.2 delivers"),
    ]
    given_away = restarted(Holding(0, 3_000, "m1"), Holding(5_900, 10_000, "m1.2"), unnamed=(Stretch(3_000, 5_900),))
    assert (3_000, "t-0", "given to nobody yet") in told(given_away)


def test_nothing_is_said_of_a_run_in_which_nothing_happens():
    assert told(group(steady("m1", "t-0"))) == []


WORDS = st.text("abc", min_size=1, max_size=40)


@given(st.lists(st.tuples(WORDS, st.floats(LEFT, RIGHT)), max_size=MOST))
def test_no_callout_covers_another_or_its_line_or_leaves_the_picture(shown):
    found = placed([(Callout(x, "t-0", says, 0), x) for says, x in shown], LEFT, RIGHT)
    assert all(each.span[0] >= LEFT and each.span[1] <= RIGHT for each in found)
    for one, two in combinations(found, 2):
        (begin, end), (low, high) = one.span, two.span
        if one.row == two.row:
            assert end < low or high < begin
        outer, (low, high) = (one, two.span) if one.row > two.row else (two, one.span)
        assert one.row == two.row or not low < outer.x < high


def test_what_has_room_is_shown():
    shown = [(Callout(x, "t-0", "m1 hears of it", 0), x) for x in (100.0, 110.0, 120.0, 970.0, 980.0)]
    assert len(placed(shown, LEFT, RIGHT)) == len(shown)
