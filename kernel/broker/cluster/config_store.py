"""The settings of topics and brokers in ZooKeeper, followed and altered as Kafka 3.9 does.

`/config/topics/T` and `/config/brokers/N` hold the settings. To change one, a broker or one of Kafka's tools also adds
a node to `/config/changes` that names the topic or broker; every broker watches that folder and reads the named
settings again (ZkNodeChangeNotificationListener, DynamicConfigManager). Notifications are removed after 15 minutes.

This broker keeps the settings of topics that it leads, and reads them before it leads the first of their partitions.
Malformed settings are skipped, with a warning that names them.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from kernel.broker.cluster import znodes
from kernel.broker.cluster.following import Follower
from kernel.broker.cluster.group_config_store import GroupConfigStore
from kernel.broker.settings.effective_configs import DYNAMIC_BROKER_SETTINGS, BrokerLayers, effective
from kernel.broker.settings.topic_configs import TopicConfig, problem, warnings_of
from kernel.broker.storage.errors import StorageFailed
from kernel.errors import Retriable
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode, ZooKeeperError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from kernel.broker.cluster.cluster_view import Leadership
    from kernel.clock import Clock
    from kernel.errors import RebalanceLabError
    from kernel.values import TopicPartition
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

#: The name for all brokers in /config/brokers (ConfigEntityName.DEFAULT).
ALL_BROKERS = "<default>"
#: ZkNodeChangeNotificationListener: how long a notification stays.
_CHANGE_KEPT_MS = 15 * 60 * 1000
_STEP = "configs"


class ConfigStore:
    """A `LeadershipListener` like the logs, so that `of` knows a topic before one of its partitions is led."""

    def __init__(self, node_id: int, static: Mapping[str, str], clock: Clock) -> None:
        self._node_id = node_id
        self._static = static
        self._clock = clock
        self._session: Callable[[], ZooKeeperSession]
        self._follower: Follower
        self.groups: GroupConfigStore
        self.layers = BrokerLayers(static=static)
        self._own: dict[str, dict[str, str]] = {}
        self._configs: dict[str, TopicConfig] = {}
        self._ids: dict[str, UUID] = {}
        self._led: dict[str, set[TopicPartition]] = {}
        self._reading: dict[str, asyncio.Lock] = {}
        self._warned: set[tuple[str, str]] = set()
        self._otherwise = self._config_of({})
        self._last_change = ""

    def of(self, topic: str) -> TopicConfig:
        """The effective settings of a topic. A topic that this broker does not lead counts as one without settings."""
        return self._configs.get(topic, self._otherwise)

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    def connect(
        self, session: Callable[[], ZooKeeperSession], on_failed: Callable[[RebalanceLabError], None] | None = None
    ) -> None:
        """Set how to get the session, which exists before any partition is led.

        `on_failed` is called when an internal error keeps this broker from following settings.
        """
        self._session = session
        self._follower = Follower(self._node_id, "settings", session, self._read_changes, on_failed)
        self.groups = GroupConfigStore(self._node_id, session, on_failed)

    async def start(self) -> None:
        """Read the brokers' settings, and follow changes from now on."""
        try:
            await self._read_changes(ignore=True)
            await self._read_brokers()
        except Retriable as error:
            log.info("broker %d could not read its settings yet: %s", self._node_id, error)
            self._follower.missed, self._last_change = True, ""
            self._follower.start(at_once=True)
        else:
            self._follower.start()
        await self.groups.start()

    async def stop(self) -> None:
        await self.groups.stop()
        await self._follower.stop()

    async def on_lead(self, leadership: Leadership) -> None:
        tp = leadership.topic_partition
        async with self._reading.setdefault(tp.topic, asyncio.Lock()):
            if self._ids.get(tp.topic) != leadership.topic_id:
                try:
                    await self._read_topic(tp.topic)
                except ZooKeeperError as error:
                    raise StorageFailed(f"cannot read the settings of topic {tp.topic}: {error}") from error
                self._ids[tp.topic] = leadership.topic_id
        self._led.setdefault(tp.topic, set()).add(tp)

    async def on_resign(self, topic_partition: TopicPartition) -> None:
        topic = topic_partition.topic
        led = self._led.get(topic, set())
        led.discard(topic_partition)
        if not led:
            for known in (self._led, self._configs, self._own, self._ids, self._reading):
                known.pop(topic, None)

    # -- reading and altering ----------------------------------------------------------------------------------------

    async def topic(self, name: str) -> dict[str, str]:
        """A topic's own settings as ZooKeeper has them now; valid ones only. Raises ZooKeeper errors."""
        return self._valid_for_topic(name, await self._node(paths.topic_configuration(name)))

    async def broker(self, name: str) -> dict[str, str]:
        """Altered settings of broker `name`, or of `ALL_BROKERS`. Raises ZooKeeper errors."""
        return self._valid_for_broker(name, await self._node(paths.broker_configuration(name)))

    async def alter_topic(self, name: str, decide: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        """Replace a topic's settings by `decide(settings)`. Raises its exceptions, and ZooKeeper errors."""
        await self._alter(paths.topic_configuration(name), f"topics/{name}", decide)
        await self._read_again(name)

    async def alter_broker(self, name: str, decide: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        """As `alter_topic`, for a broker or `ALL_BROKERS`."""
        await self._alter(paths.broker_configuration(name), f"brokers/{name}", decide)
        await self._read_brokers()

    async def _alter(self, path: str, entity_path: str, decide: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        """AdminZkClient.changeEntityConfig: the settings, then the notification. Retries lost races."""
        session = self._session()
        while True:
            try:
                data, stat = await session.get(path, step=_STEP)
            except NoNode:
                data, stat = b"", None
            before = _parsed(path, data) if data else {}
            node = znodes.topic_config_node(decide(before))
            try:
                if stat is None:
                    await session.create(path, node, makepath=True, step=_STEP)
                else:
                    await session.set(path, node, stat.version, step=_STEP)
            except (NodeExists, BadVersion, NoNode):
                continue
            break
        await session.create_numbered(paths.CONFIG_CHANGE, znodes.config_change_node(entity_path), step=_STEP)

    async def _node(self, path: str) -> dict[str, str]:
        try:
            data, _ = await self._session().get(path, step=_STEP)
        except NoNode:
            return {}
        return _parsed(path, data)

    async def _read_topic(self, name: str) -> None:
        own = await self.topic(name)
        self._own[name] = own
        self._configs[name] = self._config_of(own)
        for warning in warnings_of(own):
            if (name, warning) not in self._warned:
                self._warned.add((name, warning))
                log.warning("topic %s: %s", name, warning)

    async def _read_again(self, name: str) -> None:
        """Read after a read in progress, which may have been too early."""
        if (reading := self._reading.get(name)) is not None:
            async with reading:
                await self._read_topic(name)

    async def _read_brokers(self) -> None:
        own, of_all = await asyncio.gather(self.broker(str(self._node_id)), self.broker(ALL_BROKERS))
        self.layers = BrokerLayers(own=own, of_all=of_all, static=self._static)
        self._otherwise = self._config_of({})
        self._configs = {name: self._config_of(given) for name, given in self._own.items()}

    def _config_of(self, own: Mapping[str, str]) -> TopicConfig:
        return TopicConfig.of(effective(own, self.layers))

    def _valid_for_topic(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        return self._valid(f"topic {name}", given, {key: problem(key, value) for key, value in given.items()})

    def _valid_for_broker(self, name: str, given: Mapping[str, str]) -> dict[str, str]:
        return self._valid(f"broker {name}", given, {key: broker_problem(key, value) for key, value in given.items()})

    def _valid(self, whose: str, given: Mapping[str, str], problems: Mapping[str, str | None]) -> dict[str, str]:
        for complaint in filter(None, problems.values()):
            if (whose, complaint) not in self._warned:
                self._warned.add((whose, complaint))
                log.warning("%s: ignoring a setting in ZooKeeper: %s", whose, complaint)
        return {key: value for key, value in given.items() if problems[key] is None}

    # -- following ---------------------------------------------------------------------------------------------------

    async def _read_changes(self, *, ignore: bool = False) -> None:
        missed = self._follower.begin()
        try:
            names = await self._session().children(paths.CONFIG_CHANGES, watch=self._follower.fired, step=_STEP)
            if missed and self._last_change not in names:  # some may have been removed before we read them
                await asyncio.gather(self._read_brokers(), *map(self._read_again, list(self._reading)))
        except (Retriable, ZooKeeperError):
            self._follower.missed = True
            raise
        if not ignore:
            for name in names:
                if name > self._last_change:
                    await self._read_change(f"{paths.CONFIG_CHANGES}/{name}")
                    self._last_change = name
            await self._remove_old(names)
        self._last_change = names[-1] if names else self._last_change

    async def _read_change(self, path: str) -> None:
        try:
            data, _ = await self._session().get(path, step=_STEP)
            kind, _, name = znodes.parse_config_change(data).partition("/")
        except NoNode:
            return
        except znodes.MalformedNode as error:
            log.warning("ignoring %s: %s", path, error)
            return
        if kind == "topics":
            await self._read_again(name)
        elif kind == "brokers":
            await self._read_brokers()

    async def _remove_old(self, names: list[str]) -> None:
        """Remove expired notifications before the one just read, oldest first."""
        for name in names:
            path = f"{paths.CONFIG_CHANGES}/{name}"
            try:
                _, stat = await self._session().get(path, step=_STEP)
                if self._clock.wall_ms() - stat.ctime_ms < _CHANGE_KEPT_MS:
                    return
                await self._session().delete(path, step=_STEP)
            except NoNode:
                continue


def broker_problem(name: str, text: str) -> str | None:
    """Kafka's error message for an invalid dynamic broker setting, or None."""
    setting = DYNAMIC_BROKER_SETTINGS.get(name)
    if setting is None:
        return f"Cannot update these configs dynamically: Set({name})"
    complaint = problem(setting.name, text)
    return None if complaint is None else complaint.replace(f"configuration {setting.name}:", f"configuration {name}:")


def _parsed(path: str, data: bytes) -> dict[str, str]:
    try:
        return znodes.parse_config(data)
    except znodes.MalformedNode as error:
        log.warning("ignoring %s: %s", path, error)
        return {}
