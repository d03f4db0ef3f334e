"""What each event in the life of a group costs in each design: the condensed table of a sweep.

`rebalance-lab choose` adds these figures up. The table that is kept beside this module is of the simulated sweep
docs/sweeps/choose/choose.toml; `python -m comparison.choosing.costs SWEEP.JSON` makes it again, and any sweep of the
same scenarios gives another one.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from enum import Enum, auto
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from comparison.results.metrics import AUTHORITY_REQUESTS
from comparison.results.sweep import GROUP_SIZE, SweepData, is_of_runs
from kernel.platform.json_file import read_json
from kernel.platform.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable

KEPT = Path(__file__).with_name("costs.json")
COSTS_SCHEMA_VERSION = 1
#: The grid of the kept table, as the command that makes it again names it.
GRID = "docs/sweeps/choose/choose.toml"
ROLLING_RESTART, CRASH, JOIN, LEAVE, PAUSE = "rolling-restart", "crash", "join", "leave", "pause"
_SLOW_RECORD = re.compile(r"slow-record-([0-9]{1,6}(?:\.[0-9]{1,3})?)s")
#: Axes of a sweep that choices are made along, or that all cells have in common.
MEMBERS, PARTITIONS = "members", "partitions"
#: Of axes of timers: the session is three intervals of heartbeats.
_SESSION_TIMEOUT, _COMMIT_INTERVAL = "session-timeout", "auto.commit.interval.ms"
_EQUAL_TIMERS_S = {_SESSION_TIMEOUT: 3.0, _COMMIT_INTERVAL: 1.0}
_CHOSEN_ALONG = ("scenario", "design", GROUP_SIZE, MEMBERS, PARTITIONS)


STANDSTILL, STANDSTILL_IN_ALL, STOPPED, REPEATS = "standstill_s", "standstill_partition_s", "stopped", "duplicates"
REQUESTS = AUTHORITY_REQUESTS


class Margin(Enum):
    """How far a range reaches beyond the runs of one event, which show few moments of the timers and few sizes."""

    INTERVAL = auto()  #: an interval of heartbeats, and the time between two records of a partition
    #: The same of one member's partitions; if members change in turn, half an interval of each partition, too.
    PARTITIONS = auto()
    RECORDS = auto()  #: an interval of commits of one member's records, where any were repeated
    STOPS = auto()  #: one member's partitions, where there were any; if members change in turn, those left over, too
    REQUESTS = auto()  #: a request of each member


class Measure(NamedTuple):
    """A figure of a run that choices are made by."""

    metric: str
    heading: str
    margin: Margin
    per_partition: bool = False  #: interpolated for each partition
    per_record: bool = False  #: and given for a load of so many records a second
    is_longest: bool = False  #: of several events the longest counts, and not their sum


MEASURES = (
    Measure(STANDSTILL, "longest standstill, s", Margin.INTERVAL, is_longest=True),
    Measure(STANDSTILL_IN_ALL, "standstill, partition-s", Margin.PARTITIONS, per_partition=True),
    Measure("unowned_partition_s", "unowned, partition-s", Margin.PARTITIONS, per_partition=True),
    Measure(REPEATS, "records repeated", Margin.RECORDS, per_record=True),
    Measure(STOPPED, "partitions stopped", Margin.STOPS, per_partition=True),
    Measure(REQUESTS, "requests at the authority", Margin.REQUESTS),
)


class Bounds(msgspec.Struct, frozen=True, array_like=True):
    """A figure over the runs behind it: the lowest, a middle one, the highest."""

    low: float
    middle: float
    high: float


class CostCell(msgspec.Struct, frozen=True, kw_only=True):
    """What one event cost in runs of one design, with so many members and partitions."""

    scenario: str
    design: str
    members: int
    partitions: int
    runs: int  #: complete ones
    failed: int = 0
    figures: dict[str, Bounds]  #: those that are known of every complete run


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """All cells, and what they come from."""

    schema_version: int = COSTS_SCHEMA_VERSION
    command: list[str]
    made: str  #: the day, ISO 8601; '' where it is not known
    versions: dict[str, str]
    simulated: bool
    seeds: list[int]
    rate: int | None  #: records a second of all runs; None: they differ, or it is not known
    heartbeat_s: float = 1.0  #: the intervals of heartbeats and of automatic commits in the runs
    commit_s: float = 1.0
    cells: list[CostCell]


def slow_record_s(scenario: str) -> float | None:
    """How long a record takes in a scenario of one slow record; 0 in `join`, None in others."""
    if scenario == JOIN:
        return 0.0
    match = _SLOW_RECORD.fullmatch(scenario)
    return float(match[1]) if match else None


def slow_record(seconds: float) -> str:
    """The scenario of a record that takes so long: `join`, or a file that is like those beside the grid."""
    return str(PurePosixPath(GRID).with_name(f"slow-record-{seconds:g}s.toml")) if seconds else JOIN


def is_used(scenario: str) -> bool:
    """Whether choices are made by the scenario's runs."""
    return scenario in (ROLLING_RESTART, CRASH, LEAVE, PAUSE) or slow_record_s(scenario) is not None


