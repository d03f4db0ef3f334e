"""The arrays of a group's targets follow its records, and new targets are the same however many partitions move."""

from __future__ import annotations

from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coordinator.groups.consumer import target_table
from coordinator.groups.consumer.member import Subscription
from coordinator.groups.consumer.target_table import EMPTY_SLOTS_MAX, TargetTable, new_targets
from coordinator.groups.consumer.topics import Topic
from coordinator.groups.partitions import Partitions, partitions
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.target.group import NOBODY
from tests.support.properties import examples

TOPICS = [(UUID(int=number << 70 | number), 3 * number) for number in (1, 2, 3)]
KNOWN = {f"t{number}": Topic(topic_id.bytes, size) for number, (topic_id, size) in enumerate(TOPICS)}
GRID = TargetTable(KNOWN, KNOWN, {}, {}).grid
#: "Aa" and "BB" have equal hashes, so that they share a bucket.
NAMES = ("a", "Aa", "BB", "AaAa", "BBBB", "BBAa", "AaBB", "x" * 600)
SUBSCRIPTIONS = [Subscription(frozenset(), regex) for regex in ("", "t.*")]


def topic(number: int) -> bytes:
    return TOPICS[number][0].bytes


def owners(table: TargetTable) -> list[str | None]:
    return [None if slot == NOBODY else table.ids[slot] for slot in table.owner.tolist()]


def looks(table: TargetTable) -> object:
    matches = np.array([[bool(subscription.regex)] for subscription in table.kinds], np.bool_).reshape(-1, 1)
    return owners(table), table.members, table.outdated, table.by_kind(matches).tolist()


@pytest.mark.parametrize("one_by_one", [-1, 1_000])
@given(data=st.data())
def test_table_follows_members_and_targets_as_if_it_were_new(one_by_one: int, data: st.DataObject) -> None:
    members: dict[str, Subscription] = {}
    targets: dict[str, Partitions] = {}
    table = TargetTable(KNOWN, KNOWN, members, targets)
    unknown = bytes(16)
    for _ in range(data.draw(st.integers(1, 25))):
        name = data.draw(st.sampled_from(NAMES))
        what = data.draw(st.sampled_from(("come", "go", "target", "no target")))
        if what == "come":
            members[name] = data.draw(st.sampled_from(SUBSCRIPTIONS))
            table.subscribe(name, members[name], targets.get(name))
        elif what == "go":
            table.forget(name, targets.get(name))
            members.pop(name, None)
        else:
            taken = {place for other, target in targets.items() if other != name for place in target.items()}
            wanted = [
                (at, number)
                for at, (_, size) in enumerate(TOPICS)
                for number in range(size)
                if not any(which == topic(at) and number in numbers for which, numbers in taken)
            ]
            given_ = data.draw(st.lists(st.sampled_from(wanted), unique=True)) if wanted else []
            target = None if what == "no target" else partitions((topic(at), (number,)) for at, number in given_)
            if target is not None and data.draw(st.booleans()):
                target = {**target, unknown: frozenset({0})}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(target_table, "ONE_BY_ONE_MAX", one_by_one)
                table.place(name, targets.pop(name, None), target)
            if target is not None:
                targets[name] = target
        assert looks(table) == looks(TargetTable(KNOWN, KNOWN, members, targets))
        assert table.members == texts_in_hash_order(members)


def test_order_follows_hundreds_of_members() -> None:
    names: dict[str, Subscription] = {}
    table = TargetTable(KNOWN, KNOWN, names, {})
    for number in range(500):
        name = (
            f"{number * number:x}" if number % 90 else f"{'AaAaAa'[:6]}{number:b}".replace("0", "Aa").replace("1", "BB")
        )
        names[name] = SUBSCRIPTIONS[0]
        table.subscribe(name, SUBSCRIPTIONS[0], None)
        if number % 7 == 3:
            del names[name]
            table.forget(name, None)
        assert table.members == texts_in_hash_order(names)


def test_table_says_when_it_keeps_more_of_the_past_than_of_the_present() -> None:
    for changes in ("members", "subscriptions"):
        table = TargetTable(KNOWN, KNOWN, {"a": SUBSCRIPTIONS[0]}, {})
        for number in range(2 * EMPTY_SLOTS_MAX):
            name = f"m{number}" if changes == "members" else "a"
            table.subscribe(name, Subscription(frozenset({f"t{number}"}), ""), None)
            if changes == "members":
                table.forget(name, None)
        assert table.is_sparse
        assert not TargetTable(KNOWN, KNOWN, {"a": SUBSCRIPTIONS[0]}, {}).is_sparse


def owner_of(data: st.DataObject, members: int) -> NDArray[np.int32]:
    rows = st.lists(st.integers(NOBODY, members - 1), min_size=GRID.partitions, max_size=GRID.partitions)
    return np.array(data.draw(rows), np.int32)


@settings(max_examples=examples(50))
@given(st.data())
@pytest.mark.parametrize("few", [-1, 1_000])
def test_new_targets_are_what_the_array_says(few: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, len(NAMES)))
    order = texts_in_hash_order(NAMES[:count])

    def targets_of(owner: NDArray[np.int32]) -> dict[str, Partitions]:
        pairs = [(int(row), at, number) for row, (at, number) in zip(owner, places, strict=True) if row != NOBODY]
        return {
            name: partitions((ids[at], (number,)) for row, at, number in pairs if row == place)
            for place, name in enumerate(order)
        }

    ids = list(GRID.ids)
    places = [(at, number) for at, size in enumerate(GRID.sizes.tolist()) for number in range(size)]
    present = targets_of(owner_of(data, count))
    for name in data.draw(st.lists(st.sampled_from(order), unique=True)):
        del present[name]
    after = owner_of(data, count)
    table = TargetTable(KNOWN, KNOWN, dict.fromkeys(NAMES[:count], SUBSCRIPTIONS[0]), present)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(target_table, "FEW", few)
        found = new_targets(table, table.rows[table.owner], after, present)
    assert {**present, **found} == targets_of(after)
    assert all(present.get(name) != target for name, target in found.items())
    assert list(found) == [name for name in order if name in found]
