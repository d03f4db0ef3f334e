"""Analyse all runs of a command in one pass over one Spark session."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import replace
from enum import Enum
from functools import reduce
from itertools import count, groupby, islice
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from comparison.pipeline import job
from comparison.pipeline.bronze.chunks import chunks_by_run, parts_of
from comparison.pipeline.bronze.quarantine import count_lines_on
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.carried import MEASURED, READ, carry
from comparison.pipeline.compaction import compacted
from comparison.pipeline.figures.growth import growths
from comparison.pipeline.figures.repeats import repeated
from comparison.pipeline.gold.partitions import added
from comparison.pipeline.gold.run import measure, together
from comparison.pipeline.judged import broken, finished, why_broken
from comparison.pipeline.published import discard, publish, staging, tables_in
from comparison.pipeline.reading import PartOfTraces
from comparison.pipeline.remembered import NOTHING_KNOWN, ReadParts, fingerprint, recall, remember
from comparison.pipeline.stages import NO_TABLES, PartOfEvents, RunIn, write_gold
from comparison.pipeline.sums.queries import NO_SUMS, windows_of
from comparison.pipeline.written import write_results, write_runs
from comparison.results.outcomes import VerdictOutcome, worst
from comparison.results.result import SCHEMA_VERSION, NotApplicable, Result, Scenario
from comparison.wrong_data import WRONG_DATA
from kernel.designs import DESIGN_NAMES, ZOOKEEPER
from kernel.errors import UserError
from kernel.platform.json_file import json_if_readable
from kernel.platform.places import each_of, is_in_store, make_folder, resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from comparison.pipeline.bronze.chunks import Part
    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.measured import Measured
    from comparison.pipeline.reading import FileRead, PartRead
    from comparison.pipeline.remembered import Known
    from comparison.pipeline.stages import Gold
    from comparison.pipeline.sums.queries import Sums
    from comparison.results.run import Run
    from kernel.platform.places import Place

#: The command of a comparison, beside its runs.
COMMAND = "command.json"
#: Scenarios that a comparison shows first: they are the reason for this product.
SHOWN_FIRST = ("herd", "split-brain", "split-brain-ensemble")
#: Scenarios that share another scenario's run, by (scenario, design): the design sees no difference between them.
SAME_RUN: Mapping[tuple[str, str], str] = {("split-brain-ensemble", ZOOKEEPER): "split-brain"}


class NothingToAnalyse(UserError):
    """No trace was found in the given folders."""


class Again(Enum):
    """What is done again for runs that are as they were in the last analysis."""

    NOTHING = "nothing"  #: figures and verdicts are kept
    MEASURING = "measuring"  #: from the tables of events
    READING = "reading"  #: from the traces


def analyze(  # what a command chooses, each by its name
    spark: SparkSession | Callable[[], SparkSession],
    run_dirs: Sequence[Place],
    *,
    output: Place | None = None,
    progress: Callable[[str], None] = lambda _: None,
    again: Again = Again.NOTHING,
    bundles: Sequence[Place] = (),
    judged: Callable[[TraceRun, Run], Run] = lambda _, run: run,
) -> Result:
    """Analyse every run at or below the folders given, and return the result.

    A session that is still starting (`StartingSession.session`) is waited for only when it is needed.
    `bundles` are the folders that may have a command.json besides the output. `judged` has the last word on a run that
    was measured.

    The tables stay as Parquet in the folder `tables` of `output` (default: the common parent of the run folders, unless
    one is in a store), in the place of an earlier analysis's; what that one found of runs that have not changed since
    is kept (`comparison.pipeline.remembered`). Raises NothingToAnalyse if there is no trace.
    """
    runs = find_runs(run_dirs)
    if not runs:
        looked = ", ".join(str(folder) for folder in run_dirs) or "no folder"
        raise NothingToAnalyse(f"no trace/*.jsonl in {looked}. Give the folder of a run, or one with runs in it")
    folder = resolved(output or Path(os.path.commonpath([str(run.folder) for run in runs])))
    marks = each_of(fingerprint, runs, in_store=any(is_in_store(run.folder) for run in runs))
    before, known = tables_in(folder), NOTHING_KNOWN
    if again is not Again.READING:
        known = recall(before, runs, marks, measured=again is Again.NOTHING)
    progress(_progress_line(len(runs), len(known.found)))
    if len(known.found) == len(runs) and known.tables_hold:
        found = known.found
    else:
        session = spark() if callable(spark) else spark
        try:
            tables = staging(folder)
            if is_in_store(tables):
                job.require_connector(session, tables)
            found = _completed(session, runs, marks, known, before, tables, judged)
            publish(folder, tables)
        except BaseException:
            discard(folder)
            raise
    skipped = [each for bundle in dict.fromkeys([folder, *bundles]) for each in _not_applicable(bundle)]
    return compose(sorted(found.values(), key=_place), skipped)


def _progress_line(runs: int, kept: int) -> str:
    if not kept:
        return f"analysing {runs} runs" if runs > 1 else "analysing the run"
    unchanged = f"{kept} unchanged since the last analysis"
    return f"analysing {runs - kept} new or changed of {runs} runs; {unchanged}" if runs > kept else unchanged


def _completed(
    spark: SparkSession,
    runs: Sequence[TraceRun],
    marks: Sequence[str],
    known: Known,
    before: Place,
    tables: Place,
    judged: Callable[[TraceRun, Run], Run],
) -> dict[int, Run]:
    """All runs' figures and verdicts, and their tables in `tables`: what is known, and what is missing."""
    carry(before, tables, READ if not known.found else (*READ, *MEASURED), known.carried, known.held)
    free = count(known.free_number)
    cores = job.cores_of(spark)
    new = [number for number in range(len(runs)) if number not in known.places]
    parts = [replace(part, number=next(free)) for part in parts_of(runs, cores, among=new)]
    results = read_parts(spark, runs, parts, tables)
    read = ReadParts([*known.read.parts, *parts], [*known.read.results, *results])
    missing = [number for number in range(len(runs)) if number not in known.found]
    measured = measured_runs(spark, runs, missing, read, tables, free)
    found = {**known.found, **{place: _last_word(judged, runs[place], run) for place, run in measured.items()}}
    remember(tables, runs, marks, compacted(tables, read), found)
    write_results(tables, [(run, found[number]) for number, run in enumerate(runs)])
    return found


