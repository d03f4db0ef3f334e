"""Cut traces into chunks, and pack chunks into parts: the unit of a task, and of a file in each table.

A part holds whole runs, many small ones together, or a piece of one run that is larger than a part. Cuts are at line
ends. Pure but for `read_chunk`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from kernel.platform.places import opened
from kernel.trace.reader import LINE_BYTES_MAX, end_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

    from comparison.pipeline.bronze.runs import TraceRun
    from kernel.platform.places import Place

#: What is decoded at once: about 160,000 events, which take some 100 MB as Python objects.
CHUNK_BYTES = 32 * 1024 * 1024
#: A run up to this size is analysed whole by one task; a larger one is cut up.
WHOLE_RUN_BYTES = 4 * CHUNK_BYTES
_TAIL_BYTES = 4096


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
    runs: Sequence[TraceRun],
    parallelism: int,
    chunk_bytes: int = CHUNK_BYTES,
    whole_bytes: int = WHOLE_RUN_BYTES,
    *,
    among: Sequence[int] | None = None,
) -> list[Part]:
    """Share out the files of all runs, or of those at the places `among` them.

    Small runs are packed so that every core has something to do.
    """
    places = range(len(runs)) if among is None else among
    small = [number for number in places if runs[number].size <= whole_bytes]
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
    for number in places:
        if runs[number].size > whole_bytes:
            groups += [([chunk], False) for chunk in _pieces(number, runs[number], chunk_bytes)]
    return [Part(number, tuple(chunks), whole) for number, (chunks, whole) in enumerate(groups)]


def _whole_files(number: int, run: TraceRun) -> Iterator[Chunk]:
    for place, file in enumerate(run.files):
        yield Chunk(number, place, 0, file.size)


def _pieces(number: int, run: TraceRun, chunk_bytes: int) -> Iterator[Chunk]:
    for place, file in enumerate(run.files):
        count = max(1, -(-file.size // chunk_bytes))
        edges = [file.size * piece // count for piece in range(count + 1)]
        yield from (Chunk(number, place, start, end) for start, end in pairwise(edges))


def read_chunk(path: Place, start: int, end: int) -> bytes:
    """The lines of a file that begin in [start, end).

    However long lines are, no more is read than the chunk and one line of the greatest length.
    """
    with opened(path) as file:
        file.seek(max(0, start - 1))
        if start:
            file.readline(end - file.tell())
        text = file.read(max(0, end - file.tell()))
        if text and not text.endswith(b"\n"):
            text += _rest_of_line(file, len(text) - text.rfind(b"\n") - 1)
        return text


def _rest_of_line(file: BinaryIO, begun: int) -> bytes:
    """The rest of a line of which `begun` bytes were read; enough of it to see that it is too long."""
    return file.readline(max(0, LINE_BYTES_MAX + 1 - begun)) or b""


def inner_lines(text: bytes, *, is_first: bool) -> tuple[bytes, bytes | None]:
    """What remains of a chunk without the file's header and its end marker: (lines, end marker).

    A flawed marker is a line like any other.
    """
    begin = (text.find(b"\n") + 1 or len(text)) if is_first else 0
    tail = text[-_TAIL_BYTES:]  # a copy of everything would cost more than all the rest
    tail = tail if tail.strip() else text
    end = len(text) - len(tail) + len(tail.rstrip())
    last = text.rfind(b"\n", 0, end) + 1
    if last >= begin and end_of(text[last:end]) is not None:
        return text[begin:last], text[last:end]
    return text[begin:], None


def chunks_by_run(chunks: Iterable[Chunk]) -> dict[int, list[Chunk]]:
    found: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        found.setdefault(chunk.run, []).append(chunk)
    return found
