"""The targets of a group as arrays, which follow its records: what an assignor reads of ten thousand members.

A member has a slot, in the order in which it came; the slots of those who have left stay empty. The table is made when
a target is computed and what the group subscribes to has changed; meanwhile the group tells it of each member that
comes or goes, and of each target. So a computation takes no step for each member or partition outside of numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np

from coordinator.groups.partitions import NONE
from kernel.assignors.group_arrays import stable_order
from kernel.assignors.hash_order import table_size
from kernel.assignors.target.group import NOBODY, TopicGrid, id_spread, ids_in_hash_order
from kernel.assignors.tree_bins import (
    SMALLEST_TABLE,
    TREEIFY_THRESHOLD,
    has_full_bucket,
    iteration_order,
    spread,
    spreads,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.typing import NDArray

    from coordinator.groups.consumer.member import Subscription
    from coordinator.groups.consumer.topics import Topic
    from coordinator.groups.partitions import Partitions, TopicId

    Numbers = dict[TopicId, list[int]]

#: Empty slots, or subscriptions that nobody has any more, that are not worth a new table.
EMPTY_SLOTS_MAX = 1_000
#: Partitions that are sorted, or moved, one by one: for few, that takes less time than arrays.
FEW, ONE_BY_ONE_MAX = 200, 20
_SLOTS_MIN = 16
_EMPTY: frozenset[int] = frozenset()

Item = TypeVar("Item")


class Listed(Sequence[Item]):
    """A sequence whose items are made when one is asked for: most assignors only count the members."""

    def __init__(self, count: int, items: Callable[[], Sequence[Item]]) -> None:
        self._count, self._make = count, items
        self._items: Sequence[Item] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Item]: ...
    def __getitem__(self, at: int | slice) -> Item | Sequence[Item]:
        if self._items is None:
            self._items = self._make()
        return self._items[at]


class TargetTable:
    """Of one group and one set of topics."""

    def __init__(
        self,
        names: Collection[str],
        known: Mapping[str, Topic],
        subscriptions: Mapping[str, Subscription],
        targets: Mapping[str, Partitions],
    ) -> None:
        """`subscriptions` and `targets` are by member id; the former has all members.

        `known` has those of the subscribed `names` whose topics exist and have partitions.
        """
        self.names, self.known = names, known
        self.grid = grid = TopicGrid.of_names(
            names, {name: (topic.id, topic.partitions) for name, topic in known.items()}
        )
        self.outdated: set[str] = set()  #: members without a target, or with topics that the grid lacks
        self.owner = np.full(grid.partitions, NOBODY, np.int32)  #: slots by partition
        self.ids = list(subscriptions)  #: by slot
        self.kinds: dict[Subscription, int] = {}  #: a number for each subscription that there was
        self._slots = {member_id: slot for slot, member_id in enumerate(self.ids)}
        self._hashes = spreads(self.ids)
        self._kinds = np.array([self._kind_of(each) for each in subscriptions.values()], np.int32)
        self._order = HashOrder()
        self._rows = self.owner
        self._ordered: NDArray[np.int64] | None = None  # the order that `_rows` was made from
        self._places = {
            topic: (start, size)
            for topic, start, size in zip(grid.ids, grid.starts.tolist(), grid.sizes.tolist(), strict=False)
        }
        for member_id in self.members:
            self.place(member_id, None, targets.get(member_id))

    @property
    def is_sparse(self) -> bool:
        """Whether most slots are empty, or most subscriptions have gone: time for a new table."""
        return max(len(self.ids), len(self.kinds)) > 2 * len(self._slots) + EMPTY_SLOTS_MAX

    @property
    def order(self) -> NDArray[np.int64]:
        """The slots of the members in the hash order of their ids."""
        order = self._order.slots
        if order is None:
            slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
            order = self._order.sort(slots, self._hashes[slots], self._slots)
        return order

    @property
    def rows(self) -> NDArray[np.int32]:
        """The place of each slot in `order`; of NOBODY it is NOBODY."""
        order = self.order
        if self._ordered is not order:
            self._rows = np.empty(len(self.ids) + 1, np.int32)
            self._rows.fill(NOBODY)
            self._rows[order] = np.arange(len(order), dtype=np.int32)
            self._ordered = order
        return self._rows

    @property
    def members(self) -> list[str]:
        """Ids in hash order."""
        return [self.ids[slot] for slot in self.order.tolist()]

    def by_kind(self, values: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows of `values`, which are by number of a subscription, by member in hash order."""
        found: NDArray[np.bool_] = values[self._kinds[self.order]]
        return found

    def slot_of(self, member_id: str) -> int:
        return self._slots[member_id]

    def start_of(self, topic: TopicId) -> int:
        return int(self._places[topic][0])

    def others(self, targets: Mapping[str, Partitions]) -> dict[int, int]:
        """How many topics of a target the grid lacks, by place in `order`; where there are any."""
        held = ((member_id, targets[member_id]) for member_id in self.outdated if targets.get(member_id))
        counts = {member_id: len(target.keys() - self._places.keys()) for member_id, target in held}
        return {int(self.rows[self.slot_of(member_id)]): count for member_id, count in counts.items() if count}

    def has(self, topic: TopicId) -> bool:
        return topic in self._places

    # -- following the group's records ---------------------------------------------------------------------------

    def _kind_of(self, subscription: Subscription) -> int:
        return self.kinds.setdefault(subscription, len(self.kinds))

    def subscribe(self, member_id: str, subscription: Subscription, target: Partitions | None) -> None:
        """A member has come, or subscribes to something else."""
        slot, kind = self._slots.get(member_id), self._kind_of(subscription)
        if slot is not None:
            self._kinds[slot] = kind
            return
        slot = self._slots[member_id] = len(self.ids)
        self.ids.append(member_id)
        if slot >= len(self._kinds):
            more = 2 * slot + _SLOTS_MIN
            self._hashes, self._kinds = np.resize(self._hashes, more), np.resize(self._kinds, more)
        hashed = spread(member_id) & 0xFFFFFFFF
        self._hashes[slot], self._kinds[slot] = hashed, kind
        self._order.add(slot, hashed)
        self.place(member_id, None, target)

    def forget(self, member_id: str, target: Partitions | None) -> None:
        """Forget a member that has gone. `target`: what it was to have."""
        self.place(member_id, target, NONE)
        self.outdated.discard(member_id)
        if self._slots.pop(member_id, None) is not None:
            self._order.forget()

    def place(self, member_id: str, former: Partitions | None, target: Partitions | None) -> None:
        """A member's target has changed from one to another; None is a target that has not been set."""
        slot = self._slots.get(member_id)
        if slot is None:
            return
        is_known = target is not None and self._places.keys() >= target.keys()
        (self.outdated.discard if is_known else self.outdated.add)(member_id)
        former, target = former or NONE, target or NONE
        for topic in former.keys() | target.keys():
            before, after = former.get(topic, _EMPTY), target.get(topic, _EMPTY)
            if topic in self._places and before is not after:
                start, size = self._places[topic]
                self._move(slot, before - after, after - before, start, size)

    def _move(self, slot: int, lost: frozenset[int], gained: frozenset[int], start: int, size: int) -> None:
        owner = self.owner
        if len(lost) + len(gained) <= ONE_BY_ONE_MAX:
            for number in lost:
                if number < size and owner[start + number] == slot:
                    owner[start + number] = NOBODY
            for number in gained:
                if number < size:
                    owner[start + number] = slot
            return
        places = _indices(lost, start, size)
        owner[places[owner[places] == slot]] = NOBODY
        owner[_indices(gained, start, size)] = slot


