"""ConsumerGroupDescribe as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.consumer.states import ConsumerGroupState
from kernel.assignors.hash_order import texts_in_hash_order

if TYPE_CHECKING:
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.requests import ConsumerSettings
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.partitions import Partitions, TopicId


class TopicAssignment(NamedTuple):
    topic_id: TopicId
    topic: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMemberDescription:
    member_id: str
    instance_id: str | None
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    topic_regex: str
    assigned: tuple[TopicAssignment, ...]
    target: tuple[TopicAssignment, ...]
    is_classic: bool = False  #: uses the classic protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescription:
    """A group that does not exist is Dead (GROUP_ID_NOT_FOUND)."""

    state: ConsumerGroupState = ConsumerGroupState.DEAD
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: tuple[ConsumerMemberDescription, ...] = ()


def described(group: ConsumerGroup | None, settings: ConsumerSettings, topics: Topics) -> ConsumerGroupDescription:
    """Partitions that a member is giving up are not shown, nor those of deleted topics. Names come in hash order."""
    if group is None:
        return ConsumerGroupDescription()
    return ConsumerGroupDescription(
        state=group.state,
        epoch=group.epoch,
        target_epoch=group.target_epoch,
        assignor=group.assignor(settings.assignors),
        members=tuple(
            ConsumerMemberDescription(
                member_id=member.id,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                topics=tuple(texts_in_hash_order(sorted(member.topics))),
                topic_regex=member.topic_regex,
                assigned=_by_topic(member.assigned, topics),
                target=_by_topic(group.target_of(member.id), topics),
                is_classic=member.classic is not None,
            )
            for member in group.members.values()
        ),
    )


def _by_topic(partitions: Partitions, topics: Topics) -> tuple[TopicAssignment, ...]:
    named = ((topic_id, topics.name_of(topic_id), numbers) for topic_id, numbers in partitions.items())
    return tuple(
        TopicAssignment(topic_id, name, tuple(sorted(numbers))) for topic_id, name, numbers in named if name is not None
    )
