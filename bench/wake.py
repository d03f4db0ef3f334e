"""What a member does when it wakes up past its session: ours beside Kafka's own consumers, one ZooKeeper, one script.

    python -m bench.wake [--rounds 5] [--ours-only]

Two members of a group read four partitions; one is stopped with SIGSTOP for longer than its session, the other takes
over. Measured from SIGCONT: how long, and how much, the first one delivers before it registers again, its
rebalances, and whether its late commits go out before or after it has registered.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import OriginalHost
from comparison.scenarios.processes.children import ChildProcess
from comparison.scenarios.processes.fork_server import ForkServer
from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.serials import numbered_value
from kernel.tasks import cancel_and_wait
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import Limits
from tests.support.zookeeper import count_model
from tests.support.zookeeper.proxy import ZooKeeperProxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

TOPIC, PARTITIONS = "wake", 4
FROZEN_S, AFTER_S = 4.5, 5.0
RECORDS_PER_S = 80
SETTINGS = {
    "zookeeper.session.timeout.ms": "2000",
    "zookeeper.connection.timeout.ms": "6000",
    "rebalance.backoff.ms": "300",
    "rebalance.max.retries": "10",
    "auto.commit.interval.ms": "100",
    "auto.offset.reset": "smallest",
}


@dataclass(frozen=True)
class Round:
    """Times in seconds since SIGCONT."""

    registered_s: float
    window_records: int  #: delivered before it registered again
    rebalances: int
    failed: int  #: attempts
    late_commits: int  #: writes of offsets before its first attempt in the new session had released anything
    before_registering: int  #: of those


@dataclass(frozen=True)
class Sleeper:
    """A member in a process of its own."""

    freeze: Callable[[], None]
    thaw: Callable[[], None]
    delivered_at: Callable[[], list[float]]  #: when each record was delivered, by the monotonic clock


@contextlib.asynccontextmanager
async def ours(name: str, group: str, zookeeper: str, folder: Path, fork_server: ForkServer) -> AsyncIterator[Sleeper]:
    delivered_at: list[float] = []

    def take(event: dict[str, Any]) -> None:
        if event["kind"] == "records_delivered":
            delivered_at.extend([time.monotonic()] * (event["last"] - event["first"] + 1))

    module = "comparison.scenarios.processes.member_process"
    process = await ChildProcess.spawn(fork_server, module, name, folder / f"{name}.log", take)
    process.send(
        {"process": name, "design": "zookeeper", "run": "r", "scenario": "wake", "seed": time.time_ns() % 100_000,
         "bootstrap": "", "trace": str(folder / f"{name}.jsonl"), "group": group, "topics": {TOPIC: 1},
         "zookeeper": zookeeper, "settings": SETTINGS | {"consumer.id": name}}
    )  # fmt: skip
    try:
        yield Sleeper(process.freeze, process.thaw, lambda: delivered_at)
    finally:
        await process.kill()


@contextlib.asynccontextmanager
async def theirs(version: str, name: str, group: str, zookeeper: str, folder: Path) -> AsyncIterator[Sleeper]:
    async with OriginalHost(version, folder, name=f"{version}-{name}", heap_mb=128, log_level="WARN") as host:
        member = await host.join(name, zookeeper=zookeeper, group=group, topics={TOPIC: 1}, properties=SETTINGS)
        yield Sleeper(host.freeze, host.thaw, lambda: [message.at for message in member.messages])
        host.kill()


async def produce(bootstrap: tuple[str, int]) -> None:
    """Produce at an even rate until cancelled."""
    client = ClusterClient([bootstrap], "wake")
    producer = Producer(client)
    try:
        for serial in range(10**9):
            await producer.enqueue(TopicPartition(TOPIC, serial % PARTITIONS), numbered_value(serial))
            await asyncio.sleep(1 / RECORDS_PER_S)
    finally:
        await producer.close()
        await client.close()


async def one_round(group: str, sleeper: Sleeper, link: ZooKeeperProxy, other: ZooKeeperProxy) -> Round:
    other_mark = other.mark()
    sleeper.freeze()
    frozen_at = time.monotonic()
    await until(lambda: claimed(other, other_mark) == PARTITIONS, 20, "the other member to take over")
    await asyncio.sleep(max(0, frozen_at + FROZEN_S - time.monotonic()))
    mark, thawed_at = link.mark(), time.monotonic()
    sleeper.thaw()
    await asyncio.sleep(AFTER_S)
    ops = link.operations(mark)
    registered = next(op for op in ops if op.op == "create" and paths.parse_member_id(op.path))
    commits = [op for op in ops if op.op == "setData" and op.result == "ok" and paths.parse_offset(op.path)]
    claims = [op.at for op in ops if op.op == "create" and paths.parse_owner(op.path)]
    late = [op for op in commits if op.at < (claims[0] if claims else float("inf"))]
    tally = count_model.tally([(op.connection, op.op, op.path, op.result) for op in ops], group)
    return Round(
        registered_s=registered.at - thawed_at,
        window_records=sum(thawed_at <= at < registered.at for at in sleeper.delivered_at()),
        rebalances=tally.attempts - tally.failed,
        failed=tally.failed,
        late_commits=len(late),
        before_registering=sum(op.at < registered.at for op in late),
    )


def claimed(link: ZooKeeperProxy, mark: Any) -> int:
    return len([op for op in link.operations(mark) if op.op == "create" and paths.parse_owner(op.path)])


async def measure(kind: str, rounds: int, folder: Path, zookeeper: str, broker: RealBroker) -> list[Round]:
    group = f"wake-{kind.replace('.', '-')}"
    fork_server = await ForkServer.open()
    producing = asyncio.create_task(produce(("127.0.0.1", broker.port)))
    try:
        with ZooKeeperProxy(zookeeper) as link, ZooKeeperProxy(zookeeper) as other:

            def member(name: str, where: ZooKeeperProxy) -> contextlib.AbstractAsyncContextManager[Sleeper]:
                if kind == "ours":
                    return ours(name, group, where.connect_string, folder, fork_server)
                return theirs(kind, name, group, where.connect_string, folder)

            async with member("a", link) as sleeper, member("b", other):
                done = []
                for _ in range(rounds):
                    await asyncio.sleep(3)
                    done.append(await one_round(group, sleeper, link, other))
                    print(kind, done[-1], flush=True)  # noqa: T201
                return done
    finally:
        await cancel_and_wait(producing)
        await fork_server.stop()


def summary(kind: str, rounds: list[Round]) -> str:
    windows = [each.registered_s for each in rounds]
    late = [each for each in rounds if each.late_commits]
    after = sum(each.before_registering == 0 for each in late)
    return (
        f"{kind:8} window {min(windows):.2f} to {max(windows):.2f} s (median {statistics.median(windows):.2f}), "
        f"{min(r.window_records for r in rounds)} to {max(r.window_records for r in rounds)} records; "
        f"rebalances {sorted(r.rebalances for r in rounds)} and failed attempts {sum(r.failed for r in rounds)}; "
        f"late commits after the registration in {after} of {len(late)} rounds that had some"
    )


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=5)
@click.option("--version", "versions", multiple=True, default=("0.8.2.2",), help="An original (repeatable).")
@click.option("--ours-only", is_flag=True)
def main(rounds: int, versions: tuple[str, ...], ours_only: bool) -> None:
    """Print one line per kind of member."""
    kinds = ("ours", *(() if ours_only else versions))
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with (
            EmbeddedZooKeeper(folder / "zookeeper", limits=Limits(tick_ms=250)) as zookeeper,
            RealBroker("1.1.1", folder / "broker", zookeeper=zookeeper.connect_string) as broker,
        ):
            broker.create_topic(TOPIC, PARTITIONS)
            lines = [
                summary(kind, asyncio.run(measure(kind, rounds, folder, zookeeper.connect_string, broker)))
                for kind in kinds
            ]
    print("\n".join(lines))  # noqa: T201


if __name__ == "__main__":
    main()
