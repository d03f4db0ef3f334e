"""Runs the herd part, and prints its three tables."""

from __future__ import annotations

import asyncio
import statistics
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.children import Child
from bench.figures import quantile, table
from bench.herd import PARTITIONS, TOPIC, Change, Count, Herd, Originals, Ours
from bench.sides import our_side
from comparison.originals.brokers import RealBroker
from comparison.originals.jars import OriginalsUnavailable
from kernel.client.client import ClusterClient
from kernel.trace.writer import SilentTracer
from kernel.waiting import until
from kernel.wire.versions import Api
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import Limits
from kernel.zookeeper.session import ZooKeeperSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from bench.herd import Subject

#: Processes by size, so that 5 to 15 members share one.
PACKED = 10
#: Beyond these sizes one process per member would measure the machine's memory, and 0.8.2.2 its own lock.
ONE_EACH_MAX = 20
COUNTED_MAX = 50


@dataclass(frozen=True)
class Plan:
    """Sizes, runs and numbers of brokers."""

    sizes: tuple[int, ...]
    runs: int
    brokers: tuple[int, ...]


def run(folder: Path, plan: Plan, console: Console) -> None:
    """Measure everything, and print each table when it is complete."""
    for number in plan.brokers:
        with ExitStack() as stack:
            zookeeper, left_out = cluster(stack, folder / f"brokers-{number}", number)
            bystander = stack.enter_context(Child("bench.bystander", zookeeper.partition("/")[0]))
            if left_out:
                console.print(f"[yellow]Left out: {left_out}[/]")
            measured = asyncio.run(
                _measure(folder / f"brokers-{number}", zookeeper, bystander, plan, number, with_peers=not left_out)
            )
        _print(measured, number, plan, console)


def cluster(stack: ExitStack, folder: Path, number: int) -> tuple[str, str]:
    """Start a ZooKeeper and brokers with the topic: (connect string, why there are no originals, or "")."""
    try:
        return _real_cluster(stack, folder, number), ""
    except OriginalsUnavailable as error:
        reason = f"the originals, and every broker but one of ours: {error}"
    side = stack.enter_context(our_side(folder / "ours", {}))
    asyncio.run(_create_topic(side.port))
    return side.zookeeper, reason


def _real_cluster(stack: ExitStack, folder: Path, number: int) -> str:
    broker = None
    with ExitStack() as started:
        server = started.enter_context(EmbeddedZooKeeper(folder / "zookeeper", limits=Limits(tick_ms=1000)))
        zookeeper = f"{server.connect_string}/herd"
        for node_id in range(number):
            broker = started.enter_context(
                RealBroker("1.1.1", folder / f"broker-{node_id}", zookeeper=zookeeper, node_id=node_id)
            )
        assert broker is not None
        broker.create_topic(TOPIC, PARTITIONS)
        stack.push(started.pop_all())
    return zookeeper


async def _create_topic(port: int) -> None:
    client = ClusterClient([("127.0.0.1", port)], "bench")
    connection = await client.any_connection()
    topic = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1, "assignments": [], "configs": []}
    await connection.call(Api.CreateTopics, {"topics": [topic], "timeout": 10_000})

    async def led() -> bool:
        metadata = await client.refresh([TOPIC])
        return sum(leader.node_id >= 0 for leader in metadata.leaders.values()) == PARTITIONS

    await until(led, 10, "leaders of the topic")
    await client.close()


async def _measure(
    folder: Path, zookeeper: str, bystander: Child, plan: Plan, brokers: int, *, with_peers: bool
) -> tuple[list[Change], list[Count]]:
    changes: list[Change] = []
    counts: list[Count] = []
    async with await ZooKeeperSession.open(
        zookeeper, session_timeout_ms=30_000, tracer=SilentTracer(), name="driver", connection_timeout_ms=10_000
    ) as session:
        herd = Herd(session, bystander, brokers)
        for size in plan.sizes:
            for subject in _subjects(folder, size, with_peers=with_peers):
                try:
                    # Members of 0.8.2.2 in one JVM wait for a shared lock, so only their counts are of interest.
                    if subject.label != "0.8.2.2":
                        changes += await herd.time(subject, size, plan.runs)
                    if size <= COUNTED_MAX and "each" not in subject.label:
                        counts += await herd.count(subject, size)
                finally:
                    await subject.close()
    return changes, counts


