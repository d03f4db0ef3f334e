"""A timeline of traces as values to be drawn: gaps, overlaps and commits, of each group, without an analysis."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.report.diagrams.timeline import timeline
from comparison.report.history.group_history import history_of, read_history
from comparison.report.view.model import Fault, Holding, Overlap, RunView, Stretch
from kernel.trace.reader import read_trace
from tests.support.runs.seen_runs import write_cut
from tests.support.trace.traces import e


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunView]:
    folder = tmp_path_factory.mktemp("cut")
    write_cut(folder)
    found = {}
    for design in ("zookeeper", "eager"):
        traces = sorted((folder / "split-brain" / design / "trace").glob("*.jsonl"))
        history = read_history([read_trace(path) for path in traces])
        found[design] = timeline(history, history.zero_ns, history.zero_ns + 10 * 10**9)
    return found


def test_two_deliver_where_both_poll_however_long_both_believe_it(views: dict[str, RunView]) -> None:
    lane, _ = views["zookeeper"].partitions
    assert lane.delivering == (Holding(1_000, 8_500, "m1"), Holding(5_000, 9_500, "m2"))
    assert lane.overlaps == (Overlap(5_000, 8_500, ("m1", "m2")),)
    assert views["eager"].partitions[0].overlaps == ()


def test_stretches_between_owners_are_gaps(views: dict[str, RunView]) -> None:
    assert views["zookeeper"].partitions[0].unnamed == (Stretch(4_500, 4_800),)
    assert views["eager"].partitions[0].unclaimed == (Stretch(4_100, 4_800),)


def test_commits_are_as_answered(views: dict[str, RunView]) -> None:
    back = views["zookeeper"].partitions[0].commits[-1]
    assert (back.member, back.is_accepted, back.moved_back_by, back.is_stale) == ("m1", True, 21, False)
    refused = views["eager"].partitions[0].commits[-1]
    assert (refused.member, refused.outcome, refused.moved_back_by) == ("m1", "UNKNOWN_MEMBER_ID", 0)


def test_fault_has_its_target_and_its_end(views: dict[str, RunView]) -> None:
    (fault,) = views["eager"].faults
    assert (fault.fault, fault.target, fault.from_ms) == ("cut", "m1", 2_000)
    assert fault.healed_ms == pytest.approx(8_000, abs=0.01)
    assert isinstance(fault, Fault)
    assert views["eager"].authority == "the coordinator"


def _joined(at_ms: float, process: str, group: str) -> list[dict[str, Any]]:
    who = {"member": process, "stream": 0}
    return [
        e(at_ms, process, "member_started", group=group, **who),
        e(at_ms, process, "rebalance_started", trigger="join", **who),
        e(at_ms + 1, process, "partitions_assigned", t="t0", **who),
        *(e(at_ms + 2 + at, process, "records_delivered", p=0, first=at, last=at, **who) for at in (0, 500, 900)),
    ]


def _written(at_ms: float, group: str, offset: int) -> dict[str, Any]:
    return e(at_ms, "broker-1", "offset_written", group=group, p=0, offset=offset, by="", epoch=1)


def test_two_groups_on_one_topic_have_a_lane_each() -> None:
    commits = [_written(2_000, "g", 9), _written(2_010, "h", 4)]
    events = [*_joined(0, "m1", "g"), *_joined(100, "n1", "h"), *commits]
    history = history_of(tuple(sorted(events, key=lambda event: event["ns"])), "eager")
    lanes = timeline(history, 0, 3 * 10**9).partitions
    assert [(lane.name, {each.member for each in lane.delivering}, lane.overlaps) for lane in lanes] == [
        ("g/t-0", {"m1"}, ()),
        ("h/t-0", {"n1"}, ()),
    ]
    assert [[each.moved_back_by for each in lane.commits] for lane in lanes] == [[0], [0]]


def test_a_frozen_member_that_still_believes_delivers_nothing() -> None:
    events = [*_joined(0, "m1", "g"), e(1_000, "runner", "fault_started", fault="freeze", target="m1")]
    events += [*_joined(3_000, "m2", "g"), e(9_000, "runner", "fault_ended", fault="freeze", target="m1")]
    (lane,) = timeline(history_of(tuple(events), "eager"), 0, 9 * 10**9).partitions
    assert [(each.member, each.until_ms) for each in lane.delivering] == [("m1", 902), ("m2", 3_902)]
    assert lane.overlaps == lane.unclaimed == ()


@pytest.mark.parametrize(("design", "numbered_by"), [("eager", "generation"), ("consumer", "epoch")])
def test_rebalances_are_numbered_as_the_design_calls_it(design: str, numbered_by: str) -> None:
    view = timeline(history_of(tuple(_joined(0, "m1", "g")), design), 0, 3 * 10**9)
    assert view.numbered_by == numbered_by
