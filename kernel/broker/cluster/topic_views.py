"""The views of all topics, rebuilt for topics that have changed. Pure."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.broker.cluster import znodes
from kernel.broker.cluster.cluster_view import UNREADABLE, PartitionView, TopicView
from kernel.zookeeper import paths

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

log = logging.getLogger(__name__)

#: The partitions' states, by path, with their versions; None for malformed ones.
States = dict[str, tuple[znodes.PartitionState | None, int]]


@dataclass(frozen=True, slots=True)
class TopicZnode:
    """A topic's znode as last read. `had_id` is the id that this znode had before, whatever it says now."""

    node: znodes.TopicNode
    version: int
    czxid: int
    had_id: UUID | None


class TopicViews:
    """The views of all topics; those of changed topics are rebuilt."""

    def __init__(self) -> None:
        self.without_id: set[str] = set()
        self._changed: set[str] = set()
        self._topics: dict[str, TopicView] = {}
        self._names: dict[UUID, str] = {}
        self._shown: tuple[Mapping[str, TopicView], Mapping[UUID, str]] = (MappingProxyType({}), MappingProxyType({}))
        self._doubles: set[str] = set()  # their ids belong to other, older topics

    def changed(self, name: str) -> None:
        self._changed.add(name)

    def refreshed(
        self, topics: Mapping[str, TopicZnode], states: States
    ) -> tuple[Mapping[str, TopicView], Mapping[UUID, str]]:
        """Views by name, ordered; names by id. The same objects as before if nothing has changed."""
        if not self._changed:
            return self._shown
        changed = self._changed | self._doubles
        self._changed, self._doubles = set(), set()
        # Copies: returned views never change. dict.copy computes no hashes, and keeps the order.
        views, names = self._topics.copy(), self._names.copy()
        for name in changed:
            self.without_id.discard(name)
            view = views.get(name)
            if view is not None and names.get(view.topic_id) == name:
                del names[view.topic_id]
        for name in sorted(changed & topics.keys(), key=lambda name: topics[name].czxid):
            self._add(name, topics, states, views, names)
        for name in changed:
            if name in views and names.get(views[name].topic_id) != name:
                del views[name]
        if any(name in views and name not in self._topics for name in changed):
            views = {name: views[name] for name in sorted(views)}
        self._topics, self._names = views, names
        self._shown = (MappingProxyType(views), MappingProxyType(names))
        return self._shown

    def _add(
        self,
        name: str,
        topics: Mapping[str, TopicZnode],
        states: States,
        views: dict[str, TopicView],
        names: dict[UUID, str],
    ) -> None:
        znode = topics[name]
        if znode.node.topic_id is None or znode.node.topic_id != znode.had_id:
            self.without_id.add(name)
        if znode.had_id is None:
            return
        other = names.get(znode.had_id)
        if other is not None:
            # Both would write to the same log.
            log.warning(
                "ignoring %s: its topic_id %s belongs to topic %s",
                *(paths.topic(name), znodes.id_text(znode.had_id), other),
            )
            self._doubles.add(name)
            return
        views[name] = _topic_view(name, znode, states)
        names[znode.had_id] = name


def _topic_view(name: str, znode: TopicZnode, states: States) -> TopicView:
    assert znode.had_id is not None
    partitions = []
    for number, replicas in enumerate(znode.node.replicas):
        found = states.get(paths.partition_state(name, number))
        partitions.append(PartitionView(replicas) if found is None else _partition_view(replicas, *found))
    return TopicView(name, znode.had_id, tuple(partitions), znode.version)


def _partition_view(replicas: tuple[int, ...], state: znodes.PartitionState | None, version: int) -> PartitionView:
    if state is None:
        return PartitionView(replicas, state_version=UNREADABLE)
    return PartitionView(
        replicas=replicas,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        controller_epoch=state.controller_epoch,
        state_version=version,
    )
