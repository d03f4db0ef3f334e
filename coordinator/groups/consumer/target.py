"""Who shall have what: runs an assignor for the whole group, and says whose target changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from coordinator.groups.consumer.target_table import Listed, TargetTable, new_targets
from coordinator.groups.partitions import NONE
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.target.group import TargetGroup, name_key
from kernel.assignors.target.registry import TARGET_ASSIGNORS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.member import ConsumerMember
    from coordinator.groups.consumer.topics import Topic, Topics
    from coordinator.groups.partitions import Partitions


def changed_targets(
    group: ConsumerGroup, assignor: str, topics: Topics, *, is_alike: bool | None = None
) -> dict[str, Partitions]:
    """The targets of the group's next assignment that differ from the present ones, or have never been set.

    Members that are taken for subscribed alike all get of what the first of them subscribes to; None: if they are.
    """
    is_alike = group.counts_alike() if is_alike is None else is_alike
    subscribed = group.subscribed()
    if is_alike and len(group.subscriptions) > 1:
        subscribed = group.names_of(_first(group, assignor).subscription)
    found = ((name, topics.find(name)) for name in subscribed)
    known = {name: topic for name, topic in found if topic is not None and topic.partitions}
    if not known:
        rows = texts_in_hash_order(group.members)
        return {member: NONE for member in rows if group.targets.get(member) != NONE}
    table = _table(group, subscribed, known)
    count, before = len(group.members), table.rows[table.owner]
    target = TargetGroup(
        Listed(count, lambda: table.members),
        Listed(count, lambda: [group.members[member].instance_id for member in table.members]),
        table.grid,
        None if is_alike else _subscribed(group, table, known),
        before,
        lambda row: group.target_of(table.ids[table.order[row]]),
        table.others(group.targets),
    )
    return new_targets(table, before, TARGET_ASSIGNORS[assignor](target), group.targets)


def _first(group: ConsumerGroup, assignor: str) -> ConsumerMember:
    """The one that the assignor meets first."""
    if assignor == "range":
        return min(group.members.values(), key=lambda member: name_key(member.id, member.instance_id))
    return group.members[texts_in_hash_order(group.members)[0]]


def _table(group: ConsumerGroup, names: frozenset[str], known: Mapping[str, Topic]) -> TargetTable:
    """The present targets, as far as their topics are subscribed to."""
    table = group.table
    if table is None or table.is_sparse or table.names != names or table.known != known:
        subscriptions = {member.id: member.subscription for member in group.members.values()}
        table = group.table = TargetTable(names, known, subscriptions, group.targets)
    return table


def _subscribed(group: ConsumerGroup, table: TargetTable, known: Mapping[str, Topic]) -> NDArray[np.bool_]:
    column_of = {topic_id: column for column, topic_id in enumerate(table.grid.ids)}
    found = np.zeros((len(table.kinds), len(column_of)), np.bool_)
    for subscription in group.subscriptions:
        names = group.names_of(subscription)
        found[table.kinds[subscription], [column_of[known[name].id] for name in names if name in known]] = True
    return table.by_kind(found)
