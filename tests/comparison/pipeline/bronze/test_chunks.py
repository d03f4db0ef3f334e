"""Chunks and parts: any cut of a file has every line once, and any packing has every chunk once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.ownership.cover import TOLERANCE_NS
from comparison.pipeline.bronze import chunks
from comparison.pipeline.bronze.chunks import Part, chunks_by_run, inner_lines, parts_of, read_chunk
from comparison.pipeline.bronze.runs import TraceFile, TraceRun

#: Contents of a file: lines of any length, also empty ones; the last one may have no end.
CONTENTS = st.lists(st.sampled_from([b"\n", b"x", b"\r", b"{}", b"0123456789"]), max_size=30).map(b"".join)
#: The sizes of the files of several runs.
SIZES = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=4), max_size=6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is written again and again."""
    return tmp_path / "trace.jsonl"


def lines(content: bytes) -> list[bytes]:
    *ended, rest = content.split(b"\n")
    return [line + b"\n" for line in ended] + ([rest] if rest else [])


def run_of(number: int, sizes: Sequence[int]) -> TraceRun:
    files = tuple(TraceFile(Path(f"{place}.jsonl"), size) for place, size in enumerate(sizes))
    return TraceRun(f"run-{number}", Path(f"run-{number}"), "join", "eager", number, files, TOLERANCE_NS)


@pytest.mark.parametrize("line_bytes", [400, 1 << 20])
def test_every_line_is_in_the_chunk_in_which_it_begins(
    path: Path, monkeypatch: pytest.MonkeyPatch, line_bytes: int
) -> None:
    monkeypatch.setattr(chunks, "LINE_BYTES_MAX", line_bytes)

    @given(CONTENTS, st.data())
    def check(content: bytes, data: st.DataObject) -> None:
        path.write_bytes(content)
        cuts = data.draw(st.lists(st.integers(0, len(content)), max_size=5).map(sorted))
        begins = 0
        expected = []
        for line in lines(content):
            expected.append((begins, line))
            begins += len(line)
        for start, end in pairwise([0, *cuts, len(content)]):
            mine = [line for place, line in expected if start <= place < end]
            assert read_chunk(path, start, end) == b"".join(mine)

    check()


END = b'{"end":{"events":1,"monotonic_ns":2}}'


@pytest.mark.parametrize(
    ("text", "is_first", "expected"),
    [
        (b'{"header":1}\n{"seq":0}\n' + END + b"\n", True, (b'{"seq":0}\n', END)),
        (b'{"header":1}\n{"seq":0}\n', True, (b'{"seq":0}\n', None)),
        (b'{"header":1}\n' + END, True, (b"", END)),
        (b'{"header":1}', True, (b"", None)),
        (b"", True, (b"", None)),
        (b'{"seq":5}\n' + END + b"\n\n", False, (b'{"seq":5}\n', END)),
        (END + b"\n", False, (b"", END)),
        (END + b'\n{"seq":5}\n', False, (END + b'\n{"seq":5}\n', None)),
        (b'{"seq":5}\n{"se', False, (b'{"seq":5}\n{"se', None)),
        (b'{"seq":5}\n' + END[:-9], False, (b'{"seq":5}\n' + END[:-9], None)),
        (b'{"seq":5}\n{"end":{}}\n', False, (b'{"seq":5}\n{"end":{}}\n', None)),
    ],
)
def test_header_and_end_marker_are_not_events(
    text: bytes, is_first: bool, expected: tuple[bytes, bytes | None]
) -> None:
    assert inner_lines(text, is_first=is_first) == expected


def test_line_that_is_too_long_is_not_read_to_its_end(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "LINE_BYTES_MAX", 10)
    path.write_bytes(b"{}\n" + b"x" * 50 + b"\n{}\n")
    assert read_chunk(path, 0, 8) == b"{}\n" + b"x" * 11
    assert read_chunk(path, 8, 40) == b""
    assert read_chunk(path, 40, 57) == b"{}\n"


@given(SIZES, st.integers(1, 4), st.integers(1, 50), st.integers(0, 80))
def test_parts_have_every_byte_once_and_whole_runs_whole(
    sizes: list[list[int]], parallelism: int, chunk_bytes: int, whole_bytes: int
) -> None:
    runs = [run_of(number, each) for number, each in enumerate(sizes)]
    parts = parts_of(runs, parallelism, chunk_bytes, whole_bytes)
    assert [part.number for part in parts] == list(range(len(parts)))
    for number, run in enumerate(runs):
        mine = [part for part in parts if number in chunks_by_run(part.chunks)]
        is_small = run.size <= whole_bytes
        assert {part.whole for part in mine} == {is_small}
        assert not is_small or len(mine) == 1
        of_run = [chunk for part in mine for chunk in part.chunks if chunk.run == number]
        for place, file in enumerate(run.files):
            edges = [(chunk.start, chunk.end) for chunk in of_run if chunk.file == place]
            assert edges[0][0] == 0
            assert edges[-1][1] == file.size
            assert all(one[1] == other[0] for one, other in pairwise(edges))
    assert sum(len(part.chunks) for part in parts) == len({chunk for part in parts for chunk in part.chunks})


@given(SIZES, st.integers(1, 4), st.integers(1, 50), st.integers(0, 80))
def test_no_part_is_larger_than_it_must_be(
    sizes: list[list[int]], parallelism: int, chunk_bytes: int, whole_bytes: int
) -> None:
    runs = [run_of(number, each) for number, each in enumerate(sizes)]
    for part in parts_of(runs, parallelism, chunk_bytes, whole_bytes):
        if part.whole:
            *others, last = chunks_by_run(part.chunks)
            assert sum(runs[number].size for number in others) < chunk_bytes or not others
            assert runs[last].size <= whole_bytes
        else:
            (chunk,) = part.chunks
            assert chunk.end - chunk.start <= chunk_bytes


def test_small_runs_are_packed_for_every_core() -> None:
    runs = [run_of(number, [10]) for number in range(8)]

    def packed(parts: list[Part]) -> list[int]:
        return [len(chunks_by_run(part.chunks)) for part in parts]

    assert packed(parts_of(runs, 2, chunk_bytes=1_000, whole_bytes=100)) == [4, 4]
    assert packed(parts_of(runs, 1, chunk_bytes=20, whole_bytes=100)) == [2, 2, 2, 2]
    assert packed(parts_of(runs, 1, chunk_bytes=1_000, whole_bytes=100)) == [8]
    assert parts_of([], 2) == []
