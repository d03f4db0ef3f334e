"""The settings of groups in ZooKeeper, known to every broker: any of them may coordinate the group.

Kafka has settings of groups only where it has no ZooKeeper (4.0). Here `/config/groups/G` holds those of one group, in
the form of a topic's, with the group's id percent-encoded; the data of `/config/groups` names the group altered last.
Both change in one transaction, and every broker watches the latter. (A notification in `/config/changes` would keep
Kafka's own 3.9 brokers of the cluster from reading all later ones: they know no such type.)
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import unquote

from kernel.broker.cluster import znodes
from kernel.broker.cluster.following import Follower
from kernel.broker.settings.group_configs import problem_of_one
from kernel.errors import Retriable
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode
from kernel.zookeeper.operations import Create, Delete, SetData, TransactionPart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.errors import RebalanceLabError
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

_STEP = "configs"
_NONE: Mapping[str, str] = {}


class GroupConfigStore:
    def __init__(
        self,
        node_id: int,
        session: Callable[[], ZooKeeperSession],
        on_failed: Callable[[RebalanceLabError], None] | None = None,
    ) -> None:
        self._node_id = node_id
        self._session = session
        self._groups: dict[str, dict[str, str]] = {}
        self._version: int | None = None  #: of /config/groups, as read last
        self._warned: set[tuple[str, str]] = set()
        self._follower = Follower(node_id, "settings of groups", session, self._read, on_failed)

    def of(self, group_id: str) -> Mapping[str, str]:
        """What a group has of its own, as this broker knows it."""
        return self._groups.get(group_id, _NONE)

    def names(self) -> tuple[str, ...]:
        """The groups that have any, as this broker knows them."""
        return tuple(self._groups)

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Read all settings, and follow changes from now on."""
        try:
            await self._read()
        except Retriable as error:
            log.info("broker %d could not read the settings of groups yet: %s", self._node_id, error)
            self._follower.start(at_once=True)
        else:
            self._follower.start()

    async def stop(self) -> None:
        await self._follower.stop()

    # -- reading and altering ----------------------------------------------------------------------------------------

    async def group(self, name: str) -> dict[str, str]:
        """A group's own settings as ZooKeeper has them now; valid ones only. Raises ZooKeeper errors."""
        path = paths.group_configuration(name)
        try:
            data, _ = await self._session().get(path, step=_STEP)
        except NoNode:
            return {}
        return self._valid(name, _parsed(path, data))

    async def alter(self, name: str, decide: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
        """Replace a group's settings by `decide(settings)`. Raises its exceptions, and ZooKeeper errors."""
        session, path = self._session(), paths.group_configuration(name)
        await session.ensure_path(paths.CONFIG_GROUPS, step=_STEP)
        altered = SetData(paths.CONFIG_GROUPS, znodes.config_change_node(f"groups/{paths.encoded(name)}"), -1)
        while True:
            try:
                data, stat = await session.get(path, step=_STEP)
            except NoNode:
                data, stat = b"", None
            after = decide(_parsed(path, data) if data else {})
            change: TransactionPart
            if stat is None:
                change = Create(path, znodes.topic_config_node(after))
            elif after:
                change = SetData(path, znodes.topic_config_node(after), stat.version)
            else:
                change = Delete(path, stat.version)
            try:
                if stat is not None or after:
                    await session.transaction(change, altered, step=_STEP)
            except (NodeExists, BadVersion, NoNode):
                continue
            break
        await self._read_group(name)

    async def _read_group(self, group_id: str) -> None:
        own = await self.group(group_id)
        if own:
            self._groups[group_id] = own
        else:
            self._groups.pop(group_id, None)

    def _valid(self, group_id: str, given: Mapping[str, str]) -> dict[str, str]:
        valid = {}
        for name, value in given.items():
            complaint = problem_of_one(name, value)
            if complaint is None:
                valid[name] = value
            elif (group_id, complaint) not in self._warned:
                self._warned.add((group_id, complaint))
                log.warning("group %s: ignoring a setting in ZooKeeper: %s", group_id, complaint)
        return valid

    # -- following ---------------------------------------------------------------------------------------------------

    async def _read(self) -> None:
        """What has changed: one group's, if only that was altered since the last time; else everything."""
        self._follower.begin()
        session = self._session()
        while await session.exists(paths.CONFIG_GROUPS, watch=self._follower.fired, step=_STEP) is not None:
            try:
                data, stat = await session.get(paths.CONFIG_GROUPS, step=_STEP)
                names = await session.children(paths.CONFIG_GROUPS, step=_STEP)
            except NoNode:
                continue
            if stat.version == self._version:
                return
            last, self._version = self._version, None
            changed = _changed(data) if last is not None and stat.version == last + 1 else None
            for group_id in {*map(unquote, names), *self._groups} if changed is None else {changed}:
                await self._read_group(group_id)
            self._version = stat.version
            return
        self._groups, self._version = {}, None


def _changed(data: bytes) -> str | None:
    """The group altered last; None if the data does not say."""
    try:
        return unquote(znodes.parse_config_change(data).partition("/")[2])
    except znodes.MalformedNode:
        return None


def _parsed(path: str, data: bytes) -> dict[str, str]:
    try:
        return znodes.parse_config(data)
    except znodes.MalformedNode as error:
        log.warning("ignoring %s: %s", path, error)
        return {}
