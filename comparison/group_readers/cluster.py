"""A client of any cluster, of brokers from before ApiVersions too, and the log ends of partitions."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.client.client import ClusterClient
from kernel.client.reads import LATEST, list_offset
from kernel.errors import Unavailable
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kernel.values import TopicPartition

CLIENT_ID = "rebalance-lab-watch"
#: What 0.8.2 and 0.9 serve of what a watcher asks; they close a connection that asks for their versions (KIP-35, 0.10).
#: 0.8.2 has no DescribeGroups, and closes the connection that sends one.
BEFORE_API_VERSIONS: Mapping[int, tuple[int, int]] = MappingProxyType(
    {
        Api.ListOffsets: (0, 0),
        Api.Metadata: (0, 0),
        Api.OffsetFetch: (0, 1),
        Api.FindCoordinator: (0, 0),
        Api.DescribeGroups: (0, 0),
    }
)


async def open_client(bootstrap: Sequence[tuple[str, int]]) -> ClusterClient:
    """A client of a cluster that has answered. Raises `Unavailable`."""
    client = ClusterClient(bootstrap, CLIENT_ID)
    try:
        await client.refresh([])
    except Unavailable:
        await client.close()
    else:
        return client
    older = ClusterClient(bootstrap, CLIENT_ID, offered=BEFORE_API_VERSIONS)
    try:
        await older.refresh([])
    except Unavailable:
        await older.close()
        raise
    return older


class LogEnds:
    """The log ends of partitions, by one request to each leader."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._is_outdated = False  # a leader has moved

    async def read(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """The log ends of those partitions whose leader answers."""
        unknown = {tp.topic for tp in partitions if self._client.leader_of(tp) is None}
        if self._is_outdated:
            unknown = {tp.topic for tp in partitions}
        try:
            if unknown:
                await self._client.refresh(sorted(unknown))
                self._is_outdated = False
            return await self._from_leaders(partitions)
        except Unavailable:
            self._is_outdated = True
            return {}

    async def _from_leaders(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        led: dict[int, list[TopicPartition]] = {}
        for tp in sorted(partitions):
            if (leader := self._client.leader_of(tp)) is not None:
                led.setdefault(leader, []).append(tp)
        found: dict[TopicPartition, int] = {}
        for leader, its in led.items():
            try:
                answered = await list_offset(await self._client.connection(leader), dict.fromkeys(its, LATEST))
            except Unavailable:
                self._is_outdated = True
                continue
            for tp, (error, offset) in answered.items():
                if error:
                    self._is_outdated = True
                else:
                    found[tp] = offset
        return found
