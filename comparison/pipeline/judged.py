"""From what was measured of a run, and how its files were, to its figures and verdicts."""

from __future__ import annotations

from dataclasses import asdict
from functools import reduce
from typing import TYPE_CHECKING

import msgspec

from comparison.pipeline.figures.assemble import assemble
from comparison.pipeline.figures.judging import judge
from comparison.pipeline.measured import Measured, ProcessEnded
from comparison.results.run import FileIntegrity as FileFound
from comparison.wrong_data import what_was_raised
from kernel.trace.integrity import FileIntegrity, Integrity, ProcessEnd, file_integrity, run_problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.reading import FileRead
    from comparison.results.run import Run


def why_broken(error: BaseException) -> str:
    """Why a run cannot be analysed: an error of WRONG_DATA, and where it was raised."""
    return what_was_raised(error)


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