def _subjects(folder: Path, size: int, *, with_peers: bool) -> Iterator[Subject]:
    """Yield one subject after the other; its processes run only while it is measured."""
    yield Ours("ours", -(-size // PACKED))
    if size <= ONE_EACH_MAX:
        yield Ours("ours, one each", size)
    if with_peers:
        yield Originals("1.1.1", folder)
        yield Originals("0.8.2.2", folder)


# -- printing ------------------------------------------------------------------------------------------------------


def _print(measured: tuple[list[Change], list[Count]], brokers: int, plan: Plan, console: Console) -> None:
    changes, counts = measured
    console.width = max(console.width, 110)
    note = f"P={PARTITIONS}, B={brokers}, backoff 200 ms"
    console.print(_times(changes, f"Herd: seconds to the last owner znode, median (range) of {plan.runs}; {note}"))
    console.print(_latencies(changes, f"An unrelated client: get and set in ms, p50 / p99; {note}"))
    console.print(_counts(counts, f"Requests, counted by a proxy; {note}"))
    console.print(
        "Model: without failed attempts; for a mass start, from one rebalance per member up to joining one by one."
    )


def _times(changes: Sequence[Change], title: str) -> Table:
    headings = ("change", "members", "N", "s", "range", "ratio to 1.1.1", "CPU s", "failed attempts", "unsettled")
    made = table(title, *headings, left=(0, 1))
    peers = {(c.what, c.members): statistics.median(c.seconds) for c in changes if c.subject == "1.1.1" and c.seconds}
    for change in sorted(changes, key=lambda c: (c.members, c.what)):
        peer = peers.get((change.what, change.members))
        if not change.seconds:
            made.add_row(change.what, change.subject, str(change.members), *"-----", str(change.unsettled))
            continue
        median = statistics.median(change.seconds)
        made.add_row(
            change.what,
            change.subject,
            str(change.members),
            f"{median:.3f}",
            f"{min(change.seconds):.3f}-{max(change.seconds):.3f}",
            f"{median / peer:.2f}" if peer else "-",
            f"{statistics.median(change.cpu_s):.2f}",
            " ".join(map(str, change.failed)) or "-",
            str(change.unsettled or ""),
        )
    return made


def _latencies(changes: Sequence[Change], title: str) -> Table:
    headings = ("change", "members", "N", "get before", "get during", "set before", "set during")
    made = table(title, *headings, left=(0, 1))
    for change in sorted(changes, key=lambda c: (c.members, c.what)):
        shown = [
            f"{quantile(times[kind], 0.5):.2f} / {quantile(times[kind], 0.99):.2f}" if times[kind] else "-"
            for kind in ("get", "set")
            for times in (change.before, change.during)
        ]
        made.add_row(change.what, change.subject, str(change.members), *shown)
    return made


def _counts(counts: Sequence[Count], title: str) -> Table:
    headings = ("change", "members", "N", "reads", "model", "+ failed", "writes", "notified", "attempts", "failed")
    made = table(title, *headings, left=(0, 1))
    for count in sorted(counts, key=lambda c: (c.members, c.what, c.subject)):
        fewest, most = count.model
        made.add_row(
            count.what,
            count.subject,
            str(count.members),
            str(count.tally.reads),
            str(fewest) if fewest == most else f"{fewest}-{most}",
            str(count.of_failed),
            str(count.tally.writes),
            str(count.notifications),
            str(count.tally.attempts),
            str(count.tally.failed),
        )
    return made
