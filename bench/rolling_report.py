"""The table of `make bench ARGS="--only rolling"`: the cost of rolling restarts, ours beside librdkafka and Kafka."""

from __future__ import annotations

import asyncio
import statistics
from typing import TYPE_CHECKING

from rich.table import Table

from bench import lab
from bench.rolling import DESIGNS, JOIN, KINDS, LEAVE, ROLLING, Plan, courses

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from bench.rolling import Cost, Course, Design

COUNTED = "generations / stopped / moved, unowned"
#: Only to see that it works; the known counts do not hold for these sizes.
SMOKE = Plan(members=2, partitions=4, heartbeat_ms=200, down_s=0.2, session_ms=6000, quiet_s=0.5)


def run(folder: Path, plan: Plan, runs: int, console: Console) -> None:
    """Run both kinds of members one after the other, all designs of a kind at the same time."""
    made: list[Course] = []
    with lab.our_broker(folder, {}) as server:
        for seed in range(1, runs + 1):
            for kind in KINDS:
                made += asyncio.run(courses(kind, DESIGNS, plan, server.port, folder / "broker-1.jsonl", seed))
    known = plan == Plan()
    for change in (ROLLING, JOIN, LEAVE):
        console.print(_table(change, made, plan, runs, known=known))


def _table(change: str, made: list[Course], plan: Plan, runs: int, *, known: bool) -> Table:
    title = f"{change}: {plan.members} members, {plan.partitions} partitions, heartbeats of {plan.heartbeat_ms} ms"
    if change == ROLLING:
        title += f", each down for {plan.down_s:g} s; runs: {runs}"
    table = Table(title=title, title_justify="left")
    for name in ("design", "members", *((COUNTED, "Kafka 4.1.1") if known else (COUNTED,))):
        table.add_column(name)
    for design in DESIGNS:
        for kind in KINDS:
            costs = [
                course.costs[change]
                for course in made
                if course.kind == kind and course.design == design and change in course.costs
            ]
            if costs:
                beside = (_beside(design, kind, change, costs),) if known else ()
                table.add_row(design.label, kind, _figures(costs), *beside)
    return table


def _figures(costs: list[Cost]) -> str:
    """Counts, all of them if they differ between runs; seconds as a median."""
    seen = sorted({(cost.counts.generations, cost.counts.stopped, cost.counts.moved) for cost in costs})
    columns = (" or ".join(map(str, dict.fromkeys(column))) for column in zip(*seen, strict=True))
    return f"{' / '.join(columns)}, {statistics.median(cost.unowned_s for cost in costs):.1f} s"


def _beside(design: Design, kind: str, change: str, costs: list[Cost]) -> str:
    """The known costs on Kafka 4.1.1 with librdkafka's members, in red if these members cost something else."""
    counts = design.known[change]
    text = f"{counts.generations} / {counts.stopped} / {counts.moved}"
    if change == ROLLING:
        if kind == "ours" and design.moved_by_chance:
            chances = design.moved_by_chance
            text += f" ({chances.start} to {chances.stop - 1})"
        text += f", {design.known_unowned_s:g} s"
    same = all(design.expects(kind, change, cost.counts) for cost in costs)
    return text if same else f"[red]{text}[/]"
