"""Who shall have what: runs an assignor for the whole group, and says whose target changes."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import numpy as np

from coordinator.groups.partitions import NONE, partitions
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.target.group import NOBODY, TargetGroup, TopicGrid
from kernel.assignors.target.registry import TARGET_ASSIGNORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.topics import Topic, Topics
    from coordinator.groups.partitions import Partitions


def changed_targets(group: ConsumerGroup, assignor: str, topics: Topics) -> dict[str, Partitions]:
    """The targets of the group's next assignment that differ from the present ones, or have never been set."""
    rows = texts_in_hash_order(group.members)
    subscriptions = [group.topics_of(group.members[member]) for member in rows]
    found = {name: topic for name in sorted(group.subscribed()) if (topic := topics.find(name)) is not None}
    known = {name: topic for name, topic in found.items() if topic.partitions}
    if not known:
        return {member: NONE for member in rows if group.targets.get(member) != NONE}
    grid = TopicGrid.of([(UUID(bytes=topic.id), topic.partitions) for topic in known.values()], len(known))
    before = _present(group, rows, grid)
    target = TargetGroup(
        tuple(rows),
        tuple(group.members[member].instance_id for member in rows),
        grid,
        None if len(set(subscriptions)) == 1 else _subscribed(grid, known, subscriptions),
        before,
    )
    after = TARGET_ASSIGNORS[assignor](target)
    moved = before != after
    changed = set(np.unique(np.concatenate((before[moved], after[moved]))).tolist()) - {NOBODY}
    ids = {topic.id for topic in known.values()}
    for row, member in enumerate(rows):
        present = group.targets.get(member)
        if present is None or not present.keys() <= ids:
            changed.add(row)
    new = _targets(grid, after, sorted(changed))
    return {rows[row]: target for row, target in new.items() if group.targets.get(rows[row]) != target}


def _subscribed(grid: TopicGrid, known: dict[str, Topic], subscriptions: Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    columns = {topic_id.bytes: column for column, topic_id in enumerate(grid.ids)}
    found = np.zeros((len(subscriptions), len(grid.ids)), np.bool_)
    column_of = {name: columns[topic.id] for name, topic in known.items()}
    rows: dict[frozenset[str], NDArray[np.int64]] = {}
    for row, names in zip(found, subscriptions, strict=True):
        if names not in rows:
            rows[names] = np.array([column_of[name] for name in names if name in column_of], np.int64)
        row[rows[names]] = True
    return found


def _present(group: ConsumerGroup, rows: Sequence[str], grid: TopicGrid) -> NDArray[np.int32]:
    """The present targets, as far as their topics are subscribed to."""
    owner = np.full(grid.partitions, NOBODY, np.int32)
    places = {
        topic_id.bytes: (start, size)
        for topic_id, start, size in zip(grid.ids, grid.starts.tolist(), grid.sizes.tolist(), strict=False)
    }
    ids: list[int] = []
    counts: list[int] = []
    for member in rows:
        before = len(ids)
        for topic, numbers in group.target_of(member).items():
            if topic in places:
                start, size = places[topic]
                ids += [start + number for number in numbers if number < size]
        counts.append(len(ids) - before)
    owner[ids] = np.repeat(np.arange(len(rows), dtype=np.int32), counts)
    return owner


def _targets(grid: TopicGrid, owner: NDArray[np.int32], rows: Sequence[int]) -> dict[int, Partitions]:
    """The partitions of some rows."""
    wanted = np.zeros(int(owner.max(initial=0)) + 2, np.bool_)
    wanted[[row for row in rows if row < len(wanted) - 1]] = True
    ids = np.flatnonzero(wanted[owner])  # NOBODY refers to the last entry
    pieces: dict[int, list[tuple[bytes, list[int]]]] = {row: [] for row in rows}
    topic = grid.topics_of(ids)
    order = np.lexsort((ids, topic, owner[ids]))
    ids, topic, row = ids[order], topic[order], owner[ids][order]
    starts = np.flatnonzero(np.append(True, (np.diff(row) != 0) | (np.diff(topic) != 0))) if len(ids) else ids
    numbers = ids - grid.starts[topic]
    for piece, at in zip(np.split(numbers, starts[1:]), starts.tolist(), strict=False):
        pieces[int(row[at])].append((grid.ids[int(topic[at])].bytes, piece.tolist()))
    return {row: partitions(of_row) for row, of_row in pieces.items()}
