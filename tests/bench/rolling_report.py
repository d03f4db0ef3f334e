"""The table of `make bench ARGS="--only rolling"`: what rolling restarts cost, ours beside librdkafka's and Kafka's."""

from __future__ import annotations

import asyncio
import statistics
from typing import TYPE_CHECKING

from rich.table import Table

from tests.bench import lab
from tests.bench.rolling import DESIGNS, JOIN, KINDS, LEAVE, ROLLING, Counts, Plan, courses

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tests.bench.rolling import Cost, Course

#: Does it run? The known counts are not for this one.
SMOKE = Plan(members=2, partitions=4, heartbeat_ms=200, down_s=0.2, session_ms=6000, quiet_s=0.5)


def run(folder: Path, plan: Plan, runs: int, console: Console) -> None:
    """Both kinds of members, one after the other, all designs of a kind at the same time."""
    made: list[Course] = []
    with lab.our_broker(folder, {}) as server:
        for seed in range(1, runs + 1):
            for kind in KINDS:
                made += asyncio.run(courses(kind, DESIGNS, plan, server.port, folder / "broker-1.jsonl", seed))
    known = plan == Plan()
    for change in (ROLLING, JOIN, LEAVE):
        console.print(_table(change, made, plan, runs, known=known))


def _table(change: str, made: list[Course], plan: Plan, runs: int, *, known: bool) -> Table:
    title = f"{change}: {plan.members} members, {plan.partitions} partitions, heartbeats every {plan.heartbeat_ms} ms"
    if change == ROLLING:
        title += f", away for {plan.down_s:g} s each; runs: {runs}"
    table = Table(title=title, title_justify="left")
    columns = ("design", "members", "generations", "stopped", "moved", "unowned partition-s", "on Kafka 4.1.1")
    for number, name in enumerate(columns):
        table.add_column(name, justify="left" if number < 2 else "right")
    for design in DESIGNS:
        for kind in KINDS:
            costs = [
                course.costs[change]
                for course in made
                if course.kind == kind and course.design == design and change in course.costs
            ]
            if costs:
                expected = design.known[change]
                unowned_s = design.known_unowned_s if change == ROLLING else None
                right = _beside(costs, expected, unowned_s) if known else "not compared"
                table.add_row(design.label, kind, *_figures(costs), right)
    return table


def _figures(costs: list[Cost]) -> tuple[str, ...]:
    """Counts as they were in every run, or all that there were; seconds as a median."""
    seen = sorted({(cost.counts.generations, cost.counts.stopped, cost.counts.moved) for cost in costs})
    columns = (" or ".join(map(str, dict.fromkeys(column))) for column in zip(*seen, strict=True))
    return *columns, f"{statistics.median(cost.unowned_s for cost in costs):.1f}"


def _beside(costs: list[Cost], known: Counts, unowned_s: float | None) -> str:
    same = all(cost.counts == known for cost in costs)
    theirs = f"{known.generations} / {known.stopped} / {known.moved}" + (f", {unowned_s:g}" if unowned_s else "")
    return "the same counts" + (f", {unowned_s:g} s" if unowned_s else "") if same else f"[red]{theirs}[/]"