class HashOrder:
    """Slots in the iteration order of a HashMap to which their members were added one after the other."""

    def __init__(self) -> None:
        self.slots: NDArray[np.int64] | None = None  #: None: they have to be sorted anew
        self._buckets = np.zeros(0, np.int64)  #: of `slots`
        self._size = 0  #: buckets of the table; 0 if one has become full

    def sort(self, slots: NDArray[np.int64], hashes: NDArray[np.uint32], names: Mapping[str, int]) -> NDArray[np.int64]:
        """Of all slots, their hashes and their members, as they were added."""
        if has_full_bucket(hashes):
            self.slots, self._size = np.array([names[name] for name in iteration_order(names)], np.int64), 0
            return self.slots
        self._size = table_size(len(slots))
        buckets = (hashes & np.uint32(self._size - 1)).astype(np.int64)
        order = stable_order(buckets)
        self.slots, self._buckets = slots[order], buckets[order]
        return self.slots

    def add(self, slot: int, hashed: int) -> None:
        """One that was added last: the table is sorted anew only if it grows, or a bucket becomes full."""
        if self.slots is None or not self._size:
            self.forget()
            return
        bucket = hashed & self._size - 1
        first, end = int(self._buckets.searchsorted(bucket)), int(self._buckets.searchsorted(bucket, "right"))
        if table_size(len(self.slots) + 1) != self._size or end - first >= TREEIFY_THRESHOLD:
            self.forget()
        else:
            self.slots, self._buckets = _with(self.slots, end, slot), _with(self._buckets, end, bucket)

    def forget(self) -> None:
        self.slots = None


def _with(array: NDArray[np.int64], at: int, value: int) -> NDArray[np.int64]:
    """As `np.insert`, in less time."""
    longer = np.empty(len(array) + 1, np.int64)
    longer[:at], longer[at], longer[at + 1 :] = array[:at], value, array[at:]
    return longer


def _indices(numbers: frozenset[int], start: int, size: int) -> NDArray[np.int64]:
    found = np.fromiter(numbers, np.int64, len(numbers))
    return found[found < size] + start


