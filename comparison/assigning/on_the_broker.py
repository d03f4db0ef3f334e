"""The strategies of the coordinator in the `consumer` design (KIP-848), for a group by names.

Kafka gives topics random ids, and who gives up which of its partitions depends on them. Here an id follows from the
name, so that the answer is always the same.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid5

import numpy as np

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.target.group import NOBODY, TargetGroup, TopicGrid
from kernel.assignors.target.registry import TARGET_ASSIGNORS
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.assigning.group import Group

#: Their names here, and on the broker: its `range` is another one than that of a classic group's members.
ON_THE_BROKER: Mapping[str, str] = MappingProxyType({"uniform": "uniform", "broker-range": "range"})


def assign_on_broker(
    strategy: str, group: Group, owned: Mapping[str, tuple[TopicPartition, ...]]
) -> dict[str, tuple[TopicPartition, ...]]:
    """{member: its partitions}; `owned` is the assignment before."""
    by_name = group.by_name
    rows = texts_in_hash_order(by_name)
    wanted = {topic for member in group.members for topic in member.topics}
    alike = all(wanted.issubset(member.topics) for member in group.members)
    ids = {name: uuid5(NAMESPACE_URL, name).bytes for name in sorted(wanted) if group.sizes[name]}
    if not ids:
        return dict.fromkeys(by_name, ())
    grid = TopicGrid.of_names(wanted, {name: (topic_id, group.sizes[name]) for name, topic_id in ids.items()})
    topics = {topic_id: name for name, topic_id in ids.items()}
    places = {topics[topic_id]: place for place, topic_id in enumerate(grid.ids)}
    owner = np.full(grid.partitions, NOBODY, np.int32)
    for row, member in enumerate(rows):
        kept = [tp for tp in owned.get(member, ()) if tp.topic in places and tp.topic in by_name[member].topics]
        owner[[int(grid.starts[places[tp.topic]]) + tp.partition for tp in kept]] = row
    subscribed = np.array([[topics[each] in by_name[member].topics for each in grid.ids] for member in rows], np.bool_)
    instances = tuple(by_name[member].instance_id for member in rows)

    def topics_of(row: int) -> list[bytes]:
        return [ids[name] for name in dict.fromkeys(tp.topic for tp in owned.get(rows[row], ())) if name in ids]

    target_group = TargetGroup(tuple(rows), instances, grid, None if alike else subscribed, owner, topics_of)
    target = TARGET_ASSIGNORS[ON_THE_BROKER[strategy]](target_group)
    found: dict[str, list[TopicPartition]] = {member.name: [] for member in group.members}
    for topic_id, start, size in zip(grid.ids, grid.starts.tolist(), grid.sizes.tolist(), strict=False):
        for number, row in enumerate(target[start : start + size].tolist()):
            if row != NOBODY:
                found[rows[row]].append(TopicPartition(topics[topic_id], number))
    return {member: tuple(tps) for member, tps in found.items()}
