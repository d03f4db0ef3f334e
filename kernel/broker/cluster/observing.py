"""Follows /brokers, /controller and /admin in ZooKeeper: watches in, one immutable observation out.

Watch callbacks only mark paths as dirty. `refresh` reads dirty paths and what is below them (pipelined; each read sets
its watch again), and returns the new observation. A watch lost with its connection arrives as an event like any other,
so everything is read again after a reconnect; failed reads leave their paths dirty.

Any program may write to ZooKeeper. A malformed znode counts as absent, with a warning that names its path and the
problem; its neighbours are not affected. A topic's view is rebuilt only when the topic has changed (`topic_views.py`),
so an observation costs as much as has changed.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from kernel.broker.cluster import znodes
from kernel.broker.cluster.cluster_view import ClusterSnapshot
from kernel.broker.cluster.topic_views import States, TopicViews, TopicZnode
from kernel.topic_names import topic_name_problem
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NoNode

if TYPE_CHECKING:
    from collections.abc import Callable
    from uuid import UUID

    from kernel.values import BrokerAddress
    from kernel.zookeeper.operations import WatchFired, ZnodeStat
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)
_STEP = "cluster-view"
Parsed = TypeVar("Parsed")
#: At most this many paths are warned about; after that, malformed znodes are no longer logged.
_WARNED_MAX, _WARNED_CHARACTERS_MAX = 1_000, 300


@dataclass(frozen=True, slots=True)
class TopicWithoutId:
    """A topic's znode without an id, or with a different one: Kafka before 2.8 and its tools write none.

    `known_id` is the id that the same znode had before, which the view still uses. `was_led`: the topic has partition
    states, so it is not new, and the data folder may know its id.
    """

    name: str
    node: znodes.TopicNode
    version: int
    known_id: UUID | None
    was_led: bool


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """A znode with a request of Kafka's older tools to the controller: its data and its version."""

    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Observation:
    """The snapshot, and what only the controller needs."""

    snapshot: ClusterSnapshot = field(default_factory=ClusterSnapshot)
    controller_session: int = 0  #: the owner of /controller; 0 if there is none
    deletions: tuple[str, ...] = ()  #: topics to be deleted
    without_id: tuple[TopicWithoutId, ...] = ()  #: in the snapshot only if their id is known
    election: AdminRequest | None = None
    reassignment: AdminRequest | None = None


@dataclass(slots=True)
class _Known:
    """The nodes as last read."""

    brokers: dict[int, tuple[BrokerAddress, int]] = field(default_factory=dict)  # address, czxid
    topics: dict[str, TopicZnode] = field(default_factory=dict)
    states: States = field(default_factory=dict)
    controller: tuple[int, int] | None = None  # broker id, session
    controller_epoch: int = -1
    deletions: tuple[str, ...] = ()
    admin_requests: dict[str, AdminRequest] = field(default_factory=dict)  # by path


