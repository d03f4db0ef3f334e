"""`make bench`: the figures, measured in this run beside a peer of this run. Seconds are of this machine now.

Compare the ratios and the counts; absolute times on shared cores do not repeat. Each part is a module that checks what
it is answered, and can be run alone (`--only`).
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from bench import (
    assign_report,
    bystanders,
    commits,
    events,
    failover,
    groups,
    heartbeats,
    herd_report,
    rolling,
    rolling_report,
)
from bench.bench import Bench
from comparison.pipeline.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable

HERD = herd_report.Plan(sizes=(5, 10, 20, 50), runs=5, brokers=(1,))
HERD_SMOKE = herd_report.Plan(sizes=(3,), runs=1, brokers=(1,))
EVENTS = 100_000


def measure_rolling(bench: Bench) -> None:
    plan = rolling_report.SMOKE if bench.smoke else rolling.Plan()
    rolling_report.run(bench.folder / "rolling", plan, bench.runs or 1, bench.console)


def measure_herd(bench: Bench) -> None:
    plan = HERD_SMOKE if bench.smoke else HERD
    plan = herd_report.Plan(bench.sizes or plan.sizes, bench.runs or plan.runs, bench.brokers or plan.brokers)
    herd_report.run(bench.folder, plan, bench.console)


def measure_events(bench: Bench) -> None:
    count = 10_000 if bench.smoke else EVENTS
    with spark_session(work_dir=bench.folder / "spark") as spark:
        rate = events.event_rate(spark, bench.folder, count)
    made = Table(title=f"Pipeline, {rate.events:,} made-up events", title_justify="left")
    for number, column in enumerate(("", "s", "events/s", "ratio")):
        made.add_column(column, justify="left" if number == 0 else "right")
    for name, seconds in (
        ("Spark, first analysis", rate.cold_s),
        ("Spark, second analysis", rate.warm_s),
        ("plain Python, only reading", rate.reading_s),
    ):
        made.add_row(name, f"{seconds:.1f}", f"{rate.events / seconds:,.0f}", f"{seconds / rate.reading_s:.1f}")
    bench.console.print(made)


#: In the order in which they are run.
PARTS: dict[str, Callable[[Bench], None]] = {
    "heartbeats": heartbeats.run,
    "groups": groups.run,
    "bystanders": bystanders.run,
    "failover": failover.run,
    "commits": commits.run,
    "rolling": measure_rolling,
    "herd": measure_herd,
    "assignors": assign_report.run,
    "events": measure_events,
}


@click.command()
@click.option("--smoke", is_flag=True, help="Small sizes: does it run?")
@click.option("--only", type=click.Choice(list(PARTS)), multiple=True)
@click.option(
    "--members",
    type=click.IntRange(1),
    multiple=True,
    help="Sizes: of the herd, of groups, connections of heartbeats; instead of each part's own.",
)
@click.option("--brokers", type=click.IntRange(1), multiple=True, help="Numbers of brokers of the herd.")
@click.option("--runs", type=click.IntRange(1), default=None, help="Runs of each figure, instead of each part's own.")
@click.option("--ours-only", is_flag=True, help="Without Kafka, to see quickly what a change of ours has gained.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write every single run's figures here.")
@assign_report.command_line
@click.option(
    "--profile",
    type=click.Path(path_type=Path),
    is_flag=False,
    flag_value=Path("runs/profiles"),
    help="Profile our broker while it is measured, and print where its time goes; FOLDER for the profiles.",
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
    """Measure and print the figures."""
    console = Console(width=None if os.isatty(1) else 150)
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-bench-") as temporary:
        bench = Bench(Path(temporary), console, smoke, runs, members, brokers, profile, asked)
        bench.state(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        if smoke:
            bench.state("a smoke run: nothing is warm, its figures mean nothing")
        for name in only or PARTS:
            started = time.monotonic()
            try:
                PARTS[name](bench)
            finally:
                if json_file is not None:  # after each part: it, or a later one, may fail
                    bench.figures.write(json_file)
            bench.state(f"{name} took {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
