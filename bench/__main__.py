"""`make bench`: measure the parts, each beside a peer measured in the same run.

Compare ratios and counts; absolute times are those of this machine and do not repeat on shared cores. Each part is a
module that checks every answer it gets, and can be run alone (`--only`).
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from kernel.platform.lean_imports import import_lean

import_lean()  # before what loads kio

from bench import (  # noqa: E402
    assign_report,
    bystanders,
    commits,
    consumer_groups,
    consumer_heartbeats,
    failover,
    groups,
    heartbeats,
    herd_report,
    pipeline,
    rolling_report,
    simulation,
)
from bench.bench import Bench  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

HERD = herd_report.Plan(sizes=(5, 10, 20, 50), runs=5, brokers=(1,))
HERD_SMOKE = herd_report.Plan(sizes=(3,), runs=1, brokers=(1,))


def measure_herd(bench: Bench) -> None:
    plan = HERD_SMOKE if bench.smoke else HERD
    plan = herd_report.Plan(bench.sizes or plan.sizes, bench.runs or plan.runs, bench.brokers or plan.brokers)
    herd_report.run(bench.folder, plan, bench.console)


#: In running order.
PARTS: dict[str, Callable[[Bench], None]] = {
    "heartbeats": heartbeats.run,
    "groups": groups.run,
    "bystanders": bystanders.run,
    "failover": failover.run,
    "commits": commits.run,
    "consumer-heartbeats": consumer_heartbeats.run,
    "consumer-groups": consumer_groups.run,
    "consumer-bystanders": bystanders.run_consumers,
    "rolling": rolling_report.run,
    "herd": measure_herd,
    "assignors": assign_report.run,
    "pipeline": pipeline.run,
    "simulation": simulation.run,
}


@click.command()
@click.option("--smoke", is_flag=True, help="Run with small sizes, only to see that everything works.")
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True, help="Run only this part (repeatable).")
@click.option(
    "--members",
    type=click.IntRange(1),
    multiple=True,
    help="Number of members (connections, for heartbeats), instead of each part's default (repeatable).",
)
@click.option(
    "--brokers", type=click.IntRange(1), multiple=True, help="Number of brokers in the herd part (repeatable)."
)
@click.option("--runs", type=click.IntRange(1), default=None, help="Runs per figure, instead of each part's default.")
@click.option("--ours-only", is_flag=True, help="Skip Kafka, for a quick look at a change of ours.")
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path), help="Write the figures of every single run to this file."
)
@assign_report.command_line
@pipeline.command_line
@click.option(
    "--profile",
    type=click.Path(path_type=Path),
    is_flag=False,
    flag_value=Path("runs/profiles"),
    help="Profile our broker while it is measured, print its most expensive functions, and write the profiles to PATH "
    "(default: runs/profiles).",
)
def main(
    smoke: bool,
    only: tuple[str, ...],
    members: tuple[int, ...],
    brokers: tuple[int, ...],
    runs: int | None,
    json_file: Path | None,
    profile: Path | None,
    **asked: Any,
) -> None:
    """Measure performance beside a real Kafka, and print the figures."""
    console = Console(width=None if os.isatty(1) else 150)
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-bench-") as temporary:
        bench = Bench(Path(temporary), console, smoke, runs, members, brokers, profile, asked)
        bench.state(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        if smoke:
            bench.state("smoke run: nothing is warmed up, so the figures mean nothing")
        for name in only or PARTS:
            started = time.monotonic()
            try:
                PARTS[name](bench)
            finally:
                if json_file is not None:  # after each part, because this one or a later one may fail
                    bench.figures.write(json_file)
            bench.state(f"{name} took {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