def new_targets(
    table: TargetTable,
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    targets: Mapping[str, Partitions],
) -> dict[str, Partitions]:
    """The targets that are not as in `targets`, in hash order, when the table's change from `before` to `after`.

    These have places in hash order, by partition.
    """
    moved = (before != after).nonzero()[0]
    divide = _by_row if len(moved) <= FEW else _many_by_row
    topics = table.grid.starts.searchsorted(moved, "right") - 1
    numbers = moved - table.grid.starts[topics]
    lost, gained = (divide(table.grid, topics, numbers, rows[moved]) for rows in (before, after))
    changed = lost.keys() | gained.keys()
    if table.outdated:
        rows = table.rows
        changed |= {int(rows[table.slot_of(member_id)]) for member_id in table.outdated}
    found: dict[str, Partitions] = {}
    for row in sorted(changed):
        member_id = table.ids[table.order[row]]
        present = targets.get(member_id)
        taken = gained.get(row, {})
        fresh = [topic for topic in taken if topic not in (present or NONE)]
        if _share_a_bucket(fresh):
            fresh = _as_given_up(table, before, taken, targets, fresh)
        target = _moved(table, present or NONE, lost.get(row, {}), taken, fresh)
        if present != target:
            found[member_id] = target
    return found


def _share_a_bucket(topics: list[TopicId]) -> bool:
    """Whether two of them may be in one bucket of a map, however large it is."""
    buckets = {id_spread(topic) & SMALLEST_TABLE - 1 for topic in topics}
    return len(buckets) < len(topics)


def _as_given_up(
    table: TargetTable,
    before: NDArray[np.int32],
    gained: Numbers,
    targets: Mapping[str, Partitions],
    fresh: list[TopicId],
) -> list[TopicId]:
    """Topics in the order in which `uniform` deals them: first what nobody had, then what members gave up, by row."""
    places: dict[int, dict[TopicId, int]] = {}

    def key(at: int) -> tuple[int, int]:
        topic = fresh[at]
        giver = int(before[table.start_of(topic) + np.array(gained[topic])].min())
        if giver == NOBODY:
            return giver, at
        if giver not in places:
            held = targets[table.ids[table.order[giver]]]
            places[giver] = {each: place for place, each in enumerate(ids_in_hash_order(held))}
        return giver, places[giver][topic]

    return [fresh[at] for at in sorted(range(len(fresh)), key=key)]


def _moved(table: TargetTable, present: Partitions, lost: Numbers, gained: Numbers, fresh: list[TopicId]) -> Partitions:
    """A target's topics are in the order of Kafka's map, as far as they share a bucket of it.

    `fresh` are those that are new to the member, as they come: HashMap.computeIfAbsent puts each in front.
    """
    target: dict[TopicId, frozenset[int]] = dict.fromkeys(reversed(fresh), _EMPTY)
    target |= {topic: numbers for topic, numbers in present.items() if table.has(topic)}
    for topic, numbers in lost.items():
        target[topic] = target[topic].difference(numbers)
    for topic, numbers in gained.items():
        target[topic] = target.get(topic, _EMPTY).union(numbers)
    target = {topic: numbers for topic, numbers in target.items() if numbers}
    if table_size(entries := max(len(present), len(target))) == SMALLEST_TABLE:
        return target
    return {topic: target[topic] for topic in ids_in_hash_order(target, entries)}  # as the record lists them


def _by_row(
    grid: TopicGrid, topics: NDArray[np.int64], numbers: NDArray[np.int64], rows: NDArray[np.int32]
) -> dict[int, Numbers]:
    """Partitions, ascending, by the row to which they belong, and by topic; `topics` are indices."""
    found: dict[int, Numbers] = {}
    for topic, number, row in zip(topics.tolist(), numbers.tolist(), rows.tolist(), strict=True):
        if row != NOBODY:
            found.setdefault(row, {}).setdefault(grid.ids[topic], []).append(number)
    return found


def _many_by_row(
    grid: TopicGrid, topics: NDArray[np.int64], numbers: NDArray[np.int64], rows: NDArray[np.int32]
) -> dict[int, Numbers]:
    """As `_by_row`, with no step for a single partition outside of numpy."""
    found: dict[int, Numbers] = {}
    some = (rows != NOBODY).nonzero()[0]
    if not len(some):
        return found
    order = some[stable_order(rows[some])]
    topics, numbers, rows = topics[order], numbers[order], rows[order]
    cells = np.flatnonzero(np.append(True, (np.diff(rows) != 0) | (np.diff(topics) != 0)))
    for piece, row, topic in zip(
        np.split(numbers, cells[1:]), rows[cells].tolist(), topics[cells].tolist(), strict=True
    ):
        found.setdefault(row, {})[grid.ids[topic]] = piece.tolist()
    return found