def _last_word(judged: Callable[[TraceRun, Run], Run], traced: TraceRun, run: Run) -> Run:
    try:
        return judged(traced, run)
    except WRONG_DATA as error:
        problems = [f"the run cannot be judged: {why_broken(error)}", *run.problems]
        return msgspec.structs.replace(run, problems=problems, verdicts=[], verdict=VerdictOutcome.UNKNOWN)


def read_parts(spark: SparkSession, runs: Sequence[TraceRun], parts: Sequence[Part], tables: Place) -> list[PartRead]:
    """Read these parts of the traces, and write their tables of events."""
    if not parts:
        return []
    make_folder(tables)
    of_runs = [{place: runs[place] for place in chunks_by_run(part.chunks)} for part in parts]
    read = job.read(
        spark,
        [PartOfTraces(part.number, part.whole, own, part.chunks) for part, own in zip(parts, of_runs, strict=True)],
        tables,
    )
    pieces: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for part, result in zip(parts, read, strict=True):
        if not part.whole:
            pieces[part.chunks[0].run, part.chunks[0].file].append((part.number, result.read[0].lines))
    for of_file in pieces.values():
        count_lines_on(tables, of_file)
    return read


def measured_runs(
    spark: SparkSession,
    runs: Sequence[TraceRun],
    places: Sequence[int],
    read: ReadParts,
    tables: Place,
    free: Iterator[int],
) -> dict[int, Run]:
    """Measure and judge the runs at these places, from their tables of events, and write the other tables."""
    if not places:
        return {}
    buckets = 2 * job.cores_of(spark)
    tasks = _parts_of_events(runs, places, read, buckets, free)
    rows = job.measure(spark, tasks, tables) if tasks else []
    of_run = {place: list(of_one) for place, of_one in groupby(rows, key=lambda each: each.place)}
    if without_events := [place for place in places if place not in of_run]:
        write_gold(tables, next(free), [(runs[place], NO_TABLES) for place in without_events])
    files: defaultdict[int, list[FileRead]] = defaultdict(list)
    for result in read.results:
        for each in result.read:
            files[each.run].append(each)
    sums = _sums(spark, runs, tasks, of_run, tables)
    judged = {
        place: _judged(runs[place], of_run.get(place, ()), sums.get(runs[place].run_id, NO_SUMS), files[place])
        for place in places
    }
    write_runs(tables, next(free), [(runs[place], measured) for place, (_, measured) in judged.items()])
    return {place: run for place, (run, _) in judged.items()}


def _sums(
    spark: SparkSession,
    runs: Sequence[TraceRun],
    tasks: Sequence[PartOfEvents],
    of_run: Mapping[int, Sequence[Gold]],
    tables: Place,
) -> dict[str, Sums]:
    """What the queries over their tables say of the runs that were measured."""
    measured = {place: rows for place, rows in of_run.items() if not any(row.broken for row in rows)}
    if not measured:
        return {}
    first = {of.place: of.bucket for task in tasks for of in task.runs}
    buckets = {first[place] + row.share for place, rows in measured.items() for row in rows}  # others may have no files
    contexts = {place: rows[0].context for place, rows in measured.items()}
    windows = windows_of((runs[place].run_id, each.windows) for place, each in contexts.items() if each)
    return job.sums(spark, sorted(buckets), windows, tables)


