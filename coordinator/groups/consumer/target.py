"""Who shall have what: runs an assignor for the whole group, and says whose target changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coordinator.groups.consumer.target_table import Listed, TargetTable, new_targets
from coordinator.groups.partitions import NONE
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.target.group import TargetGroup
from kernel.assignors.target.registry import TARGET_ASSIGNORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.member import Subscription
    from coordinator.groups.consumer.topics import Topic, Topics
    from coordinator.groups.partitions import Partitions


def changed_targets(group: ConsumerGroup, assignor: str, topics: Topics) -> dict[str, Partitions]:
    """The targets of the group's next assignment that differ from the present ones, or have never been set."""
    found = {name: topic for name in sorted(group.subscribed()) if (topic := topics.find(name)) is not None}
    known = {name: topic for name, topic in found.items() if topic.partitions}
    if not known:
        rows = texts_in_hash_order(group.members)
        return {member: NONE for member in rows if group.targets.get(member) != NONE}
    table = _table(group, known)
    names = {subscription: group.names_of(subscription) for subscription in group.subscriptions}
    count, before = len(group.members), table.rows[table.owner]
    target = TargetGroup(
        Listed(count, lambda: table.members),
        Listed(count, lambda: [group.members[member].instance_id for member in table.members]),
        table.grid,
        None if len(set(names.values())) == 1 else _subscribed(table, known, names),
        before,
    )
    return new_targets(table, before, TARGET_ASSIGNORS[assignor](target), group.targets)


def _table(group: ConsumerGroup, known: Mapping[str, Topic]) -> TargetTable:
    """The present targets, as far as their topics are subscribed to."""
    table, topics = group.table, tuple(known.values())
    if table is None or table.is_sparse or table.topics != topics:
        subscriptions = {member.id: member.subscription for member in group.members.values()}
        table = group.table = TargetTable(topics, subscriptions, group.targets)
    return table


def _subscribed(
    table: TargetTable, known: Mapping[str, Topic], names: Mapping[Subscription, frozenset[str]]
) -> NDArray[np.bool_]:
    column_of = {topic_id.bytes: column for column, topic_id in enumerate(table.grid.ids)}
    found = np.zeros((len(table.kinds), len(column_of)), np.bool_)
    for subscription, its in names.items():
        found[table.kinds[subscription], [column_of[known[name].id] for name in its if name in known]] = True
    return table.by_kind(found)
