"""The tables of `make bench ARGS="--only rolling"`: the cost of rolling restarts, ours beside librdkafka and Kafka."""

from __future__ import annotations

import asyncio
import statistics
from typing import TYPE_CHECKING

from rich.table import Table

from bench.rolling import Broker, courses
from bench.rolling_designs import CLASSIC, DESIGNS, JOIN, LEAVE, RECONCILING, ROLLING, Plan
from bench.rolling_members import KINDS
from bench.sides import KAFKA, KAFKA_VERSION, OURS, our_side
from comparison.originals.brokers import RealBroker

if TYPE_CHECKING:
    from pathlib import Path

    from bench.bench import Bench
    from bench.rolling import Course
    from bench.rolling_designs import Design
    from bench.rolling_ledger import Cost

_COLUMNS, _KNOWN = ("design", "members", "broker"), "known of Kafka 4.1.1"
COUNTED = "generations / stopped / moved, unowned"
#: Only to see that it works; the known counts do not hold for these sizes.
SMOKE = Plan(members=2, partitions=4, heartbeat_ms=200, down_s=0.2, session_ms=6000, quiet_s=0.5)


def run(bench: Bench) -> None:
    """Run both kinds of members one after the other, the classic designs together, and then those of KIP-848."""
    plan, folder = SMOKE if bench.smoke else Plan(), bench.folder / "rolling"
    seeds = range(1, (bench.runs or 1) + 1)
    made: list[Course] = []
    trace = folder / "ours" / "broker.jsonl"
    with our_side(folder / "ours", plan.broker_settings, trace=trace) as side:
        broker = Broker(OURS, side.port, trace)
        for designs in (CLASSIC, RECONCILING):
            made += _courses(designs, plan, broker, seeds)
    if bench.with_kafka:
        made += _on_kafka(folder / "kafka", plan, seeds)
    known = plan == Plan()
    for change in (ROLLING, JOIN, LEAVE):
        bench.console.print(_table(change, made, plan, len(seeds), known=known))
    bench.console.print(_forming(made, known=known))


def _on_kafka(folder: Path, plan: Plan, seeds: range) -> list[Course]:
    folder.mkdir(parents=True)
    with RealBroker(KAFKA_VERSION, folder, settings=plan.broker_settings) as broker:
        return _courses(RECONCILING, plan, Broker(KAFKA, broker.port), seeds)


def _courses(designs: tuple[Design, ...], plan: Plan, broker: Broker, seeds: range) -> list[Course]:
    return [
        course for seed in seeds for kind in KINDS for course in asyncio.run(courses(kind, designs, plan, broker, seed))
    ]


def _table(change: str, made: list[Course], plan: Plan, runs: int, *, known: bool) -> Table:
    title = f"{change}: {plan.members} members, {plan.partitions} partitions, heartbeats of {plan.heartbeat_ms} ms"
    if change == ROLLING:
        title += f", each down for {plan.down_s:g} s; runs: {runs}"
    table = Table(*_COLUMNS, COUNTED, *((_KNOWN,) if known else ()), title=title, title_justify="left")
    for design, broker, kind, found in _groups(made):
        costs = [course.costs[change] for course in found if change in course.costs]
        if costs:
            beside = (_beside(design, kind, change, costs),) if known else ()
            table.add_row(design.label, kind, broker, _figures(costs), *beside)
    return table


def _forming(made: list[Course], *, known: bool) -> Table:
    title = "generations, in KIP-848 epochs, until the first members have settled"
    table = Table(*_COLUMNS, "generations", *((_KNOWN,) if known else ()), title=title, title_justify="left")
    for design, broker, kind, found in _groups(made):
        seen = sorted({course.formed for course in found})
        text = str(design.forming) if seen == [design.forming] else f"[red]{design.forming}[/]"
        table.add_row(design.label, kind, broker, " or ".join(map(str, seen)), *((text,) if known else ()))
    return table


def _groups(made: list[Course]) -> list[tuple[Design, str, str, list[Course]]]:
    """Courses by design, broker and kind of members, in this order."""
    found: dict[tuple[str, str, str], tuple[Design, str, str, list[Course]]] = {}
    for design in DESIGNS:
        for course in made:
            if course.design == design:
                key = (design.label, course.broker.name, course.kind)
                found.setdefault(key, (design, course.broker.name, course.kind, []))[3].append(course)
    return list(found.values())


def _figures(costs: list[Cost]) -> str:
    """Counts, all of them if they differ between runs; seconds as a median."""
    seen = sorted({(cost.counts.generations, cost.counts.stopped, cost.counts.moved) for cost in costs})
    columns = (" or ".join(map(str, dict.fromkeys(column))) for column in zip(*seen, strict=True))
    text = f"{' / '.join(columns)}, {statistics.median(cost.unowned_s for cost in costs):.1f} s"
    doubly = max(cost.doubly_owned_s for cost in costs)
    return f"{text}, [red]doubly owned {doubly:.2f} s[/]" if doubly else text


def _beside(design: Design, kind: str, change: str, costs: list[Cost]) -> str:
    """The known costs on Kafka 4.1.1 with librdkafka's members, in red if these members cost something else."""
    text = str(design.known[change])
    if design.allowed(kind, change) != design.known[change]:
        text += f" (ours: {design.allowed(kind, change)})"
    if change == ROLLING:
        text += f", {design.known_unowned_s:g} s"
    same = all(design.expects(kind, change, cost.counts) for cost in costs)
    return text if same else f"[red]{text}[/]"
