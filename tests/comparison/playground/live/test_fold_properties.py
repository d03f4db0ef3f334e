"""Whatever happens in a group, in any order: the page that applies all changes has one consistent picture."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from comparison.playground import messages
from tests.comparison.playground.live.played_events import Scene

PROCESSES = ("m1", "m2", "m3")
NUMBERS = (0, 1, 2)
PLACES = st.sampled_from(PROCESSES)

ACTS = st.one_of(
    st.tuples(st.just("owns"), PLACES, st.sets(st.sampled_from(NUMBERS))),
    st.tuples(st.sampled_from(["freeze", "thaw", "cut", "heal", "kill", "start"]), PLACES),
    st.tuples(st.just("named"), PLACES, st.sampled_from(NUMBERS)),
    st.tuples(st.just("delivered"), PLACES, st.sampled_from(NUMBERS), st.integers(0, 20)),
    st.tuples(st.just("committed"), PLACES, st.sampled_from(NUMBERS), st.integers(0, 20)),
)
#: Each act, the time before it, and whether the page is brought up to date after it.
PLAYS = st.lists(st.tuples(ACTS, st.integers(0, 900), st.booleans()), max_size=40)


def played(plays: list[tuple[tuple[Any, ...], int, bool]], *, drained: bool = True) -> Scene:
    scene = Scene("zookeeper")
    for process in PROCESSES:
        scene.member(process)
    for (what, process, *rest), after_ms, drains in plays:
        scene.at(scene.now_ms + after_ms)
        match what:
            case "owns":
                scene.owns(process, *sorted(rest[0]))
            case "freeze" | "cut":
                scene.fault(what, process)
            case "thaw" | "heal":
                scene.healed("freeze" if what == "thaw" else "cut", process)
            case "kill":
                scene.ended(process, "kill")
            case "start":
                scene.event("process_started", target=process, child_pid=1)
            case "named":
                scene.named(f"{process}-id-0", *rest)
            case "delivered":
                scene.delivered(process, rest[0], rest[1], rest[1] + 3)
            case "committed":
                scene.committed(process, *rest)
        if drains and drained:
            scene.drain()
    scene.drain()
    return scene


@given(PLAYS)
def test_how_often_the_page_is_brought_up_to_date_changes_nothing_but_sentences(plays) -> None:
    often, once = played(plays), played(plays, drained=False)
    for name in ("members", "partitions", "counters", "intervals", "waiting", "rate"):
        assert getattr(often.group, name) == getattr(once.group, name)


@given(PLAYS)
def test_open_lanes_are_those_who_deliver_and_are_named(plays) -> None:
    group = played(plays).group
    open_ = [each for each in group.intervals if each.to_ms is None]
    delivering = {(each.partition, each.member) for each in open_ if each.kind is messages.IntervalKind.DELIVERING}
    named = {(each.partition, each.member) for each in open_ if each.kind is messages.IntervalKind.NAMED}
    assert delivering == {(each.name, member) for each in group.partitions for member in each.deliverers}
    assert named == {(each.name, each.owner) for each in group.partitions if each.owner}


@given(PLAYS)
def test_lanes_of_one_member_and_partition_never_overlap(plays) -> None:
    lanes: dict[object, list[messages.Interval]] = {}
    for each in played(plays).group.intervals:
        lanes.setdefault((each.kind, each.member, each.partition, each.label), []).append(each)
    for intervals in lanes.values():
        for before, after in pairwise(intervals):
            assert before.to_ms is not None
            assert before.from_ms <= before.to_ms <= after.from_ms


@given(PLAYS)
def test_who_is_frozen_or_ended_delivers_nothing(plays) -> None:
    group = played(plays).group
    silent = {
        each.name for each in group.members if each.state in (messages.MemberState.FROZEN, messages.MemberState.ENDED)
    }
    assert not silent.intersection(member for each in group.partitions for member in each.deliverers)
    frozen = {each.name for each in group.members if each.state is messages.MemberState.FROZEN}
    assert {each.frozen for each in group.partitions} <= {"", *frozen}
    nobody = {
        (each.partition, each.member)
        for each in group.intervals
        if each.to_ms is None and each.kind is messages.IntervalKind.NOBODY
    }
    assert nobody >= {(each.name, each.frozen) for each in group.partitions if each.frozen}


@given(PLAYS)
def test_counters_never_fall_and_sentences_come_in_the_order_of_their_numbers(plays) -> None:
    scene = played(plays).later()
    counters = scene.group.counters
    assert all(getattr(counters, name) >= 0 for name in counters.__struct_fields__)
    ids = [each.id for each in scene.group.feed]
    assert len(set(ids)) == len(ids)
