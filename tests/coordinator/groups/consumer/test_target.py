"""Whose target changes: the assignor runs for the whole group, and only what differs is recorded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from coordinator.groups.consumer.group import ConsumerGroup, client_record
from coordinator.groups.consumer.member import ConsumerMember
from coordinator.groups.consumer.target import changed_targets
from coordinator.groups.consumer_records import ClientKey, TargetKey, TargetRecord
from coordinator.groups.partitions import NONE
from kernel.assignors.target.group import NOBODY, TargetGroup
from tests.support.groups.consumer import GROUP, World, by_name, owned_by_name

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
