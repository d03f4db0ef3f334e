"""Which columns a replay has, what is in each, and how they are aligned."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.replay.columns import COLUMNS_MAX, columns_of
from kernel.errors import UserError
from tests.support.runs.replayed import stream_in
from tests.support.runs.seen_runs import eager_events, write_cut, zookeeper_events
from tests.support.trace.traces import e, write_run


def later(events: list[dict], by_ms: int) -> list[dict]:
    return [{**each, "t_ns": each["t_ns"] + by_ms * 1_000_000, "ns": each["ns"] + by_ms * 1_000_000} for each in events]


def written(folder: Path, events: list[dict], design: str, scenario: str = "split-brain") -> Path:
    write_run(folder, sorted(events, key=lambda each: each["t_ns"]), scenario=scenario, design=design)
    return folder


def test_runs_are_aligned_at_their_first_change_after_the_group_has_formed(tmp_path: Path) -> None:
    write_cut(tmp_path)
    late = written(
        tmp_path / "late", [*later(eager_events()[:-1], 700), e(0, "runner", "stage_entered", stage="warm")], "eager"
    )
    early, shifted = columns_of([stream_in(tmp_path / "split-brain" / "zookeeper"), stream_in(late)])
    assert (early.change_ms, early.later_ms) == (2700, 700)
    assert (shifted.change_ms, shifted.later_ms) == (2700, 0)
    for column in (early, shifted):
        assert [each.at_ms for each in column.events if each.event["kind"] == "fault_started"] == [2700]


def test_one_run_is_on_its_own_clock(tmp_path: Path) -> None:
    write_cut(tmp_path)
    (column,) = columns_of([stream_in(tmp_path / "split-brain" / "eager")])
    assert (column.label, column.later_ms, column.rate) == ("eager", 0, 5)


def test_columns_of_one_design_are_told_apart(tmp_path: Path) -> None:
    first = written(tmp_path / "a", eager_events(), "eager")
    again = written(tmp_path / "b", eager_events(), "eager")
    other = written(tmp_path / "c", eager_events(), "eager", scenario="pause")
    streams = [stream_in(each) for each in (first, again, other)]
    assert [each.label for each in columns_of(streams)] == [
        "eager, split-brain (1)", "eager, split-brain (2)", "eager, pause",
    ]  # fmt: skip
    with pytest.raises(
        UserError, match=r"9 groups, and 8 can stand side by side\. Give the folder of one .* RUN/split"
    ):
        columns_of(streams * (COLUMNS_MAX // 3 + 1))


def test_each_group_of_a_run_has_a_column_of_its_own_events(tmp_path: Path) -> None:
    second = [
        {**each, "group": "h"} if "group" in each else each
        for each in later(zookeeper_events(), 0)
        if each["process"] != "runner"
    ]
    renamed = [
        {**each, "process": each["process"].replace("m", "m1"), "member": each["member"] and f"h{each['member']}"}
        for each in second
    ]
    started = [e(0, "runner", "process_started", target=name, child_pid=1) for name in ("m11", "m12")]
    run = written(tmp_path / "two", [*zookeeper_events(), *started, *renamed], "zookeeper")
    columns = columns_of([stream_in(run)])
    assert [each.label for each in columns] == ["zookeeper, g", "zookeeper, h"]
    for column, members in zip(columns, ({"m1", "m2"}, {"m11", "m12"}), strict=True):
        assert {each.event["process"] for each in column.events if each.role == "member"} == members
        assert {each.event["target"] for each in column.events if each.event["kind"] == "process_started"} == members
        assert any(each.event["kind"] == "authority_named" for each in column.events)


def test_a_run_of_no_known_design_is_refused(tmp_path: Path) -> None:
    run = written(tmp_path / "x", eager_events(), "")
    with pytest.raises(UserError, match="no known design in the traces of"):
        columns_of([stream_in(run)])


def test_members_without_a_runner_start_with_their_first_event(tmp_path: Path) -> None:
    by_hand = [each for each in eager_events() if each["process"] != "runner"]
    (column,) = columns_of([stream_in(written(tmp_path / "hand", by_hand, "eager"))])
    started = [(each.at_ms, each.event["target"]) for each in column.events if each.event["kind"] == "process_started"]
    assert started == [(400, "m1"), (400, "m2")]
