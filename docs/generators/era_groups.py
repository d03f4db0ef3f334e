"""Groups of Kafka's own consumer of 0.8.2.2: what a join, a leave and a crash cost in requests to ZooKeeper."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from comparison.originals.hosts import OriginalHost
from docs.generators.simulation_records import Measured
from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode
from tests.support.zookeeper import count_model
from tests.support.zookeeper.proxy import ZooKeeperProxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from comparison.originals.hosts import OriginalMember
    from kernel.zookeeper.session import ZooKeeperSession

VERSION = "0.8.2.2"
TOPIC = "orders"
_SETTLES_S = 60.0
#: Longer than a backoff, within which a member that has failed tries again.
_QUIET_S = 1.5
_CHANGING = ("create", "delete")


class EraGroup:
    """One group from forming to its end. The last of its first members has a JVM of its own, which is killed."""

    def __init__(
        self, seed: int, partitions: int, settings: Mapping[str, str], session: ZooKeeperSession, folder: Path
    ) -> None:
        self._group = f"zookeeper-{seed}"
        self._partitions = partitions
        self._settings = settings
        self._session = session
        self._hosts = [OriginalHost(VERSION, folder, name=f"{self._group}-{name}") for name in ("most", "last")]
        self._members: dict[str, OriginalMember] = {}

    async def run(self, members: int) -> dict[str, Measured]:
        """What each change costs in a group of so many members, as the scenarios begin with."""
        first = [f"m{number}" for number in range(1, members + 1)]
        last, newcomer = first[-1], f"m{members + 1}"
        found = {}
        most, lasts = self._hosts
        async with most, lasts:
            with ZooKeeperProxy(self._session.connect_string) as proxy:
                self._proxy = proxy
                for name in first:
                    await self._join(name, lasts if name == last else most)
                    await self._settled()
                found["join"] = await self._change(lambda: self._join(newcomer, most))
                await self._change(lambda: self._leave(newcomer))
                found["leave"] = await self._change(lambda: self._leave(last))
                await self._change(lambda: self._join(last, lasts))
                found["crash"] = await self._change(lambda: self._crash(last, lasts))
        return found

    async def _join(self, name: str, host: OriginalHost) -> None:
        self._members[name] = await host.join(
            name, zookeeper=self._proxy.connect_string, group=self._group, topics={TOPIC: 1}, properties=self._settings
        )

    async def _leave(self, name: str) -> None:
        await self._members.pop(name).leave()

    async def _crash(self, name: str, host: OriginalHost) -> None:
        del self._members[name]
        await asyncio.to_thread(host.kill)

    async def _change(self, change: Callable[[], Awaitable[None]]) -> Measured:
        before, _ = await self._owners()
        mark, begun = self._proxy.mark(), time.time()
        await change()
        settled = await self._settled()
        after, _ = await self._owners()
        operations = self._proxy.operations(mark)
        kept = [op for op in operations if paths.parse_owner(op.path) or paths.parse_member_id(op.path)]
        written = [op for op in kept if op.op in _CHANGING and op.result == "ok"]
        tally = count_model.tally([(op.connection, op.op, op.path, op.result) for op in operations], self._group)
        counts = {
            "stopped": len({op.path for op in written if op.op == "delete"}),
            "moved": sum(before[number] != owner for number, owner in after.items()),
            "reads": tally.reads,
            "notifications": len(self._proxy.events(mark)),
            "writes": len(written),
        }
        return Measured(counts, round(1000 * (settled - begun)))

    async def _settled(self) -> float:
        """Wait until the members own all partitions, and for a while; when the last was claimed (wall clock, s)."""
        while True:
            claimed_s = await until(self._claimed_by_all, _SETTLES_S, f"{self._group} to settle", every_s=0.05)
            await self._proxy.quiet(_QUIET_S)
            if await self._claimed_by_all() == claimed_s:
                return claimed_s

    async def _claimed_by_all(self) -> float:
        """When the last owner znode was made; 0 if one is missing, or a member has none."""
        owners, last_s = await self._owners()
        of_all = set(owners.values()) == {f"{self._group}_{name}-0" for name in self._members}
        return last_s if of_all and len(owners) == self._partitions else 0.0

    async def _owners(self) -> tuple[dict[int, str], float]:
        """The thread that owns each partition, and when the last one was claimed."""
        owners, last_s = {}, 0.0
        for number in range(self._partitions):
            try:
                data, about = await self._session.get(paths.owner(self._group, TOPIC, number))
            except NoNode:
                continue
            owners[number], last_s = data.decode(), max(last_s, about.ctime_ms / 1000)
        return owners, last_s
