"""Read a part of the traces: its tables of events are written, and what was read of each file is returned."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from comparison.ownership.groups import NamedGroups
from comparison.pipeline.bronze.chunks import Chunk, chunks_by_run, inner_lines, read_chunk
from comparison.pipeline.bronze.decode import Unusable, beginning
from comparison.pipeline.bronze.quarantine import quarantine_table, write_quarantine
from comparison.pipeline.bronze.runs import TraceRun  # noqa: TC001 - typed_rows reads the annotation
from comparison.pipeline.bronze.tables import EVENTS, decoded_tables, joined, labelled, write_part
from comparison.pipeline.silver.context import bounds_of
from comparison.pipeline.silver.groups import groups_of
from kernel.platform.garbage import collection_put_off
from kernel.trace.integrity import Integrity
from kernel.trace.reader import Reason, end_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.bronze.runs import TraceFile
    from comparison.pipeline.bronze.tables import Tables
    from kernel.platform.places import Place


@dataclass(frozen=True, slots=True)
class PartOfTraces:
    """What one task reads; of the runs, only those that it has chunks of, by their places among all."""

    number: int
    whole: bool  #: every run in it is in it whole
    runs: dict[int, TraceRun]
    chunks: tuple[Chunk, ...]


@dataclass(slots=True)
class FileRead:
    """What was read of a file, or of a piece of it."""

    run: int
    file: int
    integrity: Integrity = field(default_factory=Integrity)
    lines: int = 0  #: that ended in it
    unusable: list[Unusable] = field(default_factory=list)  #: the first ones, by their lines in the piece


@dataclass(slots=True)
class PartRead:
    """What was read of a part."""

    number: int
    read: list[FileRead] = field(default_factory=list)
    bounds: tuple[int, int] | None = None  #: of a piece of a run: its first and last moment
    groups: NamedGroups = field(default_factory=NamedGroups)  #: likewise: what it names
    unwritable: tuple[int, str] | None = None  #: the error of the disk that its tables did not fit on


def read_part_of_traces(part: PartOfTraces, folder: Place) -> PartRead:
    """Read a part from its lines, and write its tables into `folder`."""
    tables, read = read_tables(part.runs, part.chunks)
    write_part(
        folder / EVENTS, part.number, joined(labelled(part.runs[each], of_one) for each, of_one in tables.items())
    )
    unusable = [
        quarantine_table(
            part.runs[each.run], [(part.runs[each.run].files[each.file].name, one) for one in each.unusable]
        )
        for each in read
    ]
    write_quarantine(folder, part.number, unusable)
    for each in read:
        each.unusable.clear()
    found = PartRead(part.number, read)
    if not part.whole:
        (of_one,) = tables.values()
        found.bounds, found.groups = bounds_of(of_one), groups_of(of_one)
    return found


def read_tables(
    runs: Sequence[TraceRun] | Mapping[int, TraceRun], chunks: Sequence[Chunk]
) -> tuple[dict[int, Tables], list[FileRead]]:
    """Decode chunks: the tables of each run, and what was read of each file."""
    found: dict[int, Tables] = {}
    read: list[FileRead] = []
    for number, of_one in chunks_by_run(chunks).items():
        pieces = []
        for chunk in of_one:
            tables, file_read = _read(runs[number].files[chunk.file], chunk)
            pieces.append(tables)
            read.append(file_read)
        found[number] = joined(pieces)
    return found, read


def _read(file: TraceFile, chunk: Chunk) -> tuple[Tables, FileRead]:
    if file.problem is Reason.UNREADABLE:
        return {}, _unreadable(chunk, file.header.detail)
    try:
        text = read_chunk(file.path, chunk.start, chunk.end)
    except OSError as error:
        return {}, _unreadable(chunk, error.strerror or str(error))
    if file.problem is not None:
        return {}, _without_header(chunk, file, text)
    is_first = chunk.start == 0
    lines, marker = inner_lines(text, is_first=is_first)
    with collection_put_off():
        decoded, tables = decoded_tables(lines, file)
    seqs, ns = decoded.places.T
    end = end_of(marker) if marker is not None else decoded.end
    whole = len(seqs) + decoded.reasons.total() + is_first + (end is not None)
    known = Integrity.of_chunk(seqs, ns, lines=whole, quarantined=decoded.reasons, end=end, after_end=decoded.after_end)
    unusable = [replace(each, line=each.line + is_first) for each in decoded.unusable]
    return tables, FileRead(chunk.run, chunk.file, known, text.count(b"\n"), unusable)


def _unreadable(chunk: Chunk, detail: str) -> FileRead:
    known = Integrity(lines=1, quarantined={str(Reason.UNREADABLE): 1})
    return FileRead(chunk.run, chunk.file, known, 0, [Unusable(0, Reason.UNREADABLE, "", detail)])


def _without_header(chunk: Chunk, file: TraceFile, text: bytes) -> FileRead:
    """A piece of a file of which nothing can be used: without the header, its events have no process and no clock."""
    assert file.problem is not None
    lines = sum(1 for line in io.BytesIO(text) if line.strip())
    first = [Unusable(1, file.problem, beginning(text.partition(b"\n")[0]), file.header.detail)]
    known = Integrity(lines=lines, quarantined={str(file.problem): lines} if lines else {})
    return FileRead(chunk.run, chunk.file, known, text.count(b"\n"), first if lines and chunk.start == 0 else [])
