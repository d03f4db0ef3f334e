"""The traces that a command is given: files, the folder of a run, or a folder with one run in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comparison.near_paths import holds_events, path_complaint
from kernel.errors import EnvironmentFault, UserError
from kernel.trace.reader import read_trace
from kernel.trace.run_clock import clock_problem, offset_ns, reference_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kernel.trace.reader import Trace

_RUNS_SHOWN = 8


def read_traces(sources: Sequence[Path]) -> list[Trace]:
    """Read each trace file once; warn of lines that cannot be used, and of clocks."""
    files = dict.fromkeys(file for source in sources for file in _files(source))
    traces = [read_trace(path) for path in files]
    reference = reference_of(trace.header for trace in traces if trace.header is not None)
    for path, trace in zip(files, traces, strict=True):
        if (unreadable := trace.unreadable) is not None:
            click.echo(f"warning: {path}: cannot be read: {unreadable}", err=True)
        elif trace.quarantined:
            reasons = ", ".join(sorted({each.reason.value for each in trace.quarantined}))
            click.echo(f"warning: {path}: {len(trace.quarantined)} unusable lines ignored ({reasons})", err=True)
        elif trace.header and reference and (problem := clock_problem(offset_ns(trace.header, reference))):
            click.echo(f"warning: {path} ignored: {problem}", err=True)
    return traces


def run_of(folder: Path) -> Path:
    """The folder of the one run in it, which has its traces, or those below `trace/`.

    Raises `UserError` for a file, and for a folder with no run or several.
    """
    if not folder.is_dir():
        raise EnvironmentFault(path_complaint(folder, "Give the folder of a run, such as runs/latest/crash/eager"))
    for traces in (folder / "trace", folder):
        if any(traces.glob("*.jsonl")):
            return folder
    runs = sorted(path.parent for path in folder.rglob("trace") if any(path.glob("*.jsonl")))
    if not runs:
        raise UserError(f"no trace (*.jsonl) in {folder}. Give the folder of a run")
    if len(runs) > 1:
        more = f" and {len(runs) - _RUNS_SHOWN} more" if len(runs) > _RUNS_SHOWN else ""
        raise UserError(
            f"{len(runs)} runs in {folder}. Give one of them: {', '.join(map(str, runs[:_RUNS_SHOWN]))}{more}"
        )
    return runs[0]


def _files(source: Path) -> list[Path]:
    """A trace file, a folder of them, a run's folder, or a folder with one run in it."""
    if source.is_file():
        return [source]
    if not source.is_dir():
        raise EnvironmentFault(path_complaint(source, "Give trace/*.jsonl or a run's folder", holds_events))
    run = run_of(source)
    return sorted((run / "trace").glob("*.jsonl")) or sorted(run.glob("*.jsonl"))
