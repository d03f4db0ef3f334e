"""Which runs there are, which files each has, and how the files' clocks relate.

Clocks. `t_ns` counts from the moment at which the run's reference process (the runner) wrote its header. Two
files of one boot share CLOCK_MONOTONIC and compare exactly; files of different boots are aligned by their wall
clocks, and the run then carries a tolerance below which no order is claimed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from comparison.ownership.cover import TOLERANCE_ACROSS_BOOTS_NS, TOLERANCE_NS
from kernel.errors import UserError
from kernel.platform.places import below, each_of, is_in_store, resolved
from kernel.trace.events import Role
from kernel.trace.listed_file import RUN_FILE, ListedFile, RunFile, run_file
from kernel.trace.reader import HeaderLine, Reason, read_header
from kernel.trace.run_clock import clock_problem, offset_ns, reference_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kernel.platform.places import Place

_FIRST_REPEAT = 1
_NO_HEADER = HeaderLine(None)


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file and what its header says; `offset_ns` turns its clock into the run's."""

    path: Place
    size: int
    role: str = ""
    process: str = ""
    header: HeaderLine = _NO_HEADER
    offset_ns: int = 0
    problem: Reason | None = None  #: why none of its events can be used

    @property
    def name(self) -> str:
        return as_text(self.path.name)


@dataclass(frozen=True, slots=True)
class TraceRun:
    """The files of one design's run, and what their headers agree on."""

    run_id: str  #: `<bundle>/<scenario>/<design>[/seed-<seed>]`, as in the headers; unique among the runs analysed
    folder: Place
    scenario: str
    design: str
    seed: int
    files: tuple[TraceFile, ...]
    tolerance_ns: int
    implementations: frozenset[str] = frozenset()
    listed: tuple[ListedFile, ...] | None = None  #: the files that run.json says were opened; None: it has no list
    parameters: str = ""  #: those in run.json without the seed, as text that is equal if they are
    repeat: int = _FIRST_REPEAT
    problem: str = ""  #: why run.json could not be used, or does not list the files

    @property
    def boots(self) -> Mapping[str, str]:
        """The boot of each process; empty if all are of one. A process in several boots is by itself."""
        known = [(file.process, str(file.header.header["boot_id"])) for file in self.files if file.header.header]
        if len({boot for _, boot in known}) <= 1:
            return {}
        of_several = {process for process, boot in known if (process, boot) != (process, dict(known)[process])}
        return {process: process if process in of_several else boot for process, boot in known}

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def path(self) -> str:
        """Where the run is, for people."""
        return as_text(self.folder)


def as_text(path: Place | str) -> str:
    """A path as text that can be written; names need not be UTF-8."""
    return os.fsencode(str(path)).decode("utf-8", errors="replace")


def find_runs(folders: Iterable[Place]) -> list[TraceRun]:
    """Every run at or below the given folders, in order: it has trace files, or lists some in its run.json."""
    found: dict[Place, list[Place]] = {}
    for folder in folders:
        found |= dict(sorted(_traces_by_run(resolved(folder)).items()))
    runs = each_of(lambda each: _run_of(*each), [*found.items()], in_store=any(map(is_in_store, found)))
    return _numbered([run for run in runs if run is not None])


def _traces_by_run(folder: Place) -> dict[Place, list[Place]]:
    """The trace files of each folder that has any, or a run.json."""
    found: defaultdict[Place, list[Place]] = defaultdict(list)
    for path in below(folder, "trace/*.jsonl", RUN_FILE):
        if path.name == RUN_FILE:
            found[path.parent] += []
        else:
            found[path.parent.parent].append(path)
    return found


def _described_in(folder: Place) -> tuple[RunFile, str]:
    """What run.json says, which is nothing without one, and why nobody can say which files the run had."""
    nothing = RunFile("", "", "", 0, None)
    try:
        about = run_file(folder)
    except UserError as error:
        return nothing, str(error)
    if about is None:
        return nothing, f"{RUN_FILE} is missing: which trace files the run had is unknown"
    return about, "" if about.traces is not None else f"{RUN_FILE} has no list of the trace files that the run had"


def _numbered(runs: Sequence[TraceRun]) -> list[TraceRun]:
    """The same with unique ids, and numbered repeats of what differs in the seed only."""
    seen: defaultdict[str, int] = defaultdict(int)
    unique = []
    for run in runs:
        seen[run.run_id] += 1
        count = seen[run.run_id]
        unique.append(run if count == 1 else replace(run, run_id=f"{run.run_id}#{count}"))
    alike: defaultdict[tuple[str, ...], list[TraceRun]] = defaultdict(list)
    for run in unique:
        alike[run.run_id.partition("/")[0], run.scenario, run.design, run.parameters].append(run)
    repeats = {
        run.run_id: number
        for runs_alike in alike.values()
        for number, run in enumerate(sorted(runs_alike, key=lambda run: (run.seed, run.run_id)), _FIRST_REPEAT)
    }
    return [replace(run, repeat=repeats[run.run_id]) for run in unique]


def _run_of(folder: Place, traces: Sequence[Place]) -> TraceRun | None:
    """The run in a folder; None if there is none: nothing was traced, and nobody says that something was to be."""
    about, problem = _described_in(folder)
    if not traces and not about.traces:
        return None
    files, headers = [], []
    for path in sorted(traces):
        header, reason, detail = read_header(path)
        if header is not None:
            headers.append(header)
        line = HeaderLine(header, reason, detail)
        files.append(TraceFile(path, _size(path), header=line, problem=None if header else reason))
    reference = reference_of(headers)
    by_file = iter(headers)
    files = [file if file.problem else _described(file, next(by_file), reference) for file in files]
    files = [_with_a_possible_clock(file) for file in files]
    one_boot = len({header["boot_id"] for header in headers}) <= 1
    return TraceRun(
        run_id=str(reference["run"]) if reference else about.run or as_text(folder.name),
        folder=folder,
        scenario=str(reference["scenario"]) if reference else about.scenario,
        design=_design_of(reference, headers) or about.design,
        seed=int(reference["seed"]) if reference else about.seed,
        files=tuple(files),
        tolerance_ns=TOLERANCE_NS if one_boot else TOLERANCE_ACROSS_BOOTS_NS,
        implementations=frozenset(str(h["implementation"]) for h in headers if h["role"] == Role.MEMBER),
        listed=about.traces,
        parameters=about.parameters,
        problem=problem,
    )


def _design_of(reference: Mapping[str, Any] | None, headers: Sequence[Mapping[str, Any]]) -> str:
    """By the reference; played by hand, that may be a broker, which knows no design, and then by any other file."""
    first = () if reference is None else (reference,)
    return next((str(header["design"]) for header in (*first, *headers) if header["design"]), "")


def _size(path: Place) -> int:
    """The bytes of a file; 0 of what cannot be read."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except OSError:
        return 0


def _described(file: TraceFile, header: Mapping[str, Any], reference: Mapping[str, Any] | None) -> TraceFile:
    assert reference is not None
    return replace(
        file,
        role=str(header["role"]),
        process=str(header["process"]),
        offset_ns=offset_ns(header, reference),
    )


def _with_a_possible_clock(file: TraceFile) -> TraceFile:
    """The same, or one that cannot be used: its times would not fit beside those of the other files."""
    detail = clock_problem(file.offset_ns)
    if not detail:
        return file
    return replace(file, offset_ns=0, problem=Reason.TIME, header=HeaderLine(None, Reason.TIME, detail))
