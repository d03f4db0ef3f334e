"""Integrity of one file: the numbers of its events, its clock and its end marker, in one part or in several."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.trace.events import Role
from kernel.trace.integrity import FileIntegrity, Integrity, ProcessEnd, file_integrity, run_problems
from kernel.trace.listed_file import ListedFile
from kernel.trace.reader import EndMarker, HeaderLine, Reason, Trace, read_trace
from kernel.trace.writer import TraceIdentity, TraceWriter
from tests.support.time.manual_clock import ManualClock

IDENTITY = TraceIdentity(run="r", scenario="s", design="eager", role=Role.MEMBER, process="m1")
MS = 1_000_000
EVENTS = 140


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """The trace of a process that ended normally: a header, 140 events a millisecond apart, an end marker."""
    path, clock = tmp_path / "m1.jsonl", ManualClock()
    writer = TraceWriter(path, IDENTITY, clock=clock)
    for _ in range(EVENTS):
        clock.advance_ms(1)
        writer.emit("member_failed", error="x")
    writer.close()
    return path


def trace_integrity(trace: Trace) -> FileIntegrity:
    """The integrity of a file that was read as a whole."""
    known = Integrity.of_chunk(
        [event["seq"] for event in trace.events],
        [event["ns"] for event in trace.events],
        lines=trace.lines,
        quarantined=Counter(str(each.reason) for each in trace.quarantined),
        end=trace.end,
        after_end=trace.after_end,
    )
    header = HeaderLine(trace.header)
    if trace.header is None and trace.quarantined:  # each line has the header's reason
        header = HeaderLine(None, trace.quarantined[0].reason, trace.quarantined[0].detail)
    return file_integrity(trace.path.name, header, known)


def changed(path: Path, *lines: bytes) -> FileIntegrity:
    path.write_bytes(b"".join(lines))
    return trace_integrity(read_trace(path))


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_whole_file_has_no_problem(whole: Path) -> None:
    found = trace_integrity(read_trace(whole))
    times = [event["ns"] for event in read_trace(whole).events]
    assert (found.first_ns, found.last_ns) == (times[0], times[-1])
    assert found == FileIntegrity(
        file="m1.jsonl",
        process="m1",
        role="member",
        run="r",
        schema=2,
        lines=EVENTS + 2,
        events=EVENTS,
        quarantined={},
        seq_distinct=EVENTS,
        seq_doubled=0,
        seq_missing=0,
        backwards=0,
        backwards_ns=0,
        ended=True,
        announced=EVENTS,
        first_ns=found.first_ns,
        last_ns=found.last_ns,
        problems=(),
    )


def test_lost_tail_shows_by_the_missing_marker_or_the_announced_number(whole: Path) -> None:
    lines = lines_of(whole)
    tailless = changed(whole, *lines[:100])
    assert (tailless.ended, tailless.announced, tailless.events, tailless.problems) == (False, None, 99, ())
    cut = changed(whole, *lines[:100], lines[-1])
    assert (cut.seq_missing, cut.announced) == (41, 140)
    assert cut.problems == (
        "m1.jsonl lacks 41 sequence numbers, the first is 99",
        "m1.jsonl: the end marker announces 140 events, the file has 99",
    )


def test_line_that_is_doubled_and_one_that_is_lost_do_not_make_up_for_each_other(whole: Path) -> None:
    lines = lines_of(whole)
    found = changed(whole, *lines[:20], lines[19], *lines[20:30], *lines[31:])
    assert (found.events, found.seq_distinct, found.seq_doubled, found.seq_missing) == (140, 139, 1, 1)
    assert found.problems == (
        "m1.jsonl has 1 event whose sequence number another event has",
        "m1.jsonl lacks 1 sequence number, the first is 29",
    )


def test_file_that_is_appended_to_itself_is_not_whole(whole: Path) -> None:
    lines = lines_of(whole)
    found = changed(whole, *lines, *lines)
    assert found.problems == (
        "m1.jsonl has 1 unusable line (1 flawed event)",  # the second header
        "m1.jsonl has 140 events whose sequence number another event has",
        "m1.jsonl: time goes backwards 1 time, by up to 139 ms",
        "m1.jsonl: the end marker announces 140 events, the file has 281",
        "m1.jsonl has 142 lines after the end marker",
    )


def test_clock_that_runs_backwards_is_measured_from_the_latest_time(whole: Path) -> None:
    head, *events, end = lines_of(whole)
    times = [100, 101, 400, 350, 300, 310, 200]
    found = changed(
        whole,
        head,
        *(
            event.replace(b'"ns":%d' % ((number + 1) * MS), b'"ns":%d' % (times[number] * MS))
            for number, event in enumerate(events[: len(times)])
        ),
        end.replace(b'"events":140', b'"events":7'),
    )
    assert (found.backwards, found.backwards_ns) == (3, 200 * MS)
    assert found.problems == ("m1.jsonl: time goes backwards 3 times, by up to 200 ms",)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", " is empty"),
        (b"garbage\n", " has no usable header (no header: JSON is malformed: invalid character (byte 0))"),
    ],
)
def test_file_without_a_header_has_only_that_problem(tmp_path: Path, content: bytes, problem: str) -> None:
    found = changed(tmp_path / "m1.jsonl", content)
    assert (found.process, found.events, found.problems) == ("", 0, (f"m1.jsonl{problem}",))


def test_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "m1.jsonl").mkdir()
    found = trace_integrity(read_trace(tmp_path / "m1.jsonl"))
    assert found.problems == ("m1.jsonl cannot be read: not a regular file",)


def test_unusable_lines_are_counted_by_reason_and_a_torn_one_is_left_to_the_run(whole: Path) -> None:
    lines = lines_of(whole)
    found = changed(whole, *lines[:-1], b"garbage\n", b"[1]\n", b'{"seq":1}\n', b'{"se')
    assert found.quarantined == {Reason.NOT_JSON: 2, Reason.FLAWED: 1, Reason.TORN: 1}
    assert found.problems == ("m1.jsonl has 3 unusable lines (1 flawed event, 2 not JSON)",)


def test_numbers_at_the_ends_of_64_bits_do_not_overflow() -> None:
    lowest, highest = -(1 << 63), (1 << 63) - 1
    known = Integrity.of_chunk([highest, lowest], [0, 0]).merged(Integrity.of_chunk([0, highest - 1, lowest], [0] * 3))
    assert known.ranges.tolist() == [[lowest, 0, highest - 1], [lowest, 0, highest]]
    assert (known.seq_distinct, known.seq_doubled) == (4, 1)
    assert (known.seq_missing, known.first_missing) == (highest + 1 - 3, 1)


Line = tuple[str, int, int]
_LINES = st.lists(
    st.one_of(
        st.tuples(st.just("event"), st.integers(-2, 12), st.integers(-5, 5)),
        st.tuples(st.just("event"), st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 61) + 1, (1 << 61) - 1)),
        st.tuples(st.sampled_from(["torn", "not JSON"]), st.just(0), st.just(0)),
        st.tuples(st.just("end"), st.integers(0, 12), st.just(0)),
    ),
    max_size=25,
)


def part(lines: list[Line]) -> Integrity:
    events = [line for line in lines if line[0] == "event"]
    bad = [line[0] for line in lines if line[0] not in ("event", "end")]
    ends = [number for number, line in enumerate(lines) if line[0] == "end"]
    return Integrity.of_chunk(
        np.array([seq for _, seq, _ in events], np.int64),
        [ns for *_, ns in events],
        lines=len(lines),
        quarantined={reason: bad.count(reason) for reason in bad},
        end=EndMarker(lines[ends[0]][1], 0) if ends else None,
        after_end=len(lines) - ends[0] - 1 if ends else 0,
    )


def shown(known: Integrity) -> dict[str, object]:
    """All that is known, as plain values: equal for equal parts."""
    names = (
        "lines events first_ns last_ns earliest_ns latest_ns backwards backwards_ns announced after_end seq_distinct "
        "seq_doubled seq_missing first_missing"
    )
    return {
        **{name: getattr(known, name) for name in names.split()},
        "quarantined": dict(known.quarantined),
        "ranges": known.ranges.tolist(),
    }


@given(_LINES, st.lists(st.integers(0, 25), max_size=6), st.booleans())
def test_any_split_into_parts_merges_to_the_same(lines: list[Line], cuts: list[int], from_the_right: bool) -> None:
    edges = [0, *sorted(cut for cut in cuts if cut <= len(lines)), len(lines)]
    parts = [part(lines[first:last]) for first, last in itertools.pairwise(edges)]
    if from_the_right:
        merged = reduce(lambda later, earlier: earlier.merged(later), reversed(parts))
    else:
        merged = reduce(Integrity.merged, parts)
    assert shown(merged) == shown(part(lines))


@given(_LINES)
def test_integrity_is_what_counting_one_by_one_finds(lines: list[Line]) -> None:
    known = part(lines)
    numbers = [seq for what, seq, _ in lines if what == "event"]
    times = [ns for what, _, ns in lines if what == "event"]
    announced = next((count for what, count, _ in lines if what == "end"), 0)
    last = max([announced - 1, *numbers], default=-1)
    assert known.seq_distinct == len(set(numbers))
    assert known.seq_doubled == len(numbers) - len(set(numbers))
    if last < 100:
        missing = sorted(set(range(last + 1)) - set(numbers))
        assert known.seq_missing == len(missing)
        assert known.first_missing == next(iter(missing), None)
    assert known.backwards == sum(later < earlier for earlier, later in itertools.pairwise(times))
    assert known.backwards_ns == max(
        (earlier - later for at, earlier in enumerate(times) for later in times[at:]), default=0
    )


# -- integrity of a run: files that are lost, duplicated or foreign, and missing end markers ---------------------------


def file(process: str, role: Role = Role.MEMBER) -> FileIntegrity:
    return FileIntegrity(
        file=f"{process}.jsonl", process=process, role=role, run="r", schema=2, events=7, ended=True, announced=7
    )


#: A run with a restarted member, a killed one and one that was killed because it did not stop in time.
FILES = {
    each.process: each
    for each in (
        file("runner", Role.RUNNER),
        file("proxy", Role.PROXY),
        file("observer", Role.OBSERVER),
        file("observer-offsets", Role.OBSERVER),
        file("broker-1", Role.BROKER),
        file("broker-2", Role.BROKER),
        file("m1"),
        file("m1.2"),
        replace(file("m2"), ended=False, announced=None, quarantined={Reason.TORN: 1}),
        replace(file("m3"), ended=False, announced=None),
    )
}
LISTED = [ListedFile(each.file, each.process, each.role) for each in FILES.values()]
ENDED = {
    "m1": ProcessEnd("leave", 0),
    "m1.2": ProcessEnd("stop", 0),
    "m2": ProcessEnd("kill", -9),
    "m3": ProcessEnd("stop", -9),
    "broker-1": ProcessEnd("stop", 0),
}


def problems(
    *without: str, listed: list[ListedFile] | None = LISTED, ended: dict[str, ProcessEnd] = ENDED, **changed: object
) -> list[str]:
    """The problems of the run without some processes' files, and with `name=changed file`."""
    files = {name: each for name, each in FILES.items() if name not in without} | changed
    return [text for _, text in run_problems(files.values(), listed, ended)]  # type: ignore[arg-type]  # all are files


