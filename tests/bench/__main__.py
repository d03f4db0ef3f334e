"""`make bench`: the figures, measured in this run beside a peer of this run. Seconds are of this machine now.

Compare the ratios and the counts; absolute times on shared cores do not repeat.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from comparison.pipeline.session import spark_session
from tests.bench import events, groups, heartbeats, herd_report, lab, rolling, rolling_report

CONNECTIONS = (1, 100, 1000)
GROUP_MEMBERS = 100
HERD = herd_report.Plan(sizes=(5, 10, 20, 50), runs=5, brokers=(1,))
HERD_SMOKE = herd_report.Plan(sizes=(3,), runs=1, brokers=(1,))
EVENTS = 100_000
PARTS = ("heartbeats", "groups", "rolling", "herd", "events")
ONE_BROKER = {"group.initial.rebalance.delay.ms": "0", "group.max.session.timeout.ms": "60000"}


def table(title: str, *columns: str) -> Table:
    made = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number == 0 else "right")
    return made


def measure_heartbeats(
    server: lab.Server, connections: tuple[int, ...], seconds: float
) -> dict[int, tuple[float, ...]]:
    """{connections: (per second, per CPU second)}; a size that a server cannot serve is left out and said."""
    rates = {}
    for count in connections:
        rate = asyncio.run(heartbeats.heartbeat_rate(server, count, seconds))
        rates[count] = (rate.per_s, rate.per_cpu_s)
    return rates


def heartbeat_table(folder: Path, connections: tuple[int, ...], seconds: float, console: Console) -> Table:
    with lab.our_broker(folder / "heartbeats", ONE_BROKER) as server:
        ours = measure_heartbeats(server, connections, seconds)
    with lab.mock_cluster() as server:
        # The mock settles 1000 groups only after minutes: it is compared up to 100.
        peer = measure_heartbeats(server, tuple(c for c in connections if c <= 100), seconds)
    made = table("Heartbeats", "connections", "/s", "/CPU-s", "mock: /s", "mock: /CPU-s", "ratio /CPU-s")
    for count, (per_s, per_cpu_s) in ours.items():
        theirs = peer.get(count)
        right = (
            (f"{theirs[0]:,.0f}", f"{theirs[1]:,.0f}", f"{per_cpu_s / theirs[1]:.2f}") if theirs else ("not run",) * 3
        )
        made.add_row(str(count), f"{per_s:,.0f}", f"{per_cpu_s:,.0f}", *right)
    console.print(made)
    return made


def group_table(folder: Path, runs: int, console: Console) -> None:
    with lab.our_broker(folder / "groups", ONE_BROKER) as server:
        formed = [asyncio.run(groups.forming(server, GROUP_MEMBERS, f"bench-{n}")) for n in range(runs)]
    made = table(
        f"A group of {GROUP_MEMBERS} lean members, medians of {runs}", "", "s to stable", "CPU s of the broker"
    )
    for name, seconds, cpu in (
        ("all join at once", "stable_s", "cpu_s"),
        ("one more joins", "rejoin_s", "rejoin_cpu_s"),
    ):
        medians = [statistics.median(getattr(each, field) for each in formed) for field in (seconds, cpu)]
        made.add_row(name, *(f"{median:.3f}" for median in medians))
    console.print(made)


def event_table(folder: Path, count: int, console: Console) -> None:
    with spark_session(work_dir=folder / "spark") as spark:
        rate = events.event_rate(spark, folder, count)
    made = table(f"Pipeline, {rate.events:,} made-up events", "", "s", "events/s", "ratio")
    for name, seconds in (
        ("Spark, first analysis", rate.cold_s),
        ("Spark, second analysis", rate.warm_s),
        ("plain Python, only reading", rate.reading_s),
    ):
        made.add_row(name, f"{seconds:.1f}", f"{rate.events / seconds:,.0f}", f"{seconds / rate.reading_s:.1f}")
    console.print(made)


@click.command()
@click.option("--smoke", is_flag=True, help="Small sizes: does it run?")
@click.option("--only", type=click.Choice(PARTS), multiple=True)
@click.option("--members", type=click.IntRange(2), multiple=True, help="Sizes of the herd, instead of 5 to 50.")
@click.option("--brokers", type=click.IntRange(1), multiple=True, help="Numbers of brokers of the herd.")
@click.option("--runs", type=click.IntRange(1), default=None, help="Rounds of the herd, and of the rolling restarts.")
def main(
    smoke: bool, only: tuple[str, ...], members: tuple[int, ...], brokers: tuple[int, ...], runs: int | None
) -> None:
    """Measure and print the figures."""
    console = Console()
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    wanted = only or PARTS
    with tempfile.TemporaryDirectory(prefix="rebalance-lab-bench-") as temporary:
        folder = Path(temporary)
        if "heartbeats" in wanted:
            heartbeat_table(folder, (1, 100) if smoke else CONNECTIONS, 0.5 if smoke else 3.0, console)
        if "groups" in wanted:
            group_table(folder, 1 if smoke else 5, console)
        if "rolling" in wanted:
            rolling_plan = rolling_report.SMOKE if smoke else rolling.Plan()
            rolling_report.run(folder / "rolling", rolling_plan, runs or 1, console)
        if "herd" in wanted:
            plan = HERD_SMOKE if smoke else HERD
            herd_report.run(
                folder,
                herd_report.Plan(members or plan.sizes, runs or plan.runs, brokers or plan.brokers),
                console,
            )
        if "events" in wanted:
            event_table(folder, 10_000 if smoke else EVENTS, console)


if __name__ == "__main__":
    main()
