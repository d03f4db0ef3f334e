"""Lines that are alike are read at once, and come back as if each had been decoded by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.pipeline.bronze import alike, tables
from comparison.pipeline.bronze.alike import LINES_MIN, read_alike
from comparison.pipeline.bronze.decode import usual_event
from comparison.pipeline.bronze.runs import TraceFile
from tests.support.properties import examples
from tests.support.trace.drawn_events import ANY_EVENT, line_of

FILE = TraceFile(Path("m1.jsonl"), 0, role="member", process="m1", offset_ns=-5)
DIGITS = b"0123456789"
POLL = {
    "seq": 0,
    "ns": 1_000_000_000,
    "kind": "records_delivered",
    "process": "m1",
    "member": "m1",
    "stream": 0,
    "cause": "",
    "topic": "t",
    "partition": 3,
    "first": 0,
    "last": 9,
    "serial_first": 0,
    "serial_last": 9,
}


def polls(count: int, **changed: Any) -> list[bytes]:
    return [
        msgspec.json.encode(
            {**POLL, "seq": n, "first": n, "last": n + 9, "serial_first": n, "serial_last": n + 9, **changed}
        )
        for n in range(count)
    ]


@st.composite
def likes(draw: st.DrawFn) -> list[bytes]:
    """A line, and some that differ from it in digits; some of them are damaged."""
    line = line_of(draw(ANY_EVENT)).rstrip(b"\n")
    places = [place for place, byte in enumerate(line) if byte in DIGITS]
    found = [line]
    for _ in range(draw(st.integers(1, 6))):
        other = bytearray(line)
        for place in draw(st.lists(st.sampled_from(places), max_size=4)) if places else ():
            other[place] = draw(st.sampled_from(DIGITS))
        if draw(st.integers(0, 30)) == 0:
            other[draw(st.integers(0, len(other) - 1))] = draw(st.sampled_from(b'"{}[],:\\019-.eatnx \x00\x7f\xc3'))
        found.append(bytes(other))
    return found


@settings(max_examples=examples(300))
@given(st.data())
def test_lines_that_are_alike_are_read_as_one_by_one(data: st.DataObject) -> None:
    groups = data.draw(st.lists(likes(), min_size=1, max_size=4))
    lines = data.draw(st.permutations([line for group in groups for line in group]))
    chunk = b"\n".join(lines) + data.draw(st.sampled_from([b"\n", b""]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike, "LINES_MIN", 2)
        found, made = tables.decoded_tables(chunk, FILE)
    expected, made_one_by_one = tables._decoded(chunk, FILE, line_by_line=True)
    assert np.array_equal(found.places, expected.places)
    assert (found.reasons, found.unusable, found.end) == (expected.reasons, expected.unusable, expected.end)
    assert set(made) == set(made_one_by_one)
    for kind, table in made_one_by_one.items():
        assert made[kind].schema == table.schema
        assert made[kind].to_pylist() == table.to_pylist()


def test_numbers_may_be_of_any_length_that_many_lines_have() -> None:
    found = read_alike(b"\n".join([*polls(3_000), b""]), usual_event)
    groups = found.groups["records_delivered"]
    read = {line: int(seq) for group in groups for line, seq in zip(group.lines, group.numbers["seq"], strict=True)}
    assert all(line == seq for line, seq in read.items())
    assert {*range(100, 991), *range(1_000, 2_999)} <= read.keys()
    assert sorted([*read, *found.rest_lines]) == list(range(3_000))


def test_order_of_lines_is_kept_across_groups() -> None:
    mixed = [line for pair in zip(polls(LINES_MIN), polls(LINES_MIN, topic="other"), strict=True) for line in pair]
    found, made = tables.decoded_tables(b"\n".join(mixed), FILE)
    assert made["records_delivered"]["topic"].to_pylist() == ["t", "other"] * LINES_MIN
    assert found.places[:, 0].tolist() == [n for n in range(LINES_MIN) for _ in range(2)]


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.replace(b'"first":', b'"first":0'),  # a leading zero
        lambda line: line.replace(b'"partition":3', b'"partition":x'),
        lambda line: line.replace(b'"last"', b'"lost"'),
        lambda line: line[:-1],
        lambda line: line + b" ",
        lambda line: line.replace(b'"ns":1', b'"ns":9999999999'),
    ],
)
def test_line_that_is_unlike_the_others_is_left_to_the_decoder(change: Any) -> None:
    lines = polls(2 * LINES_MIN, seq=5, first=111, last=112, serial_first=111, serial_last=112)
    lines[7] = change(lines[7])
    found = read_alike(b"\n".join(lines), usual_event)
    assert [line for line in found.rest_lines.tolist() if line < len(lines) - 1] == [7]
    assert lines[7] in found.rest


def test_numbers_beyond_a_limit_are_left_to_the_decoder() -> None:
    lines = polls(LINES_MIN, first=1, last=1 << 59)
    found, made = tables.decoded_tables(b"\n".join(lines), FILE)
    assert found.reasons == {"flawed event": LINES_MIN}
    assert not made
