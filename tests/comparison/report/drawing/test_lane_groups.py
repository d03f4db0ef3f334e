"""What a fault did to its target is opposite what it did to the target elsewhere, whichever partitions those were."""

from __future__ import annotations

from typing import Any

from comparison.report.drawing.lane_groups import in_words, lane_groups, opposite
from comparison.report.view.model import Change, Fault, Holding, PartitionView, RunView
from tests.comparison.report.drawing.test_lanes import lane
from tests.comparison.report.sections.run_views import empty_view


def owned(name: str, *members: str) -> PartitionView:
    """Each of the members has it for a second."""
    named = tuple(Holding(1_000.0 * n, 1_000.0 * (n + 1), member) for n, member in enumerate(members))
    return lane(name=name, named=named)


def view(*lanes: PartitionView, **given: Any) -> RunView:
    places = {member: member.partition(".")[0] for each in lanes for member in (held.member for held in each.named)}
    return empty_view(partitions=lanes, members=tuple(places), places=places, **given)


def names(run: RunView) -> list[tuple[str, list[str]]]:
    return [(group.heading, [each.name for each in group.lanes]) for group in lane_groups(run)]


KILLED = (Fault("kill", "m3", 500.0, 500.0),)


def test_partitions_of_the_only_target_come_first_as_it_had_them_when_it_began() -> None:
    run = view(owned("t-0", "m1"), owned("t-1", "m3", "m1"), owned("t-2", "m1", "m3"), faults=KILLED)
    assert names(run) == [("m3’s", ["t-1"]), ("others", ["t-0", "t-2"])]
    assert in_words(lane_groups(run)) == "first the partitions that were m3’s when the kill began"


def test_several_targets_have_groups_by_what_each_had_when_the_first_of_it_began() -> None:
    restarts = (Change("restart", 500.0, "m1"), Change("restart 2", 1_500.0, "m2"))
    run = view(owned("t-0", "m1", "m2"), owned("t-1", "m2", "m1.2"), owned("t-2", "m4"), changes=restarts)
    assert names(run) == [("m1’s", ["t-0"]), ("m2’s", ["t-1"]), ("others", ["t-2"])]
    assert in_words(lane_groups(run)) == "by whose the partitions were when the first restart began"


def test_who_was_stopped_before_it_began_had_what_it_delivered_last() -> None:
    run = view(lane(name="t-0", delivering=(Holding(0.0, 400.0, "m3"),)), owned("t-1", "m3"), faults=KILLED)
    assert names(run) == [("m3’s", ["t-0", "t-1"]), ("others", [])]


def test_without_a_target_among_the_members_the_order_stays() -> None:
    broker = view(owned("t-0", "m3"), faults=(Fault("kill", "broker-1", 500.0, 500.0),))
    assert names(broker) == [("", ["t-0"])]
    assert in_words(lane_groups(broker)) == ""


def test_victims_are_opposite_each_other_though_they_are_others_and_have_more_partitions() -> None:
    here = view(owned("t-0", "m1"), owned("t-1", "m3"), owned("t-2", "m3"), faults=KILLED)
    there = view(owned("t-0", "m1"), owned("t-1", "m3"), faults=(Fault("kill", "m1", 500.0, 500.0),))
    heights = {id(each): 10 * n for n, each in enumerate((*here.partitions, *there.partitions), start=1)}
    left, right = opposite([lane_groups(here), lane_groups(there)], heights)
    assert [(group.heading, group.heights) for group in left] == [("m3’s", [40, 30]), ("others", [50])]
    assert [(group.heading, group.heights) for group in right] == [("m1’s", [40, 30]), ("others", [50])]
