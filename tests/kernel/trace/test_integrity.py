"""Integrity of one file: the numbers of its events, its clock and its end marker, in one part or in several."""

from __future__ import annotations

import itertools
from collections import Counter
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.trace.events import Role
from kernel.trace.integrity import FileIntegrity, Integrity, file_integrity
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
