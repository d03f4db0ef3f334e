"""The acting half of the controller: stands for election, and writes what `controller.decide` decides.

Fencing is Kafka's: a new controller raises /controller_epoch in the transaction that creates /controller, and makes
every later write in a transaction that checks that node's version. A controller that was paused and replaced fails
this check.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.broker.cluster import znodes
from kernel.broker.cluster.admin_requests import preferred, reassigned
from kernel.broker.cluster.cluster_view import changed_topics
from kernel.broker.cluster.controller import decide, restarted
from kernel.random_ids import fresh_uuid
from kernel.topic_names import topic_name_problem
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode, NotEmpty
from kernel.zookeeper.operations import CheckVersion, Create, Delete, SetData

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
    from uuid import UUID

    from kernel.broker.cluster.cluster_view import TopicView
    from kernel.broker.cluster.controller import WriteState
    from kernel.broker.cluster.observing import AdminRequest, Observation, TopicWithoutId
    from kernel.runtime import Runtime
    from kernel.zookeeper.operations import TransactionPart
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)
_STEP = "controller"
#: Feature versions of the cluster (KIP-584); we write what a new 3.9.1 controller writes, and never read it.
_FEATURE = "/feature"
#: States written in one transaction.
_BATCH = 100


class Controller:
    """One broker's candidacy. One task calls `step` with every new observation."""

    def __init__(self, session: ZooKeeperSession, node_id: int, runtime: Runtime) -> None:
        self._session = session
        self._node_id = node_id
        self._runtime = runtime
        self._epoch = -1
        self._epoch_version = -1  # of the znode; -1: not elected
        self._elected_in = 0  # the session of the election
        self._broker_epochs: Mapping[int, int] = {}
        #: Input of the last decision: topics, and what else it depends on.
        self._decided: Mapping[str, TopicView] = {}
        self._circumstances: tuple[int, frozenset[int], tuple[str, ...]] | None = None
        self._last_warning = ""  # about a waiting reassignment
        #: Whether topics may be deleted (delete.topic.enable).
        self.deletes_topics = True
        #: The id that a topic has in the data folder, or None.
        self.kept_topic_id: Callable[[str], Awaitable[UUID | None]] | None = None

    async def step(self, observed: Observation) -> bool:
        """Stand for election if there is no controller; act if this broker is it.

        False if another writer was faster: call again with a newer observation. Raises
        ZooKeeper errors of a lost connection or session, and MalformedNode.
        """
        if observed.controller_session == 0:
            await self._stand_for_election()
            return True
        if observed.controller_session == self._session.session_id != self._elected_in:
            await self._adopt(observed.controller_session)
        if self._is_elected(observed):
            try:
                await self._act(observed)
            except (BadVersion, NodeExists, NoNode, NotEmpty) as error:
                log.info("controller %d, epoch %d: overtaken: %s", self._node_id, self._epoch, error)
                return False
        return True

    def _is_elected(self, observed: Observation) -> bool:
        return (
            observed.controller_session == self._session.session_id == self._elected_in
            and observed.snapshot.controller_epoch == self._epoch
        )

    async def _stand_for_election(self) -> None:
        """KafkaZkClient.registerControllerAndIncrementControllerEpoch, with /feature as the first one makes it."""
        try:
            data, stat = await self._session.get(paths.CONTROLLER_EPOCH, step=_STEP)
        except NoNode:
            await self._first_epoch()
            data, stat = await self._session.get(paths.CONTROLLER_EPOCH, step=_STEP)
        epoch = znodes.parse_controller_epoch(data) + 1
        session_id = self._session.session_id
        try:
            await self._session.transaction(
                Create(
                    paths.CONTROLLER,
                    znodes.controller_node(self._node_id, self._runtime.clock.wall_ms()),
                    ephemeral=True,
                ),
                SetData(paths.CONTROLLER_EPOCH, znodes.controller_epoch_node(epoch), stat.version),
                step=_STEP,
            )
        except (NodeExists, BadVersion):
            return  # another broker was elected; the watch on /controller fires
        self._begin(epoch, stat.version + 1, session_id)

    async def _adopt(self, session_id: int) -> None:
        """Recover an election whose reply was lost with the connection.

        The epoch is the one written with it: no broker can raise it while our /controller exists.
        """
        data, stat = await self._session.get(paths.CONTROLLER_EPOCH, step=_STEP)
        self._begin(znodes.parse_controller_epoch(data), stat.version, session_id)

    def _begin(self, epoch: int, epoch_version: int, session_id: int) -> None:
        self._epoch, self._epoch_version, self._elected_in = epoch, epoch_version, session_id
        self._broker_epochs = {}
        log.info("broker %d is controller with epoch %d", self._node_id, epoch)

    async def _first_epoch(self) -> None:
        for path, data in ((paths.CONTROLLER_EPOCH, b"0"), (_FEATURE, znodes.feature_node())):
            try:
                await self._session.create(path, data, step=_STEP)
            except NodeExists:
                continue

    async def _act(self, observed: Observation) -> None:
        now = observed.snapshot.broker_epochs
        live = now.keys() - restarted(self._broker_epochs, now)
        for topic in observed.without_id:
            await self._restore_id(topic)
        circumstances = (self._epoch, frozenset(live), observed.deletions)
        changed = changed_topics(self._decided, observed.snapshot.topics)
        among = changed if circumstances == self._circumstances else None
        writes = decide(observed.snapshot, live, self._epoch, doomed=observed.deletions, among=among)
        await self._write(writes)
        self._decided, self._circumstances = observed.snapshot.topics, circumstances
        if not writes and live == now.keys():
            # Otherwise the view lags behind what was just written.
            await self._handle_admin_requests(observed, live)
        for name in observed.deletions:
            await self._delete(name)
        self._broker_epochs = dict(now)
        if live != now.keys():
            # Elect as if they had gone; once the view shows it, the next step counts them as back.
            log.info("brokers %s have been restarted", sorted(now.keys() - live))

    async def _restore_id(self, topic: TopicWithoutId) -> None:
        """Restore topic ids: Kafka's tools before 2.8 write a topic's znode without its id.

        A running 3.9.1 controller keeps the id in memory and leaves the znode; the next controller then takes a new id,
        and its brokers refuse to lead the topic. We write the id back: it says where the records are.
        """
        topic_id = topic.known_id
        if topic_id is None and topic.was_led and self.kept_topic_id is not None:
            topic_id = await self.kept_topic_id(topic.name)
        named = znodes.TopicNode(topic.node.replicas, topic_id or fresh_uuid(self._runtime.random))
        log.info("topic %s was written without its id; it %s", topic.name, "keeps it" if topic_id else "gets one")
        await self._fenced(SetData(paths.topic(topic.name), znodes.topic_node(named), topic.version))

    async def _handle_admin_requests(self, observed: Observation, live: Collection[int]) -> None:
        """Carry out requests that older tools make by a znode (KafkaController, 3.9)."""
        if observed.election is not None:
            await self._elect(observed, observed.election, live)
        elif observed.reassignment is not None:
            await self._reassign(observed, observed.reassignment, live)

    async def _elect(self, observed: Observation, request: AdminRequest, live: Collection[int]) -> None:
        path = paths.PREFERRED_ELECTION
        try:
            wanted = znodes.parse_partitions(request.data)
        except znodes.MalformedNode as error:
            log.warning("removing %s: %s", path, error)
            wanted = ()
        await self._write(preferred(observed.snapshot, live, wanted, self._epoch))
        await self._fenced(Delete(path, request.version))

    async def _reassign(self, observed: Observation, request: AdminRequest, live: Collection[int]) -> None:
        path = paths.REASSIGNMENT
        try:
            wanted = znodes.parse_reassignment(request.data)
        except znodes.MalformedNode as error:
            self._warn_once(f"ignoring {path}: {error}")
            return
        plan = reassigned(observed.snapshot, live, wanted)
        for refusal in plan.refused:
            log.warning("%s: %s", path, refusal)
        for name, node in plan.topics.items():
            version = observed.snapshot.topics[name].node_version
            await self._fenced(SetData(paths.topic(name), znodes.topic_node(node), version))
        if not plan.waiting:
            await self._fenced(Delete(path, request.version))
            return
        brokers = sorted({broker for replicas in plan.waiting.values() for broker in replicas} - set(live))
        self._warn_once(f"{path}: {len(plan.waiting)} partitions wait for brokers {brokers}, which are not running")
        if plan.waiting != wanted:
            await self._fenced(SetData(path, znodes.reassignment_node(plan.waiting), request.version))

    def _warn_once(self, text: str) -> None:
        """Log a warning once, not at every observation."""
        if text != self._last_warning:
            self._last_warning = text
            log.warning("%s", text)

    async def _fenced(self, *parts: TransactionPart) -> None:
        await self._session.transaction(CheckVersion(paths.CONTROLLER_EPOCH, self._epoch_version), *parts, step=_STEP)

    async def _write(self, writes: Sequence[WriteState]) -> None:
        changes = [write for write in writes if write.expected_version is not None]
        for start in range(0, len(changes), _BATCH):
            await self._fenced(
                *(
                    SetData(
                        paths.partition_state(*write.topic_partition),
                        znodes.state_node(write.state),
                        write.expected_version if write.expected_version is not None else -1,
                    )
                    for write in changes[start : start + _BATCH]
                )
            )
        new = [write for write in writes if write.expected_version is None]
        for name in sorted({write.topic_partition.topic for write in new}):
            try:
                await self._session.create(paths.partitions(name), None, step=_STEP)
            except NodeExists:
                continue
        for start in range(0, len(new), _BATCH):
            await self._create_states(new[start : start + _BATCH])

    async def _create_states(self, new: Sequence[WriteState]) -> None:
        """Create the states of new partitions, with their folders."""
        states = [
            Create(paths.partition_state(*write.topic_partition), znodes.state_node(write.state)) for write in new
        ]
        folders = [Create(paths.partition(*write.topic_partition), None) for write in new]
        try:
            await self._fenced(*(part for pair in zip(folders, states, strict=True) for part in pair))
        except NodeExists:
            # The folder exists without a state.
            await asyncio.gather(*(self._session.ensure_path(folder.path, step=_STEP) for folder in folders))
            await self._fenced(*states)

    async def _delete(self, name: str) -> None:
        """Remove a topic and then the request to delete it; children before parents. Missing nodes are fine."""
        if not self.deletes_topics:
            log.warning("not deleting topic %s: delete.topic.enable is false", name)
            await self._delete_if_there(paths.topic_deletion(name))
            return
        if problem := topic_name_problem(name):
            log.warning("removing %s: %s", paths.topic_deletion(name)[:300], problem)
            await self._delete_if_there(paths.topic_deletion(name))
            return
        await self._delete_below(paths.topic(name))
        await self._delete_if_there(paths.topic_configuration(name))
        try:
            # Together: a request that outlives its topic would delete the next one of that name.
            await self._fenced(Delete(paths.topic(name)), Delete(paths.topic_deletion(name)))
        except NoNode:
            await self._delete_if_there(paths.topic_deletion(name))

    async def _delete_below(self, path: str) -> None:
        """Everything below it, even nodes that are not Kafka's."""
        try:
            names = await self._session.children(path, step=_STEP)
        except NoNode:
            return
        for name in names:
            await self._delete_below(f"{path}/{name}")
            await self._delete_if_there(f"{path}/{name}")

    async def _delete_if_there(self, path: str) -> None:
        try:
            await self._fenced(Delete(path))
        except NoNode:
            log.debug("%s is gone already", path)
