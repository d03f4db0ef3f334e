"""One run as one stream: merged, in order, on the run's clock; as JSON lines and as a table."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from comparison.report.export.lines import lines
from comparison.report.export.stream import Stream, stream_of
from comparison.report.export.table import SCHEMA, write_table
from comparison.report.export.tracks import Slice, laned
from kernel.errors import UserError
from kernel.trace.events import KINDS
from kernel.trace.reader import Trace, read_trace
from tests.support.runs.seen_runs import write_cut, write_hostile


def _traces(folder: Path, name: str = "zookeeper") -> list[Trace]:
    return [read_trace(path) for path in sorted((folder / "split-brain" / name / "trace").glob("*.jsonl"))]


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    write_cut(tmp_path)
    return stream_of(_traces(tmp_path))


def _of(event: dict[str, Any], **changed: Any) -> dict[str, Any]:
    return {**event, **changed}


def test_events_of_all_processes_are_in_the_order_of_time(stream: Stream) -> None:
    times = [each.t_ns for each in stream.events]
    assert times == sorted(times)
    assert {each.event["process"] for each in stream.events} == set(stream.roles)
    assert (stream.scenario, stream.design) == ("split-brain", "zookeeper")


def test_lines_have_seconds_and_every_field(stream: Stream) -> None:
    found = [json.loads(line) for line in lines(stream)]
    assert len(found) == len(stream.events)
    cut = next(each for each in found if each["kind"] == "fault_started")
    assert (cut["s"], cut["role"], cut["process"], cut["fault"]) == (2.0, "runner", "runner", "cut")
    for line, recorded in zip(found, stream.events, strict=True):
        assert {name: line[name] for name in recorded.event} == recorded.event


def test_lines_of_a_hostile_trace_cannot_move_a_cursor(tmp_path: Path) -> None:
    write_hostile(tmp_path)
    text = "\n".join(lines(stream_of(_traces(tmp_path))))
    assert "</script>" in text
    assert text.isascii()
    assert all(line.isprintable() for line in text.splitlines())


def test_table_is_read_by_duckdb_and_pandas(stream: Stream, tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    write_table(stream, path)
    query = (
        f"SELECT record_offset FROM '{path}' WHERE kind = 'offset_written' AND by_member LIKE 'g_host-1%' ORDER BY s"
    )
    assert duckdb.sql(query).fetchall() == [(8,), (9,)]
    frame = pd.read_parquet(path)
    assert len(frame) == len(stream.events)
    assert frame["s"].is_monotonic_increasing
    given = frame[frame["kind"] == "partitions_assigned"].iloc[0]["partitions"]
    assert [dict(each) for each in given] == [{"topic": "t", "partition": 0}]
    assert set(frame["design"]) == {"zookeeper"}


def test_table_has_a_column_for_every_field_of_every_kind() -> None:
    fields = {name for kind in KINDS.values() for name in kind.fields}
    assert len(SCHEMA.names) == len(set(SCHEMA.names)) == len(fields) + 7 + 7 + 1


def test_fields_of_unknown_kinds_are_kept_as_json(stream: Stream, tmp_path: Path) -> None:
    first = stream.events[0]
    common = {name: first.event[name] for name in ("seq", "ns", "process", "member", "stream", "cause")}
    unknown = first._replace(event={**common, "kind": "from_the_future", "offset": "not a number"})
    write_table(stream._replace(events=[unknown]), tmp_path / "trace.parquet")
    row = pd.read_parquet(tmp_path / "trace.parquet").iloc[0]
    assert (row["kind"], json.loads(row["other"])) == ("from_the_future", {"offset": "not a number"})


def test_files_of_another_boot_are_aligned_by_their_wall_clocks(stream: Stream, tmp_path: Path) -> None:
    traces = _traces(tmp_path)
    late = next(place for place, trace in enumerate(traces) if trace.path.stem == "m1")
    found = traces[late].header
    assert found is not None
    header = {**found, "boot_id": "another", "wall_ns": found["wall_ns"] + 5_000_000_000}
    traces[late] = replace(traces[late], header=header)
    started = [each.t_ns for each in stream_of(traces).events if each.event["kind"] == "member_started"]
    assert sorted(started) == [400_000_000, 5_400_000_000]


def test_traces_of_several_runs_are_refused(stream: Stream, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="of several runs"):
        stream_of([*_traces(tmp_path), *_traces(tmp_path, "eager")])


def test_traces_without_a_header_or_an_event_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m1.jsonl").write_text("nothing\n")
    with pytest.raises(UserError, match="none of these files is a trace"):
        stream_of([read_trace(tmp_path / "m1.jsonl")])
    write_cut(tmp_path)
    with pytest.raises(UserError, match="no usable event"):
        stream_of([replace(trace, events=()) for trace in _traces(tmp_path)])


def test_slices_that_overlap_are_in_different_lanes_and_others_share_one() -> None:
    spans = [(0, 10), (5, 15), (10, 12), (15, 15), (15, 20), (0, 30)]
    lanes = laned(Slice(low, high, "", {}) for low, high in spans)
    assert [[(each.from_ns, each.until_ns) for each in lane] for lane in lanes] == [
        [(0, 10), (10, 12), (15, 15), (15, 20)],
        [(0, 30)],
        [(5, 15)],
    ]