def _judged(run: TraceRun, rows: Sequence[Gold], sums: Sums, files: Sequence[FileRead]) -> tuple[Run, Measured]:
    """The run's figures and verdicts, and what they rest on: all of its buckets, if there are any."""
    why = next((row.broken for row in rows if row.broken), "")
    try:
        if not why:
            measured = _together(rows, sums) if rows else measure(run, {})[0]
            return finished(run, measured, files), measured
    except WRONG_DATA as error:
        why = why_broken(error)
    return broken(run, why, files), measure(run, {})[0]


def _together(rows: Sequence[Gold], sums: Sums) -> Measured:
    """What was measured of all shares of a run."""
    first = rows[0]
    assert first.context is not None, "the first share has it"
    return together(first.context, first.counted, added([row.figures for row in rows]), sums, first.acting)


def _parts_of_events(
    runs: Sequence[TraceRun], places: Sequence[int], read: ReadParts, buckets: int, free: Iterator[int]
) -> list[PartOfEvents]:
    """The parts that have events of these runs, with what has to be known of each run."""
    wanted = set(places)
    pieces: defaultdict[int, list[PartRead]] = defaultdict(list)
    for part, result in zip(*read, strict=True):
        for place in wanted & chunks_by_run(part.chunks).keys():
            pieces[place].append(result)
    known: dict[int, RunIn] = {}
    numbers: dict[int, int] = {}  # of the buckets of small runs, by their parts
    for place, results in sorted(pieces.items()):
        parts = tuple(result.number for result in results)
        if len(parts) > 1:
            bucket, *_ = islice(free, buckets)
        else:
            bucket = numbers.get(parts[0]) or numbers.setdefault(parts[0], next(free))
        bounds = [result.bounds for result in results if result.bounds is not None]
        known[place] = RunIn(
            place,
            runs[place],
            parts,
            bucket,
            buckets if len(parts) > 1 else 1,
            (min(low for low, _ in bounds), max(high for _, high in bounds)) if bounds else None,
            reduce(or_, (result.groups for result in results)),
        )
    of_parts = [
        PartOfEvents(part.number, tuple(known[place] for place in chunks_by_run(part.chunks) if place in known))
        for part in read.parts
    ]
    return [part for part in of_parts if part.runs]


def _not_applicable(bundle: Place) -> list[NotApplicable]:
    """The combinations that a comparison skipped as not applicable; empty without a readable command.json."""
    command = json_if_readable(bundle / COMMAND, _Command)
    return [
        NotApplicable(scenario=each.scenario, design=each.design, reason=each.reason)
        for each in (command.left_out if command else ())
        if each.same_run_as is None
    ]


class _LeftOut(msgspec.Struct):
    """A scenario that was not run under a design."""

    scenario: str
    design: str
    reason: str = ""
    same_run_as: str | None = None


class _Command(msgspec.Struct):
    """The part of command.json that is read; it is common to all runs of a comparison."""

    left_out: list[_LeftOut] = []


def compose(runs: list[Run], not_applicable: Sequence[NotApplicable] = ()) -> Result:
    """The runs by scenario, with the verdict on all of them."""
    names = list(dict.fromkeys(run.scenario for run in runs))
    scenarios = [_scenario(name, runs) for name in names]
    return Result(
        schema_version=SCHEMA_VERSION,
        runs=runs,
        scenarios=scenarios,
        repeated=repeated(runs),
        not_applicable=list(not_applicable),
        growths=growths(runs),
        verdict=worst(run.verdict for run in runs),
    )


def _scenario(name: str, runs: list[Run]) -> Scenario:
    numbers = [
        number
        for number, run in enumerate(runs)
        if run.scenario == name or SAME_RUN.get((name, run.design)) == run.scenario
    ]
    numbers.sort(key=lambda number: _place_of_design(runs[number].design))
    return Scenario(scenario=name, runs=numbers, verdict=worst(runs[n].verdict for n in numbers))


def _place(run: Run) -> tuple[int, str, int, int, str]:
    first = SHOWN_FIRST.index(run.scenario) if run.scenario in SHOWN_FIRST else len(SHOWN_FIRST)
    return first, run.scenario, _place_of_design(run.design), run.seed, run.path


def _place_of_design(design: str) -> int:
    return DESIGN_NAMES.index(design) if design in DESIGN_NAMES else len(DESIGN_NAMES)