def why_unusable(data: SweepData) -> str:
    """Why nothing can be chosen by a sweep's figures; '' if something can."""
    places = Counter((cell.design, cell.scenario, cell.members, cell.partitions) for cell in _cells(data))
    if not places:
        return (
            f"has no runs to choose by. Sweep {ROLLING_RESTART}, {CRASH}, {JOIN}, {LEAVE} or {PAUSE} with the axes "
            f"{MEMBERS} and {PARTITIONS}"
        )
    if places.most_common(1)[0][1] > 1:
        axes = [each.name for each in data.axes if each.name not in _CHOSEN_ALONG and len(each.values) > 1]
        return f"varies {', '.join(axes)} as well. Choose by a sweep with one value of each"
    return ""


def condensed(data: SweepData, made: str = "", versions: dict[str, str] | None = None) -> Costs:
    """The cells of a sweep that choices are made by; `why_unusable` must be ''."""
    return Costs(
        command=data.command,
        made=made,
        versions=versions or {},
        simulated=data.simulated,
        seeds=data.seeds,
        rate=data.rate,
        heartbeat_s=_interval_s(data, _SESSION_TIMEOUT) / 3,
        commit_s=_interval_s(data, _COMMIT_INTERVAL),
        cells=list(_cells(data)),
    )


def _interval_s(data: SweepData, axis: str) -> float:
    """What all runs have on an axis of milliseconds, or else what equal-timers gives them."""
    given = [value for each in data.axes if each.name == axis for value in each.values]
    return float(given[0]) / 1000 if given else _EQUAL_TIMERS_S[axis]


def _cells(data: SweepData) -> Iterable[CostCell]:
    for cell in data.cells:
        members, partitions = cell.at.get(MEMBERS), cell.at.get(PARTITIONS)
        if not isinstance(members, int) or not is_used(cell.scenario) or GROUP_SIZE in cell.at:
            continue
        if isinstance(partitions, str) and (each := re.fullmatch(r"([0-9]+)\*members", partitions)):
            partitions = int(each[1]) * members
        if not isinstance(partitions, int) or not is_of_runs(cell.by):
            continue
        found = {each.metric: figure for each in MEASURES if (figure := cell.figures.get(each.metric))}
        yield CostCell(
            scenario=cell.scenario,
            design=cell.design,
            members=members,
            partitions=partitions,
            runs=cell.runs,
            failed=cell.failed,
            figures={
                name: Bounds(each.low, each.median, each.high) for name, each in found.items() if each.n == cell.runs
            },
        )


@cache
def kept_costs() -> Costs:
    """The table that is kept with the package."""
    return read_json(KEPT, Costs)


def main(arguments: list[str]) -> None:
    """Make the kept table from `sweep.json`, with the versions in the `run.json` of its first run."""
    path = Path(arguments[0])
    data = read_json(path, SweepData)
    first = next(iter(sorted(path.parent.glob("*/*/*/*/run.json"))))
    versions = msgspec.json.decode(first.read_bytes())["versions"]
    day = time.strftime("%Y-%m-%d", time.gmtime(path.stat().st_mtime))
    kept = msgspec.structs.replace(
        condensed(data, day, versions), command=["rebalance-lab", "sweep", GRID, "--simulated"]
    )
    encoded = msgspec.json.encode(kept).decode()
    with whole_file(KEPT) as file:
        file.write_text(encoded.replace('{"scenario"', '\n{"scenario"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
