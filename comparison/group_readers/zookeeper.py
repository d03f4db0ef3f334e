"""A group as its znodes under /consumers/<group> describe it.

The reader sets no watch: it only reads, in a session of its own, so that it costs the group's ZooKeeper as much in a
rebalance as at rest, and whatever counts the group's watches and notifications does not count it. A reading takes one
request for the ids and one for each new id, two for the topics, three for each topic, and one for each owner and each
offset. Reads need no quorum. Log ends come from the brokers, by one ListOffsets to each leader.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comparison.group_readers.cluster import LogEnds, open_client
from comparison.group_readers.columns import (
    GroupSeen,
    Keeper,
    MemberRow,
    PartitionRow,
    PatternKind,
    Subscribed,
    zookeeper_state,
)
from comparison.group_readers.coordinator import committed_offsets
from comparison.group_readers.idle_reasons import GroupFacts
from coordinator.protocol.server.member_znode import subscribed_topics
from kernel.errors import RebalanceLabError, Unavailable
from kernel.topic_names import OFFSETS_TOPIC
from kernel.trace.writer import SilentTracer
from kernel.values import NO_OFFSET, TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode, OperationTimeout, SessionExpired
from kernel.zookeeper.session import ZooKeeperSession
from zkconsumer.znodes.payloads import (
    STATIC,
    UnreadableZnode,
    parse_broker,
    parse_offset,
    parse_partitions,
    parse_registration,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kernel.client.client import ClusterClient
    from kernel.trace.writer import Tracer
    from zkconsumer.znodes.payloads import Registration

_TIMEOUT_MS = 10_000


class ZooKeeperReader:
    """Reads one group again and again; create it with `open`."""

    def __init__(self, session: ZooKeeperSession, group: str, bootstrap: Sequence[tuple[str, int]]) -> None:
        self._session = session
        self._group = group
        self._bootstrap = bootstrap
        self._client: ClusterClient | None = None
        self._ends: LogEnds | None = None
        self._subscriptions: dict[str, Subscribed] = {}  #: by member id
        self._streams: dict[str, int] = {}  #: by member id
        self._commanded: set[str] = set()  #: members of the `server` design, whose coordinator names no owners
        self._problems: list[str] = []

    @classmethod
    async def open(
        cls, connect: str, group: str, bootstrap: Sequence[tuple[str, int]] = (), *, tracer: Tracer | None = None
    ) -> ZooKeeperReader:
        """`bootstrap`: brokers to ask for log ends; without it, those registered in ZooKeeper. Raises `Unavailable`."""
        session = await ZooKeeperSession.open(
            connect,
            session_timeout_ms=_TIMEOUT_MS,
            connection_timeout_ms=_TIMEOUT_MS,
            tracer=tracer or SilentTracer(),
            name="watch",
        )
        return cls(session, group, bootstrap)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
        await self._session.close()

    async def groups(self) -> set[str]:
        """The groups that ZooKeeper knows. Raises `Unavailable`."""
        try:
            return set(await self._children(paths.CONSUMERS))
        except (OperationTimeout, SessionExpired) as error:
            raise Unavailable(str(error)) from error

    async def read(self) -> GroupSeen:
        """The group now; without members and partitions if there is none.

        Raises `Unavailable`, also while the chroot does not exist.
        """
        try:
            seen = await self._read()
            if not seen.members and not seen.partitions and (complaint := await self._session.missing_chroot()):
                raise Unavailable(complaint)
        except (OperationTimeout, SessionExpired) as error:
            raise Unavailable(str(error)) from error
        return seen

    async def facts(self) -> GroupFacts:
        """The group, with what may keep its members from owning anything."""
        try:
            brokers, names = await asyncio.gather(self._children(paths.BROKER_IDS), self._children(paths.BROKER_TOPICS))
            partitions = await asyncio.gather(*map(self._partitions, names))
            topics = {name: len(found) for name, found in zip(names, partitions, strict=True)}
            return GroupFacts(group=self._group, brokers=len(brokers), topics=topics, seen=await self.read())
        except (OperationTimeout, SessionExpired, Unavailable) as error:
            return GroupFacts(group=self._group, unreachable=str(error))

    async def _read(self) -> GroupSeen:
        self._problems = []
        ids = await self._children(paths.member_ids(self._group))
        await self._learn(ids)
        owned, stored = await asyncio.gather(
            self._children(paths.owners(self._group)), self._children(paths.offsets(self._group))
        )
        subscribed = {topic for member in ids for topic in self._subscriptions[member].topics}
        topics = sorted({*owned, *stored, *subscribed})
        partitions = [tp for found in await asyncio.gather(*map(self._partitions, topics)) for tp in found]
        owners = dict(zip(partitions, await asyncio.gather(*map(self._owner, partitions)), strict=True))
        current = dict(zip(partitions, await asyncio.gather(*map(self._offset, partitions)), strict=True))
        await self._open_client()
        lacking = [tp for tp in partitions if current[tp] is None]
        if lacking and ids:
            current |= await self._committed(lacking)
        ends = {} if self._ends is None else await self._ends.read(partitions)
        commanded = not self._commanded.isdisjoint(ids)
        rows = tuple(
            PartitionRow(partition=tp, current=current[tp], end=ends.get(tp), owner=owners[tp] or "")
            for tp in partitions
        )
        return GroupSeen(
            group=self._group,
            keeper=Keeper.ZOOKEEPER,
            state="" if commanded else zookeeper_state(ids, rows),
            members=tuple(
                MemberRow(
                    member=each,
                    owned=_owned(each, rows),
                    subscribed=self._subscriptions[each],
                    streams=self._streams.get(each, 1),
                )
                for each in ids
            ),
            partitions=rows,
            commanded=commanded,
            problem="; ".join(self._problems),
        )

    # -- znodes ------------------------------------------------------------------------------------------------------

    async def _learn(self, ids: Iterable[str]) -> None:
        """Read the registrations of new members."""
        new = [member for member in ids if member not in self._subscriptions]
        read = await asyncio.gather(*(self._data(paths.member_id(self._group, member)) for member in new))
        for member, data in zip(new, read, strict=True):
            self._subscriptions[member] = Subscribed()
            if data is None:
                continue
            try:
                registration = parse_registration(paths.member_id(self._group, member), data)
            except UnreadableZnode as error:
                self._problems.append(str(error))
                continue
            if subscribed_topics(data) is not None:
                self._commanded.add(member)
            self._subscriptions[member] = _subscribed(registration)
            self._streams[member] = max(registration.subscription.values(), default=1)

    async def _partitions(self, topic: str) -> list[TopicPartition]:
        path = paths.topic(topic)
        try:
            return [TopicPartition(topic, number) for number in parse_partitions(path, await self._data(path))]
        except UnreadableZnode as error:
            self._problems.append(str(error))
            return []

    async def _owner(self, tp: TopicPartition) -> str | None:
        data = await self._data(paths.owner(self._group, tp.topic, tp.partition))
        return None if data is None else data.decode("utf-8", "replace")

    async def _offset(self, tp: TopicPartition) -> int | None:
        path = paths.offset(self._group, tp.topic, tp.partition)
        try:
            offset = parse_offset(path, await self._data(path))
        except UnreadableZnode as error:
            self._problems.append(str(error))
            return None
        return None if offset == NO_OFFSET else offset

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._session.children(path)
        except NoNode:
            return []

    async def _data(self, path: str) -> bytes | None:
        try:
            return (await self._session.get(path))[0]
        except NoNode:
            return None

    # -- brokers -----------------------------------------------------------------------------------------------------

    async def _open_client(self) -> None:
        if self._client is not None:
            return
        bootstrap = self._bootstrap or await self._registered()
        if not bootstrap:
            self._problems.append("log ends are unknown: no broker is registered")
            return
        try:
            self._client = await open_client(bootstrap)
        except Unavailable as error:
            self._problems.append(f"log ends are unknown: {error}")
            return
        self._ends = LogEnds(self._client)

    async def _registered(self) -> list[tuple[str, int]]:
        found = []
        for name in await self._children(paths.BROKER_IDS):
            path = f"{paths.BROKER_IDS}/{name}"
            data = await self._data(path)
            if data is not None:
                try:
                    broker = parse_broker(path, data)
                except UnreadableZnode as error:
                    self._problems.append(str(error))
                    continue
                found.append((broker.host, broker.port))
        return found

    async def _committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Offsets that the group commits to Kafka (offsets.storage=kafka, and the `server` design)."""
        if self._client is None or await self._session.exists(paths.topic(OFFSETS_TOPIC)) is None:
            return {}
        try:
            return dict(await committed_offsets(self._client, self._group, partitions))
        except RebalanceLabError as error:
            self._problems.append(f"offsets in Kafka are unknown: {error}")
            return {}


def _owned(member: str, rows: Sequence[PartitionRow]) -> tuple[TopicPartition, ...]:
    """A member owns what its threads do: `<member>-<number>`."""
    return tuple(row.partition for row in rows if row.owner.rpartition("-")[0] == member)


def _subscribed(registration: Registration) -> Subscribed:
    names = tuple(sorted(registration.subscription))
    if registration.pattern == STATIC:
        return Subscribed(topics=names)
    return Subscribed(pattern=names[0], kind=PatternKind(registration.pattern))
