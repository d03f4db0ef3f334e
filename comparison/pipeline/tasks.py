"""What Spark's tasks do: plain Python on files and tables, the same that the tests call without a JVM.

- `analyse_part`: decode a part's chunks, write its event tables, and, of a part with whole runs, measure and judge
  each run.
- `measure_part`: the same from the tables of an earlier analysis.
- `reduce_part` and `measure_bucket`: the same for one large run that many parts hold: reduce each part where it is,
  then measure its partitions, a bucket at a time.

Every task writes files of its own into a staging folder, which becomes visible when the analysis has ended.
"""

from __future__ import annotations

import io
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from comparison.ownership.groups import NamedGroups
from comparison.pipeline.bronze.chunks import chunks_by_run, inner_lines, read_chunk
from comparison.pipeline.bronze.decode import Unusable, beginning
from comparison.pipeline.bronze.quarantine import quarantine_table, write_quarantine
from comparison.pipeline.bronze.tables import (
    by_run,
    decoded_tables,
    joined,
    labelled,
    read_part,
    with_run,
    write_part,
    write_table,
)
from comparison.pipeline.figures.assemble import assemble
from comparison.pipeline.figures.verdicts import judge
from comparison.pipeline.figures.waits import wait_table
from comparison.pipeline.gold.course import course_table
from comparison.pipeline.gold.partitions import measure_partitions
from comparison.pipeline.gold.run import measure
from comparison.pipeline.measured import Measured, ProcessEnded
from comparison.pipeline.silver.context import bounds_of
from comparison.pipeline.silver.groups import groups_of
from comparison.pipeline.silver.reduce import ENCODED_KINDS, Bundle, needed_columns, reduced
from comparison.pipeline.silver.rounds import phase_table, round_table
from comparison.pipeline.silver.windows import change_table, fault_table
from comparison.results.run import FileIntegrity as FileFound
from comparison.wrong_data import WRONG_DATA as DATA_ERRORS
from comparison.wrong_data import what_was_raised
from kernel.platform.garbage import collection_put_off
from kernel.trace.integrity import FileIntegrity, Integrity, ProcessEnd, file_integrity, run_problems
from kernel.trace.reader import Reason, end_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from comparison.pipeline.bronze.chunks import Chunk, Part
    from comparison.pipeline.bronze.runs import TraceFile, TraceRun
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.gold.partitions import PartitionFigures
    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.naming import Naming
    from comparison.pipeline.silver.reduce import Reduced
    from comparison.results.run import Run

#: The folders of the tables that tasks write.
EVENTS, OWNERSHIP, SEGMENTS, COMMITS = "events", "ownership", "segments", "commits"
ROUNDS, PHASES, CHANGES, FAULTS = "rounds", "phases", "changes", "faults"
COURSE, WAITS = "course", "waits"


class BrokenRun(Exception):
    """A run cannot be analysed, though its lines can be read; the message says why."""


#: What ends the analysis of one run, and of no other.
WRONG_DATA = (*DATA_ERRORS, BrokenRun)


@dataclass(slots=True)
class FileRead:
    """What was read of a file, or of a piece of it."""

    run: int
    file: int
    integrity: Integrity = field(default_factory=Integrity)
    lines: int = 0  #: that ended in it
    unusable: list[Unusable] = field(default_factory=list)  #: the first ones, by their lines in the piece


@dataclass(slots=True)
class PartResult:
    """What a task returns of a part."""

    number: int
    read: list[FileRead] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)  #: of a part with whole runs
    bounds: tuple[int, int] | None = None  #: of another one: its first and last moment
    groups: NamedGroups = field(default_factory=NamedGroups)


def read_tables(runs: Sequence[TraceRun], chunks: Sequence[Chunk]) -> tuple[dict[int, Tables], list[FileRead]]:
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


def analyse_part(runs: Sequence[TraceRun], part: Part, folder: Path) -> PartResult:
    """Read a part from its lines, write its tables into `folder`, and analyse the runs that it holds whole."""
    tables, read = read_tables(runs, part.chunks)
    write_part(folder / EVENTS, part.number, joined(labelled(runs[number], each) for number, each in tables.items()))
    unusable = [
        quarantine_table(runs[each.run], [(runs[each.run].files[each.file].name, one) for one in each.unusable])
        for each in read
    ]
    write_quarantine(folder, part.number, unusable)
    for each in read:
        each.unusable.clear()
    return _analysed(runs, part, tables, PartResult(part.number, read), folder)


def measure_part(runs: Sequence[TraceRun], part: Part, before: PartResult, folder: Path) -> PartResult:
    """As `analyse_part`, from the tables that are in `folder` already; `before` is what was read of the part then."""
    if not part.whole:
        return before
    written = by_run(read_part(folder / EVENTS, part.number))
    tables = {number: written.get(runs[number].run_id, {}) for number in chunks_by_run(part.chunks)}
    return _analysed(runs, part, tables, replace(before, runs={}), folder)


