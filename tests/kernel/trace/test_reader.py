"""The reader: what cannot be used is set aside with its reason, and what was written is read back."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel.trace.check import problems
from kernel.trace.events import COMMON_FIELDS, Role
from kernel.trace.reader import Reason, event_of, read_header, read_trace
from kernel.trace.run_clock import events_in_order
from kernel.trace.writer import TraceIdentity, TraceWriter
from tests.support.time.manual_clock import ManualClock
from tests.support.trace.drawn_events import ANY_EVENT
from tests.support.trace.tracers import read_traces

IDENTITY = TraceIdentity(run="r", scenario="crash", design="eager", role=Role.MEMBER, process="m0")
GOOD = b'{"seq":0,"ns":1,"kind":"member_failed","process":"m0","member":null,"stream":null,"cause":"","error":"x"}\n'


def written(folder: Path, *lines: bytes, header: bool = True) -> Path:
    path = folder / "m0.jsonl"
    TraceWriter(path, IDENTITY).close()
    first, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes((first if header else b"") + b"".join(lines))
    return path


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (GOOD[:40], Reason.TORN),
        (b"garbage\n", Reason.NOT_JSON),
        (b"[1]\n", Reason.NOT_JSON),
        (b"\xff\xfe\n", Reason.NOT_JSON),
        (GOOD.replace(b'"error":"x"', b'"error":5'), Reason.FLAWED),
        (GOOD.replace(b',"error":"x"', b""), Reason.FLAWED),
        (GOOD.replace(b'"seq":0', b'"seq":null'), Reason.FLAWED),
        (GOOD.replace(b'"seq":0', b'"seq":true'), Reason.FLAWED),
        (GOOD.replace(b'"seq":0', b'"seq":9223372036854775808'), Reason.FLAWED),
        (GOOD.replace(b'"member_failed"', b'["member_failed"]'), Reason.FLAWED),
        (GOOD.replace(b'"member_failed"', b'"partitions_assigned","all":[],"partitions":[[0]]'), Reason.FLAWED),
        (GOOD.replace(b'"ns":1', b'"ns":%d' % (1 << 61)), Reason.TIME),
        (GOOD.replace(b'"ns":1', b'"ns":%d' % -(1 << 63)), Reason.TIME),
        (b"[" * 10_000 + b"]" * 10_000 + b"\n", Reason.NESTED),
        (GOOD.replace(b'"x"', b'{"x":' * 10_000 + b"1" + b"}" * 10_000), Reason.NESTED),
        (b'{"end":' + b"[" * 10_000 + b"\n", Reason.NESTED),
        (b'{"end":{"events":1}}\n', Reason.FLAWED),
        (b'{"end":{"events":null,"monotonic_ns":1}}\n', Reason.FLAWED),
        (b'{"end":1}\n', Reason.FLAWED),
        (b'{"end":{"eve', Reason.TORN),
    ],
)
def test_unusable_line_is_set_aside_with_its_reason(tmp_path: Path, line: bytes, reason: Reason) -> None:
    trace = read_trace(written(tmp_path, GOOD, line))
    assert len(trace.events) == 1
    assert [(q.line, q.reason, q.file) for q in trace.quarantined] == [(3, reason, "m0.jsonl")]
    assert trace.end is None


def test_every_beginning_of_a_line_is_torn() -> None:
    partitions = [{"topic": "tä", "partition": number} for number in range(2)]
    event = {"seq": -1, "ns": 2, "kind": "x", "partitions": partitions, "detail": {"a": {"b": [1.5e-3, True, None]}}}
    for line in (json.dumps(event).encode(), json.dumps(event, ensure_ascii=False).encode()):
        assert {event_of(line[:length])[1] for length in range(1, len(line))} == {Reason.TORN}


def test_unknown_kind_is_kept(tmp_path: Path) -> None:
    line = GOOD.replace(b"member_failed", b"member_danced")
    (event,) = read_trace(written(tmp_path, line)).events
    assert event["kind"] == "member_danced"
    assert problems(event) == []


def test_file_without_a_header_gives_no_events(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, GOOD, GOOD, header=False))
    assert trace.header is None
    assert trace.events == ()
    assert [q.reason for q in trace.quarantined] == [Reason.NO_HEADER] * 2


def test_file_of_a_later_version_is_set_aside(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    path.write_bytes(path.read_bytes().replace(b'"schema":2', b'"schema":99'))
    assert read_header(path) == (None, Reason.NEWER_SCHEMA, "schema is 99, not 1 to 2")
    assert {q.reason for q in read_trace(path).quarantined} == {Reason.NEWER_SCHEMA}


@pytest.mark.parametrize(
    ("old", "new", "detail"),
    [
        (b'"run":"r"', b'"run":null', "run is null"),
        (b'"run":"r",', b"", "run is missing"),
        (b'"seed":0', b'"seed":"0"', "seed should be int, is str"),
        (b'"seed":0', b'"seed":true', "seed should be int, is bool"),
        (b'"seed":0', b'"seed":9223372036854775808', "seed does not fit into 64 bits"),
        (b'"schema":2', b'"schema":true', "schema should be int, is bool"),
        (b'"schema":2', b'"schema":0', "schema is 0, not 1 to 2"),
        (b'"boot_id":"', b'"boot_id":5,"x":"', "boot_id should be text, is int"),
        (b'"wall_ns":', b'"wall_ns":9', "wall_ns is not a possible time"),
        (b'"monotonic_ns":', b'"monotonic_ns":1.', "monotonic_ns should be int, is float"),
        (b'{"header":{', b'{"header":[{', "JSON is malformed"),
        (b'"header"', b'"footer"', "header is missing"),
        (b'"run":"r"', b'"run":' + b"[" * 10_000, "maximum recursion depth"),
    ],
)
def test_header_with_a_wrong_field_is_none_and_names_the_field(
    tmp_path: Path, old: bytes, new: bytes, detail: str
) -> None:
    path = written(tmp_path, GOOD)
    path.write_bytes(path.read_bytes().replace(old, new, 1))
    header, reason, found = read_header(path)
    assert (header, reason) == (None, Reason.NO_HEADER)
    assert detail in found
    trace = read_trace(path)
    assert (trace.header, trace.events) == (None, ())
    assert all(q.reason is Reason.NO_HEADER and detail in q.detail for q in trace.quarantined)


def test_file_of_schema_1_is_read_without_an_end_marker(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    path.write_bytes(path.read_bytes().replace(b'"schema":2', b'"schema":1'))
    trace = read_trace(path)
    assert trace.header is not None
    assert (trace.header["schema"], len(trace.events), trace.quarantined, trace.end) == (1, 1, (), None)


def test_files_that_cannot_be_read_are_named_and_do_not_hide_their_siblings(tmp_path: Path) -> None:
    written(tmp_path, GOOD)
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nothing")
    (tmp_path / "looping.jsonl").symlink_to(tmp_path / "looping.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    traces = {trace.path.name: trace for trace in read_traces(tmp_path)}
    assert len(traces.pop("m0.jsonl").events) == 1
    quarantined = {
        name: [(q.file, q.line, q.reason, q.detail) for q in trace.quarantined] for name, trace in traces.items()
    }
    assert quarantined == {
        name: [(name, 0, Reason.UNREADABLE, why)]
        for name, why in {
            "folder.jsonl": "not a regular file",
            "dangling.jsonl": "No such file or directory",
            "looping.jsonl": "Too many levels of symbolic links",
            "pipe.jsonl": "not a regular file",
        }.items()
    }
    assert {trace.unreadable for trace in traces.values()} == {each[0][3] for each in quarantined.values()}
    assert read_header(tmp_path / "dangling.jsonl") == (None, Reason.UNREADABLE, "No such file or directory")


def test_empty_file_is_an_empty_trace(tmp_path: Path) -> None:
    (tmp_path / "m0.jsonl").touch()
    (trace,) = read_traces(tmp_path)
    assert (trace.header, trace.events, trace.quarantined) == (None, (), ())


def test_several_processes_are_merged_by_time(tmp_path: Path) -> None:
    clock = ManualClock()
    writers = {
        name: TraceWriter(
            tmp_path / f"{name}.jsonl",
            TraceIdentity(run="r", scenario="s", design="eager", role=Role.MEMBER, process=name),
            clock=clock,
        )
        for name in ("a", "b")
    }
    for name in ("b", "a", "b"):
        clock.advance_ms(1)
        writers[name].emit("member_failed", error="")
    for writer in writers.values():
        writer.close()
    assert [event["process"] for event in events_in_order(read_traces(tmp_path))] == ["b", "a", "b"]


@st.composite
def _events(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    event = draw(ANY_EVENT)
    return event["kind"], {name: value for name, value in event.items() if name not in _OF_WRITER}


_OF_WRITER = COMMON_FIELDS.keys() - {"cause"}


@given(st.lists(_events(), max_size=5))
@settings(deadline=None)
def test_events_survive_a_round_trip(events: list[tuple[str, dict[str, Any]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t"
        writer = TraceWriter(path, IDENTITY)
        for kind, fields in events:
            writer.emit(kind, member="a", stream=1, **fields)
        writer.close()
        trace = read_trace(path)
    assert trace.quarantined == ()
    assert trace.end is not None
    assert trace.end.events == len(events)
    assert [
        (e["kind"], {name: e[name] for name in f}) for e, (_, f) in zip(trace.events, events, strict=True)
    ] == events


@given(st.binary(max_size=80))
@settings(deadline=None)
def test_reader_raises_for_no_bytes(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder), GOOD, data)
        read_trace(path)
