"""Runs for `docs/results.md`: makes them, and keeps their figures in `docs/results.json`.

`python -m docs.generators.result_records` performs all runs of the page again, with real processes and a real
ZooKeeper: an hour. Names of commands (`compare`, `rolling-restart`, ...) perform those alone, and `--runs FOLDER` takes
what earlier ones have left in `FOLDER/NAME`. Then `make names` fills the page.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from comparison.report.summaries.figures import named
from comparison.results.result import RESULT, Spread, read_result
from comparison.results.run import Change, Run  # noqa: TC001 - msgspec reads the annotations
from docs.generators.pages import DOCS
from docs.generators.records import COMMAND, asked, lined, together, write_parts
from docs.generators.simulation_records import repeats_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

RECORDS = DOCS / "results.json"
#: Every figure is a median of so many runs, with the seeds from 1 on.
REPEATS = 5
_REPEATED = ("--seed", "1", "--repeat", f"{REPEATS}")
#: By name: what is typed.
COMMANDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "compare": ("compare", *_REPEATED),
        "rolling-restart": ("run", "rolling-restart", "--design", "all", *_REPEATED),
        "changes": ("run", "join", "leave", "crash", "--design", "all", *_REPEATED),
        "slow-member": ("run", "slow-member", "--design", "all", *_REPEATED),
        "faults": ("run", "split-brain", "pause", "coordinator-failover", "--design", "all", *_REPEATED),
    }
)
#: Scenarios in which the same change comes at several sizes of the group.
_AT_SIZES = ("herd",)
_LOAD = "load.txt"
_SAMPLED_S = 15
#: Figures of a run, and of its changes, that are kept if a run of the scenario has them.
_METRICS = (
    *("lost", "two_delivering_partition_s", "stale_writes", "old_accepted", "moved_back", "fenced", "refused"),
    *("stalled_s", "unowned_partition_s"),
)
_SUMMED = ("rounds", "stopped", "moved", "unowned_partition_s", "zk_reads", "notifications", "attempts_failed")
_REQUESTS = ("JoinGroup", "SyncGroup")


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a scenario in a design: lists have one value for each run, in the order of the seeds."""

    scenario: str
    design: str
    seeds: list[int]
    verdicts: list[str]
    figures: dict[str, list[float | None]]  #: of a change with its name in front: `join to 21: zk_reads`

    def spread(self, figure: str) -> Spread | None:
        """Median and range; None if no run has measured the figure."""
        return self.spread_of_sum((figure,))

    def spread_of_sum(self, figures: Iterable[str]) -> Spread | None:
        """The same of what several figures of each run add up to."""
        measured = [self.figures[name] for name in figures if name in self.figures]
        return Spread.of([None if None in each else sum(filter(None, each)) for each in zip(*measured, strict=True)])


class CommandRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one command, and where and when they were made."""

    command: str
    date: str
    versions: dict[str, str]
    machine: dict[str, str | int]
    load: list[float]  #: lowest and highest load average over a minute, the runs themselves included
    cases: list[CaseRecord]

    def case(self, scenario: str, design: str) -> CaseRecord:
        return next(each for each in self.cases if (each.scenario, each.design) == (scenario, design))


def read_records() -> dict[str, CommandRecord]:
    """The runs by the names of their commands."""
    return msgspec.json.decode(RECORDS.read_bytes(), type=dict[str, CommandRecord]) if RECORDS.exists() else {}


def write_records(records: Mapping[str, CommandRecord]) -> None:
    """One line for each case."""
    write_parts(RECORDS, {name: _lines(records[name]) for name in COMMANDS if name in records})


def _lines(record: CommandRecord) -> str:
    head = msgspec.json.encode(msgspec.structs.replace(record, cases=[])).decode().removesuffix("[]}")
    return f"{head}{lined(record.cases)}}}"


def case_records(runs: Sequence[Run]) -> list[CaseRecord]:
    """The runs by scenario and design."""
    return [
        CaseRecord(
            scenario=scenario,
            design=design,
            seeds=[run.seed for run in repeats],
            verdicts=[str(run.verdict) for run in repeats],
            figures=together([dict(figures_of(run)) for run in repeats], None),
        )
        for (scenario, design), repeats in repeats_of(runs)
    ]


def figures_of(run: Run) -> Iterator[tuple[str, float | None]]:
    """What is kept of a run. Changes of one name are added up, and the slowest says when they had settled."""
    yield from ((name, _rounded(run.metrics[name])) for name in _METRICS if run.metrics.get(name) is not None)
    if run.waits:
        yield "longest_wait_ms", _rounded(max(wait.longest_ms for wait in run.waits))
    changes: dict[str, list[Change]] = {}
    for change in run.changes:
        is_repeated = run.scenario in _AT_SIZES and change.members is not None
        changes.setdefault(named(change) if is_repeated else change.change, []).append(change)
    for name, each in changes.items():
        yield from ((f"{name}: {figure}", value) for figure, value in _changed(each))


def _changed(changes: Sequence[Change]) -> Iterator[tuple[str, float | None]]:
    for name in _SUMMED:
        yield name, _rounded(sum(getattr(change, name) or 0 for change in changes))
    asked = sum((Counter(change.requests) for change in changes), Counter())
    yield from ((api, asked[api]) for api in _REQUESTS)
    watching = [count for change in changes for count in change.counted if count.what.startswith("coordinator ")]
    yield from ((count.what, count.measured) for count in watching)
    for name in ("converge_ms", "settled_ms"):
        times_ms = [getattr(change, name) for change in changes]
        yield name, None if None in times_ms else _rounded(max(times_ms))


def _rounded(value: float | None) -> float | None:
    return value if value is None else round(value, 3)


def record_of(folder: Path) -> CommandRecord:
    """What the runs of one command have left in this folder."""
    bundle = (folder / "latest").resolve()
    runs = read_result(bundle / RESULT).runs
    begun = msgspec.json.decode((bundle / runs[0].path / "run.json").read_bytes())
    command = begun["command"]
    place = command.index("--output")
    load = [float(line) for line in (folder / _LOAD).read_text(encoding="utf-8").split()]
    return CommandRecord(
        command=" ".join(command[:place] + command[place + 2 :]),
        date=date.fromisoformat(bundle.name[:8]).isoformat(),
        versions=begun["versions"],
        machine=begun["machine"],
        load=[min(load), max(load)],
        cases=case_records(runs),
    )


def perform(name: str, folder: Path) -> None:
    """Make the runs of a command in this folder, and beside them note the load of the machine."""
    folder.mkdir(parents=True)
    with (folder / _LOAD).open("w", encoding="utf-8") as load:
        made = subprocess.Popen([COMMAND, *COMMANDS[name], "--output", folder])
        while made.poll() is None:
            print(os.getloadavg()[0], file=load)
            time.sleep(_SAMPLED_S)


def main() -> None:
    for name, folder, is_made in asked("result_records", __doc__, COMMANDS):
        if not is_made:
            perform(name, folder)
        write_records({**read_records(), name: record_of(folder)})


if __name__ == "__main__":
    main()