def _analysed(
    runs: Sequence[TraceRun], part: Part, tables: dict[int, Tables], found: PartResult, folder: Path
) -> PartResult:
    if not part.whole:
        (each,) = tables.values()
        found.bounds, found.groups = bounds_of(each), groups_of(each)
        return found
    written = []
    for number, each in tables.items():
        read = [one for one in found.read if one.run == number]
        try:
            measured, figures = measure(runs[number], each)
            found.runs[number] = finished(runs[number], measured, read)
        except WRONG_DATA as error:
            found.runs[number] = broken(runs[number], why_broken(error), read)
            measured, figures = measure(runs[number], {})  # its tables are empty
        written.append((runs[number], figures, measured))
    write_gold(folder, part.number, written)
    return found


def analyse_without_files(run: TraceRun, folder: Path, number: int) -> Run:
    """A run that lists trace files of which none is there."""
    write_nothing(run, folder, number)
    return finished(run, measure(run, {})[0], [])


def write_nothing(run: TraceRun, folder: Path, number: int) -> None:
    """Empty tables of a run of which nothing can be measured: readers expect every table, also of such runs alone."""
    measured, figures = measure(run, {})
    write_gold(folder, number, [(run, figures, measured)])


def why_broken(error: BaseException) -> str:
    """Why a run cannot be analysed: an error of WRONG_DATA, and where it was raised."""
    return str(error) if isinstance(error, BrokenRun) else what_was_raised(error)


def broken(run: TraceRun, why: str, read: Sequence[FileRead]) -> Run:
    """A run of which nothing could be measured; its files are described all the same."""
    measured = Measured()
    _describe_files(run, measured, read)
    measured.problems.insert(0, f"the run cannot be analysed: {why}")
    return assemble(run, measured)


def finished(run: TraceRun, measured: Measured, read: Sequence[FileRead]) -> Run:
    """The run's figures and verdicts, from what was measured and how its files were."""
    _describe_files(run, measured, read)
    return judge(assemble(run, measured))


def _describe_files(run: TraceRun, measured: Measured, read: Sequence[FileRead]) -> None:
    files: list[FileIntegrity] = []
    offsets = {}
    for place, file in enumerate(run.files):
        known = reduce(Integrity.merged, (each.integrity for each in read if each.file == place), Integrity())
        files.append(file_integrity(file.name, file.header, known))
        offsets[file.name] = file.offset_ns
    ends = {each.target: ProcessEnd(each.how, each.code) for each in measured.runner if isinstance(each, ProcessEnded)}
    by_run = run_problems(files, run.listed, ends)
    measured.problems = [problem for each in files for problem in each.problems] + [each.text for each in by_run]
    measured.problems += measured.mistakable
    if run.problem:
        measured.problems.append(run.problem)
    there = {each.file for each in files}
    missing = [FileIntegrity(file=name) for name in dict.fromkeys(each.file for each in by_run) if name not in there]
    for each in (*files, *missing):
        described = asdict(each) | {
            "problems": [*each.problems, *(problem.text for problem in by_run if problem.file == each.file)],
            "members": measured.members.get(each.process, []),
            **{
                name: at_ns + offsets[each.file]
                for name in ("first_ns", "last_ns")
                if (at_ns := getattr(each, name)) is not None
            },
        }
        measured.files.append(msgspec.convert(described, FileFound))


def write_gold(
    folder: Path, number: int, written: Sequence[tuple[TraceRun, PartitionFigures, Measured | None]]
) -> None:
    """Write who had which partition, the stretches that were counted, the commits, and each run's course."""
    for name, table_of in OF_PARTITIONS.items():
        tables = [with_run(run, table) for run, figures, _ in written if (table := table_of(figures)) is not None]
        _write_tables(folder / name, number, tables)
    for name, made in OF_RUNS.items():
        _write_tables(
            folder / name, number, [with_run(run, made(each)) for run, _, each in written if each is not None]
        )


#: The tables of partitions, and those of whole runs.
OF_PARTITIONS: Mapping[str, Callable[[PartitionFigures], pa.Table | None]] = {
    OWNERSHIP: lambda figures: figures.intervals,
    SEGMENTS: lambda figures: figures.segments,
    COMMITS: lambda figures: figures.committed,
}
OF_RUNS: Mapping[str, Callable[[Measured], pa.Table]] = {
    ROUNDS: lambda measured: round_table(measured.rounds),
    PHASES: lambda measured: phase_table(measured.phases),
    CHANGES: lambda measured: change_table(measured.changes),
    FAULTS: lambda measured: fault_table(measured.faults),
    COURSE: lambda measured: course_table(measured.course),
    WAITS: wait_table,
}


def _write_tables(folder: Path, number: int, tables: Sequence[pa.Table]) -> None:
    if tables:
        write_table(folder / f"part-{number:05}.parquet", pa.concat_tables(tables))


def reduce_part(context: Context, naming: Naming, folder: Path, part: int) -> Reduced:
    """Reduce one part of a large run, from its tables."""
    return reduced(read_part(folder / EVENTS, part, columns=needed_columns, encoded=ENCODED_KINDS), context, naming)


def measure_bucket(
    run: TraceRun, context: Context, bundles: Sequence[Bundle], bucket: int, buckets: int, folder: Path, number: int
) -> PartitionFigures:
    """Measure a bucket of a large run's partitions; its tables are written, and only the rest is returned."""
    figures = measure_partitions(Bundle.joined(bundles), context, bucket, buckets)
    write_gold(folder, number, [(run, figures, None)])
    return replace(figures, intervals=None, segments=None, committed=None)
