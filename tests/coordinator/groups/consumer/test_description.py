"""ConsumerGroupDescribe and ListGroups show what is durable, as Kafka shows its committed state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator.groups.answers import DeleteGroupAnswer
from coordinator.groups.classic.states import GroupState
from coordinator.groups.consumer.description import ConsumerGroupDescription
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.errors import Error
from coordinator.groups.requests import DeleteGroup
from tests.support.groups.mixed import GROUP, MixedPartition


def shown(at: MixedPartition) -> tuple[ConsumerGroupState, int, dict[str, int]]:
    group = at.machine.consumer.describe(GROUP)
    return group.state, group.epoch, {member.member_id: member.epoch for member in group.members}


def in_order(at: MixedPartition) -> ConsumerGroupDescription:
    """The description, its members by id."""
    group = at.machine.consumer.describe(GROUP)
    return replace(group, members=tuple(sorted(group.members, key=lambda member: member.member_id)))


def listed(at: MixedPartition) -> list[str]:
    """Rows of ListGroups."""
    return [f"{row.type} {row.state.value}" for row in at.machine.list() if row is not None]


@pytest.mark.kafka("testConsumerGroupDescribeBeforeAndAfterCommittingOffset")
def test_new_group_is_shown_once_it_is_durable() -> None:
    at = MixedPartition()
    at.hold()
    at.consumer("m")
    assert shown(at) == (ConsumerGroupState.DEAD, 0, {})
    assert listed(at) == []
    at.settle()
    assert shown(at) == (ConsumerGroupState.STABLE, 1, {"m": 1})
    assert listed(at) == ["consumer Stable"]


@pytest.mark.parametrize("error", [None, Error.COORDINATOR_NOT_AVAILABLE], ids=["stored", "refused"])
def test_members_that_come_and_go_are_shown_as_they_were_until_that_is_durable(error: Error | None) -> None:
    at = MixedPartition()
    at.consumer("m")
    before = at.machine.consumer.describe(GROUP)
    at.hold()
    at.consumer("n", assignor="range")
    at.consumer("m", -1)
    assert at.machine.consumer.describe(GROUP) == before
    assert listed(at) == ["consumer Stable"]
    assert list(at.machine.list(states=["Assigning"])) == [None]
    at.settle(error)
    after = (ConsumerGroupState.ASSIGNING, 3, {"n": 2}) if error is None else (ConsumerGroupState.STABLE, 1, {"m": 1})
    assert shown(at) == after
    assert listed(at) == [f"consumer {after[0].value}"]


def test_group_is_shown_until_its_deletion_is_durable() -> None:
    at = MixedPartition()
    at.consumer("m")
    at.consumer("m", -1)
    before = shown(at)
    at.hold()
    asked = at.send(DeleteGroup)
    assert shown(at) == before == (ConsumerGroupState.EMPTY, 2, {})
    assert listed(at) == ["consumer Empty"]
    at.settle()
    assert at.answers[asked] == DeleteGroupAnswer(Error.NONE)
    assert shown(at) == (ConsumerGroupState.DEAD, 0, {})
    assert listed(at) == []


@pytest.mark.parametrize("error", [None, Error.COORDINATOR_NOT_AVAILABLE], ids=["stored", "refused"])
def test_group_is_shown_as_a_classic_one_until_its_upgrade_is_durable(error: Error | None) -> None:
    at = MixedPartition()
    at.form("a", "b")
    before = at.machine.describe(GROUP)
    assert before.state is GroupState.STABLE
    at.hold()
    at.consumer("m")
    assert listed(at) == ["classic Stable"]
    assert at.machine.describe(GROUP) == before
    assert at.machine.knows(GROUP)
    assert shown(at) == (ConsumerGroupState.DEAD, 0, {})
    at.settle(error)
    assert listed(at) == (["consumer Reconciling"] if error is None else ["classic Stable"])
    assert (at.machine.describe(GROUP) == before) is (error is not None)


@pytest.mark.parametrize("error", [None, Error.COORDINATOR_NOT_AVAILABLE], ids=["stored", "refused"])
def test_group_is_shown_as_a_consumer_group_until_its_downgrade_is_durable(error: Error | None) -> None:
    at = MixedPartition()
    at.form("a")
    at.consumer("m")
    before = in_order(at)
    assert len(before.members) == 2
    at.hold()
    at.consumer("m", -1)
    assert listed(at) == ["consumer Reconciling"]
    assert in_order(at) == before
    assert at.machine.describe(GROUP).state is GroupState.DEAD
    assert not at.machine.knows(GROUP)
    at.settle(error)
    if error is None:
        assert listed(at) == ["classic PreparingRebalance"]
        assert shown(at) == (ConsumerGroupState.DEAD, 0, {})
        assert at.machine.describe(GROUP).state is GroupState.PREPARING
    else:
        assert listed(at) == ["consumer Reconciling"]
        assert in_order(at) == before


def test_description_of_what_is_not_durable_changes_nothing() -> None:
    at = MixedPartition()
    at.consumer("m")
    at.hold()
    at.consumer("n")
    members, owners, targets = dict(at.group.members), dict(at.group.owners), dict(at.group.targets)
    shown(at)
    assert (at.group.members, at.group.owners, at.group.targets) == (members, owners, targets)
