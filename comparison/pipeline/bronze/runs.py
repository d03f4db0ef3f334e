"""Which runs there are, which files each has, and how the files' clocks relate.

Clocks. `t_ns` counts from the moment at which the run's reference process (the runner) wrote its header. Two
files of one boot share CLOCK_MONOTONIC and compare exactly; files of different boots are aligned by their wall
clocks, and the run then carries a tolerance below which no order is claimed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kernel.errors import UserError
from kernel.trace.events import Role
from kernel.trace.listed_file import ListedFile, listed_traces
from kernel.trace.reader import HeaderLine, read_header

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from kernel.trace.reader import Reason

#: Below this no two moments of one machine are called apart: the transaction log has milliseconds.
TOLERANCE_NS = 1_000_000
#: The same between machines, or boots, that only wall clocks tie together.
TOLERANCE_ACROSS_BOOTS_NS = 50_000_000
_FIRST_REPEAT = 1
_NO_HEADER = HeaderLine(None)


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One file and what its header says; `offset_ns` turns its clock into the run's."""

    path: Path
    size: int
    role: str = ""
    process: str = ""
    header: HeaderLine = _NO_HEADER
    offset_ns: int = 0
    problem: Reason | None = None  #: why none of its events can be used


@dataclass(frozen=True, slots=True)
class TraceRun:
    """The files of one design's run, and what their headers agree on."""

    run_id: str  #: `<bundle>/<scenario>/<design>[/seed-<seed>]`, as in the headers; unique among the runs analysed
    folder: Path
    scenario: str
    design: str
    seed: int
    files: tuple[TraceFile, ...]
    tolerance_ns: int
    implementations: frozenset[str] = frozenset()
    listed: tuple[ListedFile, ...] | None = None  #: the files that run.json says were opened; None: it has no list
    repeat: int = _FIRST_REPEAT

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


def find_runs(folders: Iterable[Path]) -> list[TraceRun]:
    """Every folder at or below the given ones that has a `trace` folder with files in it, in order."""
    found = [
        run
        for folder in folders
        for run in sorted({path.parent.parent for path in folder.resolve().glob("**/trace/*.jsonl")})
    ]
    return _numbered([_run_of(folder) for folder in dict.fromkeys(found)])


def _numbered(runs: Sequence[TraceRun]) -> list[TraceRun]:
    """The same with unique ids, and numbered repeats of what differs in the seed only."""
    seen: defaultdict[str, int] = defaultdict(int)
    unique = []
    for run in runs:
        seen[run.run_id] += 1
        count = seen[run.run_id]
        unique.append(run if count == 1 else replace(run, run_id=f"{run.run_id}#{count}"))
    alike: defaultdict[tuple[str, str, str], list[TraceRun]] = defaultdict(list)
    for run in unique:
        alike[run.run_id.partition("/")[0], run.scenario, run.design].append(run)
    repeats = {
        run.run_id: number
        for runs_alike in alike.values()
        for number, run in enumerate(sorted(runs_alike, key=lambda run: (run.seed, run.run_id)), _FIRST_REPEAT)
    }
    return [replace(run, repeat=repeats[run.run_id]) for run in unique]


def _run_of(folder: Path) -> TraceRun:
    files, headers = [], []
    for path in sorted((folder / "trace").glob("*.jsonl")):
        header, reason, detail = read_header(path)
        if header is not None:
            headers.append(header)
        line = HeaderLine(header, reason, detail)
        files.append(TraceFile(path, _size(path), header=line, problem=None if header else reason))
    reference = min(headers, key=lambda h: (h["role"] != Role.RUNNER, h["monotonic_ns"]), default=None)
    by_file = iter(headers)
    files = [file if file.problem else _described(file, next(by_file), reference) for file in files]
    one_boot = len({header["boot_id"] for header in headers}) <= 1
    return TraceRun(
        run_id=str(reference["run"]) if reference else folder.name,
        folder=folder,
        scenario=str(reference["scenario"]) if reference else "",
        design=str(reference["design"]) if reference else "",
        seed=int(reference["seed"]) if reference else 0,
        files=tuple(files),
        tolerance_ns=TOLERANCE_NS if one_boot else TOLERANCE_ACROSS_BOOTS_NS,
        implementations=frozenset(str(h["implementation"]) for h in headers if h["role"] == Role.MEMBER),
        listed=_listed(folder),
    )


def _listed(folder: Path) -> tuple[ListedFile, ...] | None:
    """The trace files that run.json lists; None without a list, or without a readable run.json."""
    try:
        return listed_traces(folder)
    except UserError:
        return None


def _size(path: Path) -> int:
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
        offset_ns=_offset_ns(header, reference),
    )


def _offset_ns(header: Mapping[str, Any], reference: Mapping[str, Any]) -> int:
    """What to add to a file's nanoseconds to get nanoseconds since the reference's header."""
    if header["boot_id"] == reference["boot_id"]:
        return -int(reference["monotonic_ns"])
    return int(header["wall_ns"]) - int(header["monotonic_ns"]) - int(reference["wall_ns"])
