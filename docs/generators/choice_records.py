"""Runs for `docs/which-design.md`: makes them, simulated, and keeps their figures in `docs/which-design.json`.

`python -m docs.generators.choice_records` makes all of them again (some minutes of CPU time), `--runs FOLDER FOLDER`
takes those of earlier `COMMANDS`. Then `make names` fills the page. A test makes some of them again.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from docs.generators.pages import DOCS
from docs.generators.records import COMMAND, lined

if TYPE_CHECKING:
    from collections.abc import Sequence

RECORDS = DOCS / "which-design.json"
SCENARIOS = ("rolling-restart", "join", "leave", "crash", "slow-member", "slow-listener", "split-brain")
#: Those that a consumer of today's Kafka can have.
DESIGNS = ("eager", "static", "cooperative", "consumer")
SEEDS = 5
METRICS = (
    "stopped",
    "standstill_s",
    "standstill_partition_s",
    "stalled_s",
    "two_delivering_partition_s",
    "authority_requests",
)
#: What else a consumer can have: the design `static` with another strategy than its own.
COOPERATIVE_WITH_IDS, STRATEGY = "static, cooperative-sticky", "partition.assignment.strategy=cooperative-sticky"
COLUMNS = (*DESIGNS[:-1], COOPERATIVE_WITH_IDS, DESIGNS[-1])
_RUN, _REPEATED = ("rebalance-lab", "run", *SCENARIOS), ("--simulated", "--repeat", str(SEEDS), "--seed", "1")
COMMANDS = (
    (*_RUN, "--design", ",".join(DESIGNS), *_REPEATED),
    (*_RUN, "--design", "static", "--set", STRATEGY, *_REPEATED),
)
#: By the names of the records: the command of their runs, and its design.
_RUNS_OF = {column: (0, column) for column in DESIGNS} | {COOPERATIVE_WITH_IDS: (1, "static")}


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a scenario in a design, or with its strategy."""

    scenario: str
    design: str
    seeds: list[int]
    figures: dict[str, list[float]]  #: by metric, one for each seed

    def spread(self, metric: str) -> tuple[float, float, float]:
        """The lowest, the median, the highest."""
        found = self.figures[metric]
        return min(found), median(found), max(found)


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """What the page is made from."""

    commands: list[list[str]]
    made: str
    cases: list[CaseRecord]

    def case(self, scenario: str, design: str) -> CaseRecord:
        (found,) = (each for each in self.cases if (each.scenario, each.design) == (scenario, design))
        return found


def read_records() -> Records:
    return msgspec.json.decode(RECORDS.read_bytes(), type=Records)


def cases_of(results: Sequence[Sequence[dict[str, Any]]]) -> list[CaseRecord]:
    """The runs of each command, by scenario and column."""
    found = []
    for scenario in SCENARIOS:
        for column in COLUMNS:
            command, design = _RUNS_OF[column]
            of_it = [run for run in results[command] if (run["scenario"], run["design"]) == (scenario, design)]
            of_it.sort(key=lambda run: run["seed"])
            figures = {metric: [run["metrics"][metric] for run in of_it] for metric in METRICS}
            found.append(
                CaseRecord(scenario=scenario, design=column, seeds=[run["seed"] for run in of_it], figures=figures)
            )
    return found


def write_records(folders: Sequence[Path], made: str) -> None:
    """From the `result.json` of each command; one line for each case."""
    results = [msgspec.json.decode((folder / "result.json").read_bytes())["runs"] for folder in folders]
    commands = msgspec.json.encode(COMMANDS).decode()
    RECORDS.write_text(
        f'{{"commands":{commands},"made":"{made}","cases":{lined(cases_of(results))}}}\n', encoding="utf-8"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--runs", type=Path, nargs=len(COMMANDS), help="folders of earlier runs, with their result.json"
    )
    parser.add_argument("--made", required=True, help="the day, as 2026-11-29")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folders = given.runs or [Path(folder) / str(place) / "latest" for place in range(len(COMMANDS))]
        if not given.runs:
            for (_, *arguments), where in zip(COMMANDS, folders, strict=True):
                subprocess.run([COMMAND, *arguments, "--output", where.parent], check=True)
        write_records(folders, given.made)


if __name__ == "__main__":
    main()
