"""ConsumerGroupDescribe shows what is durable, as Kafka shows its committed state."""

from __future__ import annotations

import pytest

from coordinator.groups.answers import DeleteGroupAnswer
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.errors import Error
from coordinator.groups.requests import DeleteGroup
from tests.support.mixed_protocols import GROUP, MixedPartition


def shown(at: MixedPartition) -> tuple[ConsumerGroupState, int, dict[str, int]]:
    group = at.machine.consumer.describe(GROUP)
    return group.state, group.epoch, {member.member_id: member.epoch for member in group.members}


def test_new_group_is_shown_once_it_is_durable() -> None:
    at = MixedPartition()
    at.hold()
    at.consumer("m")
    assert shown(at) == (ConsumerGroupState.DEAD, 0, {})
    at.settle()
    assert shown(at) == (ConsumerGroupState.STABLE, 1, {"m": 1})


@pytest.mark.parametrize("error", [None, Error.COORDINATOR_NOT_AVAILABLE], ids=["stored", "refused"])
def test_members_that_come_and_go_are_shown_as_they_were_until_that_is_durable(error: Error | None) -> None:
    at = MixedPartition()
    at.consumer("m")
    before = at.machine.consumer.describe(GROUP)
    at.hold()
    at.consumer("n", assignor="range")
    at.consumer("m", -1)
    assert at.machine.consumer.describe(GROUP) == before
    at.settle(error)
    after = (ConsumerGroupState.ASSIGNING, 3, {"n": 2}) if error is None else (ConsumerGroupState.STABLE, 1, {"m": 1})
    assert shown(at) == after


def test_group_is_shown_until_its_deletion_is_durable() -> None:
    at = MixedPartition()
    at.consumer("m")
    at.consumer("m", -1)
    before = shown(at)
    at.hold()
    asked = at.send(DeleteGroup)
    assert shown(at) == before == (ConsumerGroupState.EMPTY, 2, {})
    at.settle()
    assert at.answers[asked] == DeleteGroupAnswer(Error.NONE)
    assert shown(at) == (ConsumerGroupState.DEAD, 0, {})


def test_description_of_what_is_not_durable_changes_nothing() -> None:
    at = MixedPartition()
    at.consumer("m")
    at.hold()
    at.consumer("n")
    members, owners, targets = dict(at.group.members), dict(at.group.owners), dict(at.group.targets)
    shown(at)
    assert (at.group.members, at.group.owners, at.group.targets) == (members, owners, targets)
