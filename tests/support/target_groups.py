"""Groups by name, as the `consumer` design's assignors take and return them in arrays.

    step = {"partitions": {topic: count}, "topic_ids": {topic: hex}, "members": [[id, topics, instance id, owned, _]]}
    answer(step, "uniform")    # {member: {(topic, partition), ...}}

`owned` is the present target assignment, [[topic, [partition, ...]], ...].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.target.group import NOBODY, TargetGroup, TopicGrid
from kernel.assignors.target.mixed import assign_mixed
from kernel.assignors.target.ranges import assign_target_ranges
from kernel.assignors.target.uniform import assign_uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Step = dict[str, Any]


def group_of(step: Step) -> TargetGroup:
    members = {member: (set(topics), instance, owned) for member, topics, instance, owned, _ in step["members"]}
    rows = texts_in_hash_order(members)
    alike = len({frozenset(topics) for topics, *_ in members.values()}) == 1
    names = texts_in_hash_order(next(iter(step["members"]))[1]) if alike else sorted(step["partitions"])
    ids = {
        name: UUID(step["topic_ids"][name])
        for name in names
        if step["partitions"].get(name) and any(name in topics for topics, *_ in members.values())
    }
    ranks = {ids[name]: rank for rank, name in enumerate(sorted(ids))}
    grid = TopicGrid.of([(ids[name], step["partitions"][name]) for name in ids], len(names), ranks)
    subscribed = np.zeros((len(rows), len(grid.ids)), np.bool_)
    owner = np.full(grid.partitions, NOBODY, np.int32)
    for row, member in enumerate(rows):
        topics, _, owned = members[member]
        subscribed[row, [grid.ids.index(ids[topic]) for topic in topics & ids.keys()]] = True
        for topic, numbers in owned:
            if topic in ids:
                owner[grid.starts[grid.ids.index(ids[topic])] + np.array(numbers, np.int64)] = row
    instances = tuple(members[member][1] for member in rows)
    return TargetGroup(tuple(rows), instances, grid, None if alike else subscribed, owner)


def assigned(group: TargetGroup, strategy: str) -> NDArray[np.int32]:
    if not group.grid.ids:
        return group.owner
    if strategy == "range":
        return assign_target_ranges(group)
    return assign_uniform(group) if group.subscribed is None else assign_mixed(group)


def answer(step: Step, strategy: str) -> dict[str, set[tuple[str, int]]]:
    group = group_of(step)
    names = {UUID(topic_id): name for name, topic_id in step["topic_ids"].items()}
    owner = assigned(group, strategy)
    found: dict[str, set[tuple[str, int]]] = {member: set() for member in group.members}
    for at, topic_id in enumerate(group.grid.ids):
        for number, row in enumerate(owner[group.grid.starts[at] : group.grid.starts[at + 1]].tolist()):
            if row != NOBODY:
                found[group.members[row]].add((names[topic_id], number))
    return found


def runs(partitions: set[tuple[str, int]]) -> list[list[Any]]:
    """The form of `owned`."""
    topics = sorted({topic for topic, _ in partitions})
    return [[topic, sorted(number for name, number in partitions if name == topic)] for topic in topics]