def test_whole_run_has_no_problem() -> None:
    assert problems() == []
    assert problems(listed=None) == []


def test_deleted_file_is_noticed_when_it_was_listed() -> None:
    assert problems("m1.2") == ["m1.2.jsonl is in the list of run.json, but not in the folder"]
    assert problems("m1.2", listed=None) == []


def test_file_that_is_there_twice_is_noticed_with_and_without_a_list() -> None:
    copy = replace(file("m1"), file="m1-copy.jsonl")
    twice = [
        "m1-copy.jsonl is of the process m1, whose file is m1.jsonl",
        *["m1-copy.jsonl and m1.jsonl are all of the process m1"] * 2,
    ]
    assert problems(copy=copy) == ["m1-copy.jsonl is not in the list of run.json", *twice]
    assert problems(copy=copy, listed=None) == twice
    assert problems("m3", m3=replace(file("m1"), file="m3.jsonl")) == [
        "m3.jsonl is of the member m1, the list of run.json says member m3",
        "m3.jsonl is of the process m1, whose file is m1.jsonl",
        *["m1.jsonl and m3.jsonl are all of the process m1"] * 2,
    ]


def test_file_of_another_run_is_noticed() -> None:
    assert problems(m1=replace(FILES["m1"], run="q")) == ["m1.jsonl is of the run 'q', not 'r'"]
    several = [replace(file(name), run=run) for name, run in (("m1", "q"), ("m2", "r"), ("m3", "r"))]
    assert run_problems(several, None, {}) == (("m1.jsonl", "m1.jsonl is of the run 'q', not 'r'"),)
    assert [each.file for each in run_problems(several, None, {}, run="q")] == ["m2.jsonl", "m3.jsonl"]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (None, "nothing says that its process was killed"),
        (ProcessEnd("stop", 0), "its process was not killed (stop, exit code 0)"),
        (ProcessEnd("leave", 0), "its process was not killed (leave, exit code 0)"),
        (ProcessEnd("itself", 1), "its process was not killed (itself, exit code 1)"),
        (ProcessEnd("itself", 74), "its process was not killed (itself, exit code 74)"),
        (ProcessEnd("stop"), "its process was not killed (stop, exit code None)"),
        (ProcessEnd("kill"), ""),
        (ProcessEnd("kill", -9), ""),
        (ProcessEnd("leave", -9), ""),
        (ProcessEnd("itself", -9), ""),
        (ProcessEnd("itself", -15), ""),
    ],
)
def test_end_marker_may_be_missing_only_when_the_process_was_killed(end: ProcessEnd | None, why: str) -> None:
    m1 = replace(FILES["m1"], ended=False, announced=None)
    ended = {**ENDED} if end is None else {**ENDED, "m1": end}
    if end is None:
        del ended["m1"]
    assert problems(m1=m1, ended=ended) == (
        [f"m1.jsonl has no end marker, though {why}: its tail may be lost"] if why else []
    )
    assert problems(m1=replace(m1, schema=1), ended=ended) == []


@pytest.mark.parametrize("name", ["runner", "proxy", "observer"])
def test_end_marker_is_needed_of_what_the_runner_writes_itself(name: str) -> None:
    lacks = f"{name}.jsonl has no end marker, though nothing says that its process was killed: its tail may be lost"
    lacking: dict[str, Any] = {name: replace(FILES[name], ended=False, announced=None)}
    assert problems(**lacking) == [lacks]


def test_kill_tears_the_last_line_only() -> None:
    assert problems(m2=replace(FILES["m2"], seq_missing=1)) == ["m2.jsonl has 1 torn line"]
    assert problems(m2=replace(FILES["m2"], quarantined={Reason.TORN: 2})) == ["m2.jsonl has 2 torn lines"]
    assert problems(m1=replace(FILES["m1"], quarantined={Reason.TORN: 1})) == ["m1.jsonl has 1 torn line"]


def test_file_that_cannot_be_read_counts_as_present_only() -> None:
    assert problems(m1=FileIntegrity(file="m1.jsonl", problems=("m1.jsonl is empty",))) == []
    assert run_problems([], None, {}) == ()
