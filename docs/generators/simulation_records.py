"""Runs for `docs/simulation.md`: makes them, simulated or live, and keeps their figures in `docs/simulation.json`.

`python -m docs.generators.simulation_records` simulates all runs of the page again (some minutes of CPU time), and with
`--live` performs them with real processes and a real ZooKeeper, on a quiet machine. `--runs FOLDER` takes earlier runs
instead. `--all` simulates the whole catalogue in all designs, for its verdicts. Then `make names` fills the page.
(`docs.generators.original_records` makes those of the originals.)
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.gold.run import measure
from comparison.pipeline.judged import finished
from comparison.pipeline.reading import read_tables
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.links import DEFAULT
from comparison.scenarios.run.experiments import Experiments, plan
from comparison.screen.progress import RunProgress
from comparison.simulation.runs import perform
from docs.generators.pages import DOCS
from docs.generators.records import lined, together, write_parts
from kernel.designs import DESIGN_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.results.run import Run

RECORDS = DOCS / "simulation.json"
#: What is set beside each other, and how often.
SCENARIOS = ("join", "leave", "crash", "pause")
DESIGNS = ("zookeeper", "eager", "cooperative", "consumer")
SEEDS = 2
#: How slow the machine of the live runs was. From the start of a process to its first answer they took 99 to 254 ms; an
#: operation of ZooKeeper's took 6 ms (median).
LINKS = "loopback,cost=1.5ms+-1.4,start=150ms+-70"


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a scenario in a design, with different seeds: lists have one value for each run."""

    scenario: str
    design: str
    seeds: list[int]
    verdicts: list[str]
    counts: dict[str, list[int]]  #: over all changes: rebalances, partitions, and what the models predict
    predicted: dict[str, list[int]]  #: by the models
    settled_ms: list[int]  #: of the slowest change, by the members' own events


class Measured(NamedTuple):
    """What a change of a group of originals has cost."""

    counts: dict[str, int]
    settled_ms: int  #: until each partition had an owner again


class OriginalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario's change costs the originals: lists have one value for each run."""

    scenario: str
    design: str
    of: str  #: whose clients, on whose brokers
    counts: dict[str, list[int]]
    settled_ms: list[int]


class Records(msgspec.Struct, frozen=True, kw_only=True):
    """What the page is made from."""

    live: list[CaseRecord] = []
    simulated: list[CaseRecord] = []
    originals: list[OriginalRecord] = []
    verdicts: dict[str, dict[str, str]] = {}  #: of simulated runs, by scenario and design


def read_records() -> Records:
    return msgspec.json.decode(RECORDS.read_bytes(), type=Records) if RECORDS.exists() else Records()


def write_records(records: Records) -> None:
    """One line for each case."""
    cases = {kind: lined(getattr(records, kind)) for kind in ("live", "simulated", "originals")}
    found = ((name, records.verdicts[name]) for name in CATALOGUE if name in records.verdicts)
    lines = ",\n".join(f'"{name}":{msgspec.json.encode(by_design).decode()}' for name, by_design in found)
    write_parts(RECORDS, cases | {"verdicts": f"{{\n{lines}\n}}"})


def judged(folders: Sequence[Path]) -> Iterator[Run]:
    """The runs in these folders, as the pipeline judges them, in this process."""
    for folder in folders:
        (run,) = find_runs([folder])
        (part,) = parts_of([run], 1)
        tables, read = read_tables([run], part.chunks)
        measured, _ = measure(run, tables.get(0, {}))
        yield finished(run, measured, read)


def repeats_of(runs: Sequence[Run]) -> list[tuple[tuple[str, str], list[Run]]]:
    """The runs of each scenario and design, by seed; in the order of their catalogues."""
    cases: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        cases.setdefault((run.scenario, run.design), []).append(run)
    return sorted(cases.items(), key=lambda item: place_of(*item[0]))


def case_records(runs: Sequence[Run]) -> list[CaseRecord]:
    """The runs by scenario and design."""
    return [
        CaseRecord(
            scenario=scenario,
            design=design,
            seeds=[run.seed for run in repeats],
            verdicts=[str(run.verdict) for run in repeats],
            counts=counted([_counts(run) for run in repeats]),
            predicted=counted([_predicted(run) for run in repeats]),
            settled_ms=[round(max(change.converge_ms or 0.0 for change in run.changes)) for run in repeats],
        )
        for (scenario, design), repeats in repeats_of(runs)
    ]


def counted(several: Sequence[Mapping[str, int]]) -> dict[str, list[int]]:
    """By name, the count of each run; what is 0 in all of them says nothing."""
    return {name: values for name, values in together(several, 0).items() if any(values)}


def _counts(run: Run) -> Counter[str]:
    found: Counter[str] = Counter()
    for change in run.changes:
        always = {"rebalances": change.rounds, "stopped": change.stopped, "moved": change.moved or 0}
        found.update(always | {each.what: each.measured or 0 for each in change.counted})
    return found


def _predicted(run: Run) -> Counter[str]:
    found: Counter[str] = Counter()
    for change in run.changes:
        found.update({each.what: each.model for each in change.counted if each.model is not None})
    return found


def place_of(scenario: str, design: str) -> tuple[int, int]:
    """The place of a case in the order of the page."""
    return [*CATALOGUE].index(scenario), DESIGN_NAMES.index(design)


def performed(names: Sequence[str], designs: Sequence[str], seeds: int, *, links: str | None, root: Path) -> list[Path]:
    """Perform the runs, live ones if there are no links; their folders."""
    planned = plan(names, designs, {"seed": 1} | ({"links": links} if links else {}), seeds)
    with RunProgress(len(planned)) as progress:
        experiments = Experiments(
            root=root,
            name="records",
            command=sys.argv,
            zookeeper="embedded",
            progress=progress,
            simulate=perform if links else None,
        )
        return list(experiments.perform(planned).run_dirs)


def updated(records: Records, runs: Sequence[Run], *, verdicts: bool) -> Records:
    """The records with these runs, live ones or simulated ones, in place of earlier ones."""
    if verdicts:
        found = {name: dict(by_design) for name, by_design in records.verdicts.items()}
        for run in runs:
            found.setdefault(run.scenario, {})[run.design] = str(run.verdict)
        return msgspec.structs.replace(records, verdicts=found)
    if all(run.parameters.get("simulated") for run in runs):
        return msgspec.structs.replace(records, simulated=case_records(runs))
    return msgspec.structs.replace(records, live=case_records(runs))


def main() -> None:
    parser = argparse.ArgumentParser(prog="simulation_records", description=__doc__)
    parser.add_argument("--live", action="store_true", help="perform the runs with real processes")
    parser.add_argument("--all", action="store_true", help="simulate the whole catalogue, and keep its verdicts")
    parser.add_argument("--runs", type=Path, nargs="+", help="folders of earlier runs of one kind, instead of new ones")
    given = parser.parse_args()
    names, designs, seeds = (list(CATALOGUE), DESIGN_NAMES, 1) if given.all else (SCENARIOS, DESIGNS, SEEDS)
    with tempfile.TemporaryDirectory() as scratch:
        if given.runs:
            folders = sorted({file.parent for folder in given.runs for file in folder.resolve().rglob("run.json")})
        else:
            links = None if given.live else DEFAULT if given.all else LINKS
            folders = performed(names, designs, seeds, links=links, root=Path(scratch))
        runs = list(judged(folders))
    write_records(updated(read_records(), runs, verdicts=given.all))


if __name__ == "__main__":
    main()