class Observer:
    """Owned by one task. `dirty` is set if there is something to refresh."""

    def __init__(self, session: ZooKeeperSession, cluster_id: str) -> None:
        self._session = session
        self._cluster_id = cluster_id
        self._known = _Known()
        self._views = TopicViews()
        self._dirty: set[str] = set()
        self._unreadable: set[str] = set()  # topics with malformed znodes; watched
        self._warned: dict[str, str] = {}  # the last warning for a malformed path
        self.dirty = asyncio.Event()
        self.invalidate()

    def invalidate(self) -> None:
        """Read everything again: at the start, and in a new session."""
        self._mark(
            paths.BROKER_IDS,
            paths.BROKER_TOPICS,
            paths.CONTROLLER,
            paths.CONTROLLER_EPOCH,
            paths.DELETE_TOPICS,
            paths.PREFERRED_ELECTION,
            paths.REASSIGNMENT,
            *map(paths.topic, (*self._known.topics, *self._unreadable)),
            *self._known.states,
        )

    async def refresh(self) -> Observation:
        """Read dirty paths until none is left. Raises ZooKeeper errors; unread paths stay dirty."""
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
        elif path in (paths.PREFERRED_ELECTION, paths.REASSIGNMENT):
            await self._read_admin_request(path)
        elif path == paths.CONTROLLER:
            await self._read_controller()
        elif path == paths.CONTROLLER_EPOCH:
            found = await self._node(path, znodes.parse_controller_epoch)
            self._known.controller_epoch = -1 if found is None or found[0] is None else found[0]
        elif path.endswith("/state"):
            await self._read_state(path)
        else:
            await self._read_topic(paths.name(path))

    async def _read_brokers(self) -> None:
        names = [name for name in await self._children(paths.BROKER_IDS) if self._is_broker_id(name)]
        nodes = await asyncio.gather(*(self._broker(int(name)) for name in names))
        self._known.brokers = {address.node_id: (address, czxid) for address, czxid in filter(None, nodes)}

    async def _broker(self, node_id: int) -> tuple[BrokerAddress, int] | None:
        # No watch: replacing a node changes its parent's children, which are watched.
        try:
            data, stat = await self._session.get(paths.broker(node_id), step=_STEP)
        except NoNode:
            return None
        address = self._parsed(paths.broker(node_id), partial(znodes.parse_broker, node_id), data)
        return None if address is None else (address, stat.czxid)

    async def _read_topics(self) -> None:
        names = set(await self._children(paths.BROKER_TOPICS))
        for gone in sorted(self._known.topics.keys() - names):
            self._forget_topic(gone)
        self._unreadable &= names
        new = names - self._known.topics.keys() - self._unreadable
        self._mark(*(paths.topic(name) for name in new if self._is_topic_name(name)))

    async def _read_topic(self, name: str) -> None:
        found = await self._node(paths.topic(name), znodes.parse_topic)
        node, stat = found or (None, None)
        if node is None or stat is None:
            self._forget_topic(name)
            if found is not None:
                self._unreadable.add(name)
            return
        self._unreadable.discard(name)
        before = self._known.topics.get(name)
        had_id = node.topic_id
        if before is not None and before.czxid != stat.czxid:
            self._forget_topic(name)  # deleted and created again: a different topic
        elif before is not None:
            had_id = before.had_id or node.topic_id  # the same znode is the same topic, whatever its data
            for number in range(len(node.replicas), len(before.node.replicas)):
                self._known.states.pop(paths.partition_state(name, number), None)
        self._known.topics[name] = TopicZnode(node, stat.version, stat.czxid, had_id)
        self._views.changed(name)
        states = (paths.partition_state(name, number) for number in range(len(node.replicas)))
        self._mark(*(path for path in states if path not in self._known.states))

    def _forget_topic(self, name: str) -> None:
        known = self._known.topics.pop(name, None)
        if known is None:
            return
        self._views.changed(name)
        # Topics never lose partitions, so these are all that were read.
        for number in range(len(known.node.replicas)):
            self._known.states.pop(paths.partition_state(name, number), None)

    async def _read_state(self, path: str) -> None:
        name = path.split("/")[3]
        if name not in self._known.topics:
            return  # of a deleted topic; creating it again marks the path again
        found = await self._node(path, znodes.parse_state)
        if found is None or name not in self._known.topics:
            self._known.states.pop(path, None)
        else:
            self._known.states[path] = (found[0], found[1].version)
        self._views.changed(name)

    async def _read_controller(self) -> None:
        found = await self._node(paths.CONTROLLER, znodes.parse_controller)
        if found is None or found[0] is None:
            self._known.controller = None
        else:
            self._known.controller = (found[0], found[1].ephemeral_owner)

    async def _read_admin_request(self, path: str) -> None:
        found = await self._node(path, bytes)
        if found is None or found[0] is None:
            self._known.admin_requests.pop(path, None)
        else:
            self._known.admin_requests[path] = AdminRequest(found[0], found[1].version)

    async def _children(self, path: str) -> list[str]:
        while True:
            try:
                return await self._session.children(path, watch=self._fired, step=_STEP)
            except NoNode:
                if await self._session.exists(path, watch=self._fired, step=_STEP) is None:
                    return []

    async def _node(self, path: str, parse: Callable[[bytes], Parsed]) -> tuple[Parsed | None, ZnodeStat] | None:
        """Read and watch a node that may not exist; None if it is malformed."""
        while True:
            try:
                data, stat = await self._session.get(path, watch=self._fired, step=_STEP)
            except NoNode:
                if await self._session.exists(path, watch=self._fired, step=_STEP) is None:
                    return None
            else:
                return self._parsed(path, parse, data), stat

    def _parsed(self, path: str, parse: Callable[[bytes], Parsed], data: bytes) -> Parsed | None:
        try:
            parsed = parse(data)
        except znodes.MalformedNode as error:
            self._warn(path, str(error))
            return None
        self._warned.pop(path, None)
        return parsed

    def _is_broker_id(self, name: str) -> bool:
        try:
            znodes.parse_broker_id(name)
        except znodes.MalformedNode as error:
            self._warn(f"{paths.BROKER_IDS}/{name}", str(error))
            return False
        return True

    def _is_topic_name(self, name: str) -> bool:
        if problem := topic_name_problem(name):
            self._warn(paths.topic(name), problem)
        return not problem

    def _warn(self, path: str, problem: str) -> None:
        """Warn once: children are read whenever one is added or removed."""
        path = path[:_WARNED_CHARACTERS_MAX]
        if self._warned.get(path) != problem and len(self._warned) < _WARNED_MAX:
            self._warned[path] = problem
            log.warning("ignoring %s: %s", path, problem)

    def _observation(self) -> Observation:
        known = self._known
        topics, topic_names = self._views.refreshed(known.topics, known.states)
        snapshot = ClusterSnapshot(
            cluster_id=self._cluster_id,
            controller_id=-1 if known.controller is None else known.controller[0],
            controller_epoch=known.controller_epoch,
            brokers=MappingProxyType({node_id: known.brokers[node_id][0] for node_id in sorted(known.brokers)}),
            broker_epochs=MappingProxyType({node_id: czxid for node_id, (_, czxid) in known.brokers.items()}),
            topics=topics,
            topic_names=topic_names,
        )
        return Observation(
            snapshot=snapshot,
            controller_session=0 if known.controller is None else known.controller[1],
            deletions=known.deletions,
            without_id=tuple(self._without_id(name) for name in sorted(self._views.without_id)),
            election=known.admin_requests.get(paths.PREFERRED_ELECTION),
            reassignment=known.admin_requests.get(paths.REASSIGNMENT),
        )

    def _without_id(self, name: str) -> TopicWithoutId:
        found = self._known.topics[name]
        states = (paths.partition_state(name, number) for number in range(len(found.node.replicas)))
        was_led = any(path in self._known.states for path in states)
        return TopicWithoutId(name, found.node, found.version, found.had_id, was_led)
