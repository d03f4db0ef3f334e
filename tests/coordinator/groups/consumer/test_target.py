"""Whose target changes: the assignor runs for the whole group, and only what differs is recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from coordinator.groups.consumer import target_table
from coordinator.groups.consumer.group import ConsumerGroup, client_record
from coordinator.groups.consumer.member import ConsumerMember, Subscription
from coordinator.groups.consumer.target import changed_targets
from coordinator.groups.consumer.target_table import EMPTY_SLOTS_MAX, TargetTable, new_targets
from coordinator.groups.consumer.topics import Topic
from coordinator.groups.consumer_records import ClientKey, TargetKey, TargetRecord
from coordinator.groups.partitions import NONE, Partitions, partitions
from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.target.group import NOBODY, TargetGroup
from tests.support.groups.consumer import GROUP, World, by_name, owned_by_name
from tests.support.properties import examples

Target = dict[str, list[int]]
WORLD = World({"foo": 6, "bar": 3})


@dataclass
class Prepared:
    """An assignor that gives what the test wants, and keeps what it was asked."""

    wanted: dict[str, Target] = field(default_factory=dict)
    asked: TargetGroup | None = None

    def __call__(self, group: TargetGroup) -> NDArray[np.int32]:
        self.asked = group
        owner = np.full(group.grid.partitions, NOBODY, np.int32)
        starts = dict(zip(group.grid.ids, group.grid.starts, strict=False))
        for member, target in self.wanted.items():
            for topic, numbers in (owned_by_name(target) or {}).items():
                owner[[starts[topic] + number for number in numbers]] = group.members.index(member)
        return owner


def group_of(**targets: Target | None) -> ConsumerGroup:
    """A group whose members have these targets, and subscribe to both topics; None: no target yet."""
    group = ConsumerGroup(GROUP)
    for name, target in targets.items():
        member = ConsumerMember(id=name, topics=frozenset({"foo", "bar"}), instance_id=f"i-{name}")
        group.apply(ClientKey(GROUP, name), client_record(member))
        if target is not None:
            group.apply(TargetKey(GROUP, name), TargetRecord(owned_by_name(target) or NONE))
    return group


PREPARED = Prepared()


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Target]:
    """What the assignor `prepared` assigns."""
    monkeypatch.setattr("coordinator.groups.consumer.target.TARGET_ASSIGNORS", {"prepared": PREPARED})
    PREPARED.wanted.clear()
    return PREPARED.wanted


def changed(group: ConsumerGroup) -> dict[str, Target | None]:
    targets = changed_targets(group, "prepared", WORLD.topics)
    return {member: by_name(target) for member, target in targets.items()}


@pytest.mark.kafka("testEmpty")
def test_group_without_members_has_no_targets(wanted: dict[str, Target]) -> None:
    assert changed(group_of()) == {}


@pytest.mark.kafka("testAssignmentHasNotChanged")
def test_targets_that_stay_are_not_recorded(wanted: dict[str, Target]) -> None:
    targets: dict[str, Target] = {"a": {"foo": [0, 1, 2], "bar": [0]}, "b": {"foo": [3, 4, 5], "bar": [1, 2]}}
    wanted.update(targets)
    assert changed(group_of(**targets)) == {}


@pytest.mark.kafka("testAssignmentSwapped")
def test_targets_that_are_swapped_are_both_recorded(wanted: dict[str, Target]) -> None:
    wanted.update(a={"foo": [3, 4, 5]}, b={"foo": [0, 1, 2]})
    assert changed(group_of(a={"foo": [0, 1, 2]}, b={"foo": [3, 4, 5]})) == wanted


@pytest.mark.kafka("testNewMember")
def test_new_member_gets_a_target_and_the_others_less(wanted: dict[str, Target]) -> None:
    wanted.update(a={"foo": [0, 1]}, b={"foo": [2, 3]}, c={"foo": [4, 5]})
    assert changed(group_of(a={"foo": [0, 1, 2]}, b={"foo": [3, 4, 5]}, c=None)) == wanted


def test_new_member_without_partitions_gets_an_empty_target(wanted: dict[str, Target]) -> None:
    wanted.update(a={"foo": [0]})
    assert changed(group_of(a={"foo": [0]}, b=None)) == {"b": {}}


@pytest.mark.kafka("TargetAssignmentBuilderTest.testUpdateMember", "testPartialAssignmentUpdate")
def test_only_members_whose_target_differs_are_recorded(wanted: dict[str, Target]) -> None:
    wanted.update(a={"foo": [0, 1, 2]}, b={"foo": [4, 5], "bar": [0]}, c={"foo": [3], "bar": [1, 2]})
    before: dict[str, Target | None] = {**wanted, "b": {"foo": [3, 4, 5]}, "c": {"bar": [1, 2]}}
    assert changed(group_of(**before)) == {"b": wanted["b"], "c": wanted["c"]}


@pytest.mark.kafka("testDeleteMember")
def test_partitions_of_a_removed_member_go_to_the_others(wanted: dict[str, Target]) -> None:
    group = group_of(a={"foo": [0, 1]}, b={"foo": [2, 3]}, c={"foo": [4, 5]})
    group.apply(TargetKey(GROUP, "c"), None)
    group.apply(ClientKey(GROUP, "c"), None)
    wanted.update(a={"foo": [0, 1, 4]}, b={"foo": [2, 3, 5]})
    assert changed(group) == wanted


@pytest.mark.kafka("testReplaceStaticMember")
def test_target_of_a_replaced_static_member_goes_to_the_replacement() -> None:
    world = World({"foo": 6})
    world.join("a", "foo", instance_id="i")
    world.leave("a", -2, instance_id="i")
    del world.written[:]
    world.join("a2", "foo", instance_id="i")
    keys = [key for key, _ in world.written if isinstance(key, TargetKey)]
    assert keys == [TargetKey(GROUP, "a"), TargetKey(GROUP, "a2")]
    assert by_name(world.group.target_of("a2")) == {"foo": [*range(6)]}
    assert world.group.epoch == 1


@pytest.mark.kafka("testCreateMemberSubscriptionSpecImpl")
def test_assignor_is_told_instances_subscriptions_and_present_targets(wanted: dict[str, Target]) -> None:
    group = group_of(a={"foo": [0, 1]}, b={"bar": [2]})
    only_foo = ConsumerMember(id="b", topics=frozenset({"foo"}))
    group.apply(ClientKey(GROUP, "b"), client_record(only_foo))
    changed(group)
    asked = PREPARED.asked
    assert asked is not None
    rows = {member: row for row, member in enumerate(asked.members)}
    assert {member: asked.instance_ids[row] for member, row in rows.items()} == {"a": "i-a", "b": None}
    assert asked.subscribed is not None
    assert asked.subscribed[rows["a"]].all()
    assert asked.subscribed[rows["b"]].sum() == 1
    assert [int((asked.owner == row).sum()) for row in (rows["a"], rows["b"], NOBODY)] == [2, 1, 6]


# The arrays of a group's targets follow its records, and new targets are the same however many partitions move.

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
