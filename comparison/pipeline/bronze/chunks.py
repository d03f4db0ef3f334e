"""Cut traces into chunks, and pack chunks into parts: the unit of a task, and of a file in each table.

A part holds whole runs, many small ones together, or a piece of one run that is larger than a part. Cuts are at line
ends. Pure but for `read_chunk`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from kernel.trace.reader import end_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from comparison.pipeline.bronze.runs import TraceRun

#: What is decoded at once: about 160,000 events, which take some 100 MB as Python objects.
CHUNK_BYTES = 32 * 1024 * 1024
#: A run up to this size is analysed whole by one task; a larger one is cut up.
WHOLE_RUN_BYTES = 4 * CHUNK_BYTES
_BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Chunk:
    """The lines of one file that begin in [start, end)."""

    run: int  #: by its place among the runs
    file: int  #: by its place in the run
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Part:
    """The chunks of one task, in the order of runs, files and lines."""

    number: int
    chunks: tuple[Chunk, ...]
    whole: bool  #: every run in it is in it whole


def parts_of(
    runs: Sequence[TraceRun], parallelism: int, chunk_bytes: int = CHUNK_BYTES, whole_bytes: int = WHOLE_RUN_BYTES
) -> list[Part]:
    """Share out the files of all runs; small runs are packed so that every core has something to do."""
    small = [number for number, run in enumerate(runs) if run.size <= whole_bytes]
    total = sum(runs[number].size for number in small)
    room = max(1, min(chunk_bytes, -(-total // max(1, parallelism))))
    groups: list[tuple[list[Chunk], bool]] = []
    filled = room
    for number in small:
        if filled >= room:
            groups.append(([], True))
            filled = 0
        groups[-1][0].extend(_whole_files(number, runs[number]))
        filled += runs[number].size
    for number, run in enumerate(runs):
        if run.size > whole_bytes:
            groups += [([chunk], False) for chunk in _pieces(number, run, chunk_bytes)]
    return [Part(number, tuple(chunks), whole) for number, (chunks, whole) in enumerate(groups)]


def _whole_files(number: int, run: TraceRun) -> Iterator[Chunk]:
    for place, file in enumerate(run.files):
        yield Chunk(number, place, 0, file.size)


def _pieces(number: int, run: TraceRun, chunk_bytes: int) -> Iterator[Chunk]:
    for place, file in enumerate(run.files):
        count = max(1, -(-file.size // chunk_bytes))
        edges = [file.size * piece // count for piece in range(count + 1)]
        yield from (Chunk(number, place, start, end) for start, end in pairwise(edges))


def read_chunk(path: Path, start: int, end: int) -> tuple[int, bytes]:
    """The lines of a file that begin in [start, end), and where the first of them begins."""
    with path.open("rb") as file:
        begin = _line_start(file, start)
        stop = _line_start(file, end)
        file.seek(begin)
        return begin, file.read(max(0, stop - begin))


def _line_start(file: BinaryIO, offset: int) -> int:
    """Where the first line at or after `offset` begins; the end of the file if none does."""
    if offset == 0:
        return 0
    file.seek(offset - 1)
    while block := file.read(_BLOCK_BYTES):
        at = block.find(b"\n")
        if at >= 0:
            return offset + at
        offset += len(block)
    return offset - 1


def inner_lines(text: bytes, *, is_first: bool, has_header: bool) -> tuple[int, bytes, bytes | None]:
    """What remains of a chunk without the file's header and its end marker: (offset, lines, end marker).

    A flawed marker is a line like any other.
    """
    begin = 0
    if is_first and has_header:
        begin = text.find(b"\n") + 1 or len(text)
    marker = None
    stripped = text.rstrip()
    last = stripped.rfind(b"\n") + 1
    if last >= begin and end_of(stripped[last:]) is not None:
        marker = stripped[last:]
        return begin, text[begin:last], marker
    return begin, text[begin:], marker


def chunks_by_run(chunks: Iterable[Chunk]) -> dict[int, list[Chunk]]:
    found: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        found.setdefault(chunk.run, []).append(chunk)
    return found
