"""Following /brokers and /controller in ZooKeeper: watches in, one immutable observation out.

Watch callbacks only note which path is dirty. `refresh` reads the dirty ones again (pipelined, each read arms its
watch anew) and what hangs below them, and returns the new observation. A watch that a broken connection took away
arrives as an event like any other, so everything is read again after a reconnect; reads that fail leave their
paths dirty.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from kernel.broker import znodes
from kernel.broker.cluster_view import ClusterSnapshot, PartitionView, TopicView
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.values import BrokerAddress
    from kernel.zookeeper.operations import WatchFired, ZnodeStat
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)
_STEP = "cluster-view"
Parsed = TypeVar("Parsed")


@dataclass(frozen=True, slots=True)
class Observation:
    """The snapshot, and what only the controller needs beside it."""

    snapshot: ClusterSnapshot = field(default_factory=ClusterSnapshot)
    controller_session: int = 0  #: who holds /controller; 0 when nobody does
    deletions: tuple[str, ...] = ()  #: topics that are to be deleted
    #: Topics of Kafka before 2.8, which have no id yet, with their znode's version. Not in the snapshot.
    without_id: tuple[tuple[str, znodes.TopicNode, int], ...] = ()


@dataclass(slots=True)
class _Known:
    """The nodes as last read."""

    brokers: dict[int, tuple[BrokerAddress, int]] = field(default_factory=dict)  # address, czxid
    topics: dict[str, tuple[znodes.TopicNode, int]] = field(default_factory=dict)  # node, version
    states: dict[str, tuple[znodes.PartitionState, int]] = field(default_factory=dict)  # by path
    controller: tuple[int, int] | None = None  # broker id, session
    controller_epoch: int = -1
    deletions: tuple[str, ...] = ()


class Observer:
    """Owned by one task. `dirty` is set when a refresh would read something."""

    def __init__(self, session: ZooKeeperSession, cluster_id: str) -> None:
        self._session = session
        self._cluster_id = cluster_id
        self._known = _Known()
        self._dirty: set[str] = set()
        self.dirty = asyncio.Event()
        self.distrust()

    def distrust(self) -> None:
        """Read everything again: at the start, and in a new session."""
        self._mark(
            paths.BROKER_IDS,
            paths.BROKER_TOPICS,
            paths.CONTROLLER,
            paths.CONTROLLER_EPOCH,
            paths.DELETE_TOPICS,
            *map(paths.topic, self._known.topics),
            *self._known.states,
        )

    async def refresh(self) -> Observation:
        """Read what is dirty until nothing is. Raises ZooKeeper errors; the unread paths stay dirty then."""
        while self._dirty:
            self.dirty.clear()
            batch = sorted(self._dirty)
            # Unmarked before the read: a change between the read and its watch's event must mark it again.
            self._dirty.difference_update(batch)
            results = await asyncio.gather(*(self._read(path) for path in batch), return_exceptions=True)
            failed = [(path, result) for path, result in zip(batch, results, strict=True) if result is not None]
            if failed:
                self._mark(*(path for path, _ in failed))
                raise failed[0][1]
        return self._observation()

    def _mark(self, *changed: str) -> None:
        self._dirty.update(changed)
        if changed:
            self.dirty.set()

    def _fired(self, fired: WatchFired) -> None:
        self._mark(fired.path)

    async def _read(self, path: str) -> None:
        if path == paths.BROKER_IDS:
            await self._read_brokers()
        elif path == paths.BROKER_TOPICS:
            await self._read_topics()
        elif path == paths.DELETE_TOPICS:
            self._known.deletions = tuple(await self._children(path))
        elif path == paths.CONTROLLER:
            await self._read_controller()
        elif path == paths.CONTROLLER_EPOCH:
            found = await self._node(path, znodes.parse_controller_epoch)
            self._known.controller_epoch = -1 if found is None else found[0]
        elif path.endswith("/state"):
            await self._read_state(path)
        else:
            await self._read_topic(paths.name(path))

    async def _read_brokers(self) -> None:
        names = [name for name in await self._children(paths.BROKER_IDS) if name.isdigit()]
        nodes = await asyncio.gather(*(self._broker(int(name)) for name in names))
        self._known.brokers = {address.node_id: (address, czxid) for address, czxid in filter(None, nodes)}

    async def _broker(self, node_id: int) -> tuple[BrokerAddress, int] | None:
        # No watch: a node that is replaced changes its parent's children, which are watched.
        try:
            data, stat = await self._session.get(paths.broker(node_id), step=_STEP)
        except NoNode:
            return None
        address = _parsed(paths.broker(node_id), partial(znodes.parse_broker, node_id), data)
        return None if address is None else (address, stat.czxid)

    async def _read_topics(self) -> None:
        names = set(await self._children(paths.BROKER_TOPICS))
        for gone in self._known.topics.keys() - names:
            self._forget_topic(gone)
        self._mark(*(paths.topic(name) for name in names - self._known.topics.keys()))

    async def _read_topic(self, name: str) -> None:
        found = await self._node(paths.topic(name), znodes.parse_topic)
        if found is None:
            self._forget_topic(name)
            return
        node, stat = found
        before = self._known.topics.get(name)
        if before is not None and before[0].topic_id not in (None, node.topic_id):
            self._forget_topic(name)  # deleted and made again: another topic of that name
        self._known.topics[name] = (node, stat.version)
        states = (paths.partition_state(name, number) for number in range(len(node.replicas)))
        self._mark(*(path for path in states if path not in self._known.states))

    def _forget_topic(self, name: str) -> None:
        self._known.topics.pop(name, None)
        prefix = paths.topic(name) + "/"
        for path in [path for path in self._known.states if path.startswith(prefix)]:
            del self._known.states[path]

    async def _read_state(self, path: str) -> None:
        name = path.split("/")[3]
        if name not in self._known.topics:
            return  # a watch of a topic that has gone; its return would mark this path again
        found = await self._node(path, znodes.parse_state)
        if found is None or name not in self._known.topics:
            self._known.states.pop(path, None)
        else:
            self._known.states[path] = (found[0], found[1].version)

    async def _read_controller(self) -> None:
        found = await self._node(paths.CONTROLLER, znodes.parse_controller)
        self._known.controller = None if found is None else (found[0], found[1].ephemeral_owner)

    async def _children(self, path: str) -> list[str]:
        while True:
            try:
                return await self._session.children(path, watch=self._fired, step=_STEP)
            except NoNode:
                if await self._session.exists(path, watch=self._fired, step=_STEP) is None:
                    return []

    async def _node(self, path: str, parse: Callable[[bytes], Parsed]) -> tuple[Parsed, ZnodeStat] | None:
        """Read and watch a node that may not exist; nonsense in it counts as absent."""
        while True:
            try:
                data, stat = await self._session.get(path, watch=self._fired, step=_STEP)
            except NoNode:
                if await self._session.exists(path, watch=self._fired, step=_STEP) is None:
                    return None
            else:
                parsed = _parsed(path, parse, data)
                return None if parsed is None else (parsed, stat)

    def _observation(self) -> Observation:
        known = self._known
        topics = {
            name: view
            for name, (node, version) in sorted(known.topics.items())
            if (view := _topic_view(name, node, version, known.states)) is not None
        }
        snapshot = ClusterSnapshot(
            cluster_id=self._cluster_id,
            controller_id=-1 if known.controller is None else known.controller[0],
            controller_epoch=known.controller_epoch,
            brokers=MappingProxyType({node_id: known.brokers[node_id][0] for node_id in sorted(known.brokers)}),
            broker_epochs=MappingProxyType({node_id: czxid for node_id, (_, czxid) in known.brokers.items()}),
            topics=MappingProxyType(topics),
            topic_names=MappingProxyType({view.topic_id: name for name, view in topics.items()}),
        )
        return Observation(
            snapshot=snapshot,
            controller_session=0 if known.controller is None else known.controller[1],
            deletions=known.deletions,
            without_id=tuple(
                (name, node, version) for name, (node, version) in known.topics.items() if node.topic_id is None
            ),
        )


def _parsed(path: str, parse: Callable[[bytes], Parsed], data: bytes) -> Parsed | None:
    try:
        return parse(data)
    except znodes.MalformedNode as error:
        log.warning("%s is ignored: %s", path, error)
        return None


def _topic_view(
    name: str, node: znodes.TopicNode, version: int, states: Mapping[str, tuple[znodes.PartitionState, int]]
) -> TopicView | None:
    if node.topic_id is None:
        return None
    partitions = []
    for number, replicas in enumerate(node.replicas):
        found = states.get(paths.partition_state(name, number))
        if found is None:
            partitions.append(PartitionView(replicas))
            continue
        state, state_version = found
        partitions.append(
            PartitionView(
                replicas=replicas,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                controller_epoch=state.controller_epoch,
                state_version=state_version,
            )
        )
    return TopicView(name, node.topic_id, tuple(partitions), version)
