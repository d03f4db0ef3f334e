"""Conflicts in joins and attempts in mass starts: our members beside Kafka's own consumers, behind one counting proxy.

    python -m bench.starts joins --members 3 --members 4 --members 5 --runs 6
    python -m bench.starts mass --members 20 --runs 3 [--spread-ms 300]

`joins` lets the last member of a settled group leave and join again, and counts the joins with a failed attempt. `mass`
starts all members of an empty group at once (or spread over a time, as processes start) and counts attempts a member;
it also prints how long it took until all had registered.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import click

from bench import herd
from comparison.originals.brokers import RealBroker
from kernel.trace.writer import SilentTracer
from kernel.zookeeper import paths
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.zookeeper import count_model
from tests.support.zookeeper.proxy import ZooKeeperProxy

if TYPE_CHECKING:
    from collections.abc import Callable

QUIET_S = 0.5
#: Our kinds, and the settings that distinguish them.
OURS = {"ours": {}, "ours, together": {"rebalance.reads": "together"}}
ORIGINALS = ("0.8.2.2", "1.1.1")
#: In a process each, started when they join: how far a real start is spread.
ONE_EACH = "1.1.1, one each"


@dataclass(frozen=True)
class Measured:
    """One number per run; attempts of the whole group."""

    members: int
    attempts: list[int]
    failed: list[int]
    spread_s: list[float]  #: from the first to the last registration

    def joins(self) -> str:
        return (
            f"{self.members} members: {sum(number > 0 for number in self.failed)} of {len(self.failed)} joins with a "
            f"failed attempt, {sum(self.failed)} failed of {sum(self.attempts)} attempts"
        )

    def mass(self) -> str:
        each = [number / self.members for number in self.attempts]
        return (
            f"{self.members} members: attempts a member {min(each):.2f} to {max(each):.2f} (median "
            f"{statistics.median(each):.2f}), failed {statistics.median(self.failed) / self.members:.2f}; registered "
            f"within {statistics.median(self.spread_s) * 1000:.0f} ms"
        )


class Starts(herd.Herd):
    """The bench on one ZooKeeper."""

    def __init__(self, session: ZooKeeperSession) -> None:
        self._session = session

    async def joins(self, subject: herd.Subject, members: int, runs: int, _spread_ms: int) -> Measured:
        group, everybody = f"{herd.group_of(subject, members)}-joins", herd.names(members)
        failed, attempts = [], []
        with ZooKeeperProxy(self._session.connect_string) as proxy:
            where = proxy.connect_string
            await self.warm(subject, group, where)
            for name in everybody:
                await subject.join(name, group, where)
            await self.settled(group, everybody)
            for _ in range(runs):
                await subject.leave(everybody[-1], group)
                await self.settled(group, everybody[:-1])
                await proxy.quiet(QUIET_S)
                mark = proxy.mark()
                await subject.join(everybody[-1], group, where)
                await self.settled(group, everybody)
                ops = [(op.connection, op.op, op.path, op.result) for op in proxy.operations(mark)]
                tally = count_model.tally(ops, group)
                failed.append(tally.failed)
                attempts.append(tally.attempts)
            await self._all_leave(subject, group, everybody)
        return Measured(members, attempts, failed, [])

    async def mass(self, subject: herd.Subject, members: int, runs: int, spread_ms: int) -> Measured:
        group, everybody = f"{herd.group_of(subject, members)}-mass", herd.names(members)
        attempts, failed, spreads = [], [], []

        async def start(name: str, after_s: float, where: str) -> None:
            await asyncio.sleep(after_s)
            await subject.join(name, group, where)

        with ZooKeeperProxy(self._session.connect_string) as proxy:
            where = proxy.connect_string
            await self.warm(subject, group, where)
            for run in range(runs):
                await proxy.quiet(QUIET_S)
                mark, random = proxy.mark(), Random(run)
                after_s = [random.random() * spread_ms / 1000 for _ in everybody]
                starting = [start(name, s, where) for name, s in zip(everybody, after_s, strict=True)]
                await asyncio.gather(*starting, return_exceptions=True)
                await self.settled(group, everybody)
                await proxy.quiet(QUIET_S)
                every = proxy.operations(mark)
                tally = count_model.tally([(op.connection, op.op, op.path, op.result) for op in every], group)
                at = [op.at for op in every if op.op == "create" and paths.parse_member_id(op.path)]
                attempts.append(tally.attempts)
                failed.append(tally.failed)
                spreads.append(max(at) - min(at))
                await self._all_leave(subject, group, everybody)
        return Measured(members, attempts, failed, spreads)


def subject_of(kind: str, processes: int, folder: Path) -> herd.Subject:
    if kind in OURS:
        return herd.Ours(kind, processes, OURS[kind])
    return herd.Originals(kind.partition(",")[0], folder, one_each=kind == ONE_EACH)


async def run(
    what: str, kinds: list[str], members: tuple[int, ...], runs: int, spread_ms: int, processes: int, folder: Path,
    connect_string: str,
) -> None:  # fmt: skip
    session = await ZooKeeperSession.open(
        connect_string, session_timeout_ms=30_000, tracer=SilentTracer(), name="starts", connection_timeout_ms=30_000
    )
    async with session:
        starts = Starts(session)
        measure: Callable = {"joins": starts.joins, "mass": starts.mass}[what]
        for kind in kinds:
            subject = subject_of(kind, processes, folder)
            try:
                for size in members:
                    measured = await measure(subject, size, runs, spread_ms)
                    shown = measured.joins() if what == "joins" else measured.mass()
                    print(f"{kind:18}", shown, flush=True)  # noqa: T201
            finally:
                await subject.close()


@click.command()
@click.argument("what", type=click.Choice(["joins", "mass"]))
@click.option("--members", type=click.IntRange(2), multiple=True, default=(3, 4, 5))
@click.option("--runs", type=click.IntRange(1), default=6)
@click.option(
    "--kind", "kinds", type=click.Choice([*OURS, *ORIGINALS, ONE_EACH]), multiple=True, default=(*OURS, *ORIGINALS)
)
@click.option("--spread-ms", type=click.IntRange(0), default=0, help="Spread the starts of `mass` over this time.")
@click.option("--processes", type=click.IntRange(1), default=1, help="Processes that our members are spread over.")
def main(
    what: str, members: tuple[int, ...], runs: int, kinds: tuple[str, ...], spread_ms: int, processes: int
) -> None:
    """Print one line per kind of member and size."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with (
            EmbeddedZooKeeper(folder / "zookeeper") as zookeeper,
            RealBroker("1.1.1", folder / "broker", zookeeper=zookeeper.connect_string) as broker,
        ):
            broker.create_topic(herd.TOPIC, herd.PARTITIONS)
            where = zookeeper.connect_string
            asyncio.run(run(what, list(kinds), members, runs, spread_ms, processes, folder, where))


if __name__ == "__main__":
    main()
