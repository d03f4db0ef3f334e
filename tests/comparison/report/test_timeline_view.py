"""A timeline of traces as values to be drawn: gaps, overlaps and commits, without an analysis."""

from __future__ import annotations

import pytest

from comparison.report.group_history import read_history
from comparison.report.timeline import timeline
from comparison.report.timeline_view import timeline_view
from comparison.report.view.model import Fault, Holding, Overlap, RunView, Stretch
from kernel.trace.reader import read_trace
from tests.support.runs.seen_runs import write_cut


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunView]:
    folder = tmp_path_factory.mktemp("cut")
    write_cut(folder)
    found = {}
    for design in ("zookeeper", "eager"):
        traces = sorted((folder / "split-brain" / design / "trace").glob("*.jsonl"))
        history = read_history([read_trace(path) for path in traces])
        drawn = timeline(history, history.zero_ns, history.zero_ns + 10 * 10**9)
        found[design] = timeline_view(history, drawn, "split-brain", 1)
    return found


def test_what_members_believe_overlaps_where_two_believe_it(views: dict[str, RunView]) -> None:
    lane, _ = views["zookeeper"].partitions
    assert lane.delivering == (Holding(800, 8_600, "m1"), Holding(4_800, 9_500, "m2"))
    assert lane.overlaps == (Overlap(4_800, 8_600, ("m1", "m2")),)
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
