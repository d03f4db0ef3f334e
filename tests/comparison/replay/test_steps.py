"""The steps of a run: what each says and changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from comparison.playground import messages
from comparison.playground.applying import changed
from comparison.playground.live.first import first_group
from comparison.replay.steps import DETAILS, FAULT, LAST_MS, LIMITS, REBALANCE, Event, Folded, folded
from tests.support.runs.seen_runs import eager_events, zookeeper_events
from tests.support.trace.traces import e

RUNS = {"zookeeper": zookeeper_events, "eager": eager_events}


def given(events: Sequence[dict[str, Any]]) -> list[Event]:
    ordered = sorted(events, key=lambda each: each["t_ns"])
    return [Event(each["t_ns"] / 1_000_000, each["role"], each) for each in ordered]


def fold(design: str, *more: dict[str, Any], detail: int = 0) -> Folded:
    return folded(
        first_group(design, 5), given([*RUNS[design](), *more]), DETAILS[detail], znodes=design == "zookeeper"
    )


def last(found: Folded) -> messages.Group:
    group = found.first
    for step in found.steps:
        group = changed(group, step.changes, step.at_ms, LIMITS)
    return group


def says(found: Folded, mark: str = "") -> list[tuple[int, str]]:
    return [(each.at_ms, each.says) for each in found.steps if each.says and (not mark or each.mark == mark)]


def test_events_are_steps_and_what_flows_is_not() -> None:
    found = fold("eager")
    assert says(found, FAULT) == [
        (500, "a change begins: form"), (2000, "cut begins: m1"), (8000, "cut ends: m1"),
    ]  # fmt: skip
    assert says(found, REBALANCE) == [(600, "m1 rebalances"), (4700, "m2 rebalances")]
    assert (4100, "m1 has lost its partitions") in says(found)
    assert all(not each.says or each.changes or each.at_ms for each in found.steps)
    assert [each.at_ms for each in found.steps] == sorted(each.at_ms for each in found.steps)
    assert found.length_ms == 10_500 + LAST_MS


def test_lanes_come_as_a_whole_and_are_in_no_step() -> None:
    found = fold("zookeeper")
    both = [each for each in found.first.intervals if each.kind is messages.IntervalKind.BOTH]
    assert [(each.partition, each.from_ms, each.to_ms) for each in both] == [("t-0", 4800, 8600)]
    assert not any(isinstance(change, messages.IntervalChanged) for each in found.steps for change in each.changes)


def test_znodes_are_those_of_the_observer() -> None:
    found = fold("zookeeper", e(450, "observer", "group_member_joined", group="g", id="g_host-1-aa"))
    assert [(each.path, each.data, each.version) for each in last(found).znodes] == [
        ("/consumers/g/ids/g_host-1-aa", "(not in the trace)", 0),
        ("/consumers/g/offsets/t/0", "9", 2),
        ("/consumers/g/owners/t/0", "g_host-2-bb-0", 0),
        ("/consumers/g/owners/t/1", "g_host-2-bb-0", 0),
    ]
    changes = [change for each in found.steps for change in each.changes]
    gone = [change.gone for change in changes if isinstance(change, messages.ZnodesChanged) and change.gone]
    assert gone == [("/consumers/g/owners/t/0",)]
    assert "no registrations" not in found.znodes
    assert "The trace has no registrations." in fold("zookeeper").znodes
    unseen = [each for each in zookeeper_events() if each["process"] != "observer"]
    foreign = folded(first_group("zookeeper", 5), given(unseen), DETAILS[0], znodes=True)
    assert foreign.znodes.startswith("The trace does not say what ZooKeeper held")
    assert fold("eager").znodes == ""


def test_less_detail_leaves_out_routine_and_requests_but_no_failure() -> None:
    where = {"version": 1, "correlation": 1, "broker": 1}
    more = [
        e(3000, "m1", "request_answered", api="Heartbeat", error="", **where),
        e(3100, "m1", "request_answered", api="JoinGroup", error="", **where),
        e(3200, "m1", "request_answered", api="Heartbeat", error="UNKNOWN_MEMBER_ID", **where),
        e(3300, "broker-1", "zk_op", op="getData", path="/brokers/ids/1", ok=True, step="cluster-view"),
        e(3400, "broker-1", "zk_notified", path="/consumers/g/ids", event="children"),
    ]
    told = [[text for at, text in says(fold("eager", *more, detail=n)) if 3000 <= at < 4000] for n in range(3)]
    assert told[0] == [
        "m1: Heartbeat is answered", "m1: JoinGroup is answered", "m1: Heartbeat is answered",
        "broker-1 is notified: children /consumers/g/ids",
    ]  # fmt: skip
    assert told[1] == told[0][1:]
    assert told[2] == told[0][2:3]


def test_the_end_of_the_run_is_counted_and_not_shown() -> None:
    stop = e(9_000, "runner", "stage_entered", stage="stop")
    found = fold("eager", stop)
    assert found.length_ms == 9_000 + LAST_MS
    assert not [text for at, text in says(found) if at > 9_000]
    assert last(found).counters.delivered == last(fold("eager")).counters.delivered


def test_what_contradicts_other_events_or_is_of_no_known_kind_costs_its_own_step_only() -> None:
    wrong = [
        e(3000, "runner", "change_started", change="leave", round=2, members=1, detail={"targets": 7}),
        {**e(3000, "m1", "zk_notified", path="/x", event="children"), "kind": "zk_waiting"},
        {**e(3000, "m1", "zk_notified", path="/x", event="children"), "kind": "rate_set"},
        {**e(3000, "m1", "zk_notified", path="/x", event="children"), "kind": "an-unheard-of-one"},
    ]
    found = fold("eager", *wrong)
    assert found.unfit == 1
    assert last(found).members == last(fold("eager")).members
