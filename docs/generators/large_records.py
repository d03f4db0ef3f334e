"""Sweeps for `docs/large-groups.md`: makes them, and keeps their figures in `docs/large-groups.json`.

`python -m docs.generators.large_records` makes all sweeps again: some twenty minutes of CPU time. Names of sweeps make
those alone, and `--runs FOLDER` takes what earlier sweeps have left in `FOLDER/NAME`, or goes on with them. Then
`make names` fills the page and draws its pictures.
"""

from __future__ import annotations

import subprocess
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from comparison.report.sweep.detection import COST, DETECTED
from comparison.results.result import Spread  # noqa: TC001 - msgspec reads the annotations
from comparison.results.sweep import SweepData
from docs.generators.pages import DOCS
from docs.generators.records import COMMAND, asked, lined, write_parts
from kernel.designs import COORDINATED, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

RECORDS = DOCS / "large-groups.json"
_COORDINATED = f"design={','.join(COORDINATED)}"
_ZOOKEEPER = f"design={ZOOKEEPER}"
#: Forming is most of what a large group costs: it forms once for both.
_BOTH = f"scenario={DOCS / 'sweeps' / 'join-and-crash.toml'}"
_PARTITIONS = "partitions=2*members"
_START, _LINKS = "scenario=mass-start", "link=loopback,zone,region"
_TIMEOUTS = "session-timeout=3000,6000,12000,24000,48000"
#: By name: the axes of a sweep, how many seeds it has, and up to how many members everything runs.
SWEEPS: Mapping[str, tuple[tuple[str, ...], int, int]] = MappingProxyType(
    {
        "sizes": ((_BOTH, _COORDINATED, "members=10..1000*10", _PARTITIONS), 5, 1),
        "larger": ((_BOTH, _COORDINATED, "members=10000", _PARTITIONS), 3, 1),
        "largest": ((_BOTH, _COORDINATED, "members=100000", _PARTITIONS), 1, 1),
        "zookeeper": (("scenario=join,crash", _ZOOKEEPER, "members=10..100000*10", _PARTITIONS), 1, 100),
        "detection": (("scenario=crash", _COORDINATED, "members=100", _PARTITIONS, _TIMEOUTS), 3, 1),
        "sessions": (
            ("scenario=crash", _ZOOKEEPER, "members=10", _PARTITIONS, "session-timeout=3000,6000,12000"),
            1,
            100,
        ),
        "conflicts": ((_START, _ZOOKEEPER, "members=4..32*2", _LINKS, _PARTITIONS), 3, 100),
        "retries": ((_START, _ZOOKEEPER, "members=8..32*2", _LINKS, _PARTITIONS, "rebalance.max.retries=1"), 3, 100),
    }
)
_CHANGE = ("converge_ms", "unowned_partition_s", "authority_requests", "authority_cpu_s", "rounds", "moved")
#: The figures that are drawn; the others stay where they were measured.
KEPT = (
    *(f"{change}.{figure}" for change in ("join", "crash") for figure in _CHANGE),
    DETECTED,
    "crash.takeover_ms",
    COST,
    "attempts_failed",
    "rebalances_failed",
)


class CellRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one cell of a sweep: median and range over its seeds."""

    scenario: str
    design: str
    at: dict[str, int | float | str | None]  #: by axis
    by: str  #: how it was computed
    figures: dict[str, Spread]


def read_records() -> dict[str, list[CellRecord]]:
    """The cells by the names of their sweeps."""
    if not RECORDS.exists():
        return {}
    return msgspec.json.decode(RECORDS.read_bytes(), type=dict[str, list[CellRecord]])


def write_records(records: Mapping[str, Sequence[CellRecord]]) -> None:
    """One line for each cell."""
    write_parts(RECORDS, {name: lined(records[name]) for name in SWEEPS if name in records})


def cell_records(data: SweepData) -> list[CellRecord]:
    """What is kept of a sweep."""
    return [
        CellRecord(
            scenario=cell.scenario,
            design=cell.design,
            at=cell.at,
            by=cell.by,
            figures={name: cell.figures[name] for name in KEPT if name in cell.figures},
        )
        for cell in data.cells
        if cell.runs
    ]


def made(name: str, folder: Path) -> SweepData:
    """Make what is missing of a sweep in this folder, and read what it found."""
    axes, seeds, full_stack_max = SWEEPS[name]
    options = [option for axis in axes for option in ("--grid", axis)]
    counts = ["--seeds", f"{seeds}", "--full-stack-members", f"{full_stack_max}"]
    command = [COMMAND, "sweep", "--simulated", *options, *counts, "--output", folder]
    subprocess.run(list(map(str, command)), check=True)
    return msgspec.json.decode((folder / "sweep.json").read_bytes(), type=SweepData)


def main() -> None:
    for name, folder, _ in asked("large_records", __doc__, SWEEPS):
        write_records({**read_records(), name: cell_records(made(name, folder))})


if __name__ == "__main__":
    main()
