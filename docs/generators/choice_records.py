"""Runs for `docs/which-design.md`: makes them, simulated, and keeps their figures in `docs/which-design.json`.

`python -m docs.generators.choice_records` makes all of them again (some minutes of CPU time), `--runs FOLDER` takes
those of an earlier `COMMAND`. Then `make names` fills the page. A test makes some of them again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from docs.generators.pages import DOCS
from docs.generators.records import lined

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
COMMAND = (
    "rebalance-lab",
    "run",
    *SCENARIOS,
    *("--design", ",".join(DESIGNS)),
    *("--simulated", "--repeat", str(SEEDS), "--seed", "1"),
)


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a scenario in a design."""

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

    command: list[str]
    made: str
    cases: list[CaseRecord]

    def case(self, scenario: str, design: str) -> CaseRecord:
        (found,) = (each for each in self.cases if (each.scenario, each.design) == (scenario, design))
        return found


def read_records() -> Records:
    return msgspec.json.decode(RECORDS.read_bytes(), type=Records)


def cases_of(runs: list[dict[str, Any]]) -> list[CaseRecord]:
    """The runs of a result, by scenario and design."""
    found = []
    for scenario in SCENARIOS:
        for design in DESIGNS:
            of_it = [run for run in runs if (run["scenario"], run["design"]) == (scenario, design)]
            of_it.sort(key=lambda run: run["seed"])
            figures = {metric: [run["metrics"][metric] for run in of_it] for metric in METRICS}
            found.append(
                CaseRecord(scenario=scenario, design=design, seeds=[run["seed"] for run in of_it], figures=figures)
            )
    return found


def write_records(result: Path, made: str) -> None:
    """From a run's `result.json`; one line for each case."""
    runs = [run for run in msgspec.json.decode(result.read_bytes())["runs"] if run["scenario"] in SCENARIOS]
    command = msgspec.json.encode(COMMAND).decode()
    RECORDS.write_text(f'{{"command":{command},"made":"{made}","cases":{lined(cases_of(runs))}}}\n', encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, help="folder of earlier runs, with their result.json")
    parser.add_argument("--made", required=True, help="the day, as 2026-11-29")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        where = given.runs or Path(folder) / "runs"
        if given.runs is None:
            program = Path(sys.executable).with_name(COMMAND[0])
            subprocess.run([program, *COMMAND[1:], "--output", where], check=True)
            where /= "latest"
        write_records(where / "result.json", given.made)


if __name__ == "__main__":
    main()
