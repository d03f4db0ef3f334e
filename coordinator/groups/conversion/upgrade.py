"""A classic group as one of the `consumer` design: the records that say the same (ConsumerGroup.fromClassicGroup).

Each member gets the generation for its epoch, and its assignment for its target: to the new group, everybody has what
it shall have. The bytes of the embedded consumer protocol say what that is, and what a member subscribes to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from coordinator.groups.consumer.states import ConsumerMemberState
from coordinator.groups.consumer.topics import metadata_hash
from coordinator.groups.consumer_records import (
    ClassicTerms,
    ClientKey,
    ClientRecord,
    CurrentKey,
    CurrentRecord,
    EpochKey,
    EpochRecord,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
    TargetRecord,
)
from coordinator.groups.partitions import NONE, partitions
from coordinator.protocol.consumer_protocol import (
    MalformedMetadata,
    decode_assignment,
    decode_rack,
    decode_subscription,
)

if TYPE_CHECKING:
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.consumer_records import ConsumerChange
    from coordinator.groups.partitions import Partitions


def upgraded(group: Group, topics: Topics) -> list[ConsumerChange]:
    """In Kafka's order. Raises `MalformedMetadata`."""
    members = group.members.values()
    clients = {member.id: _client(member, group.protocol_name) for member in members}
    assigned = {member.id: _assigned(member, topics) for member in members}
    subscribed = {name for client in clients.values() for name in client.topics}
    epoch, stable = group.generation, ConsumerMemberState.STABLE
    records: list[tuple[object, object]] = [(ClientKey(group.id, member), client) for member, client in clients.items()]
    records.append((EpochKey(group.id), EpochRecord(epoch, metadata_hash(subscribed, topics))))
    records += [(TargetKey(group.id, member), TargetRecord(found)) for member, found in assigned.items()]
    records.append((TargetEpochKey(group.id), TargetEpochRecord(epoch)))
    records += [
        (CurrentKey(group.id, member), CurrentRecord(epoch, epoch, stable, found, NONE))
        for member, found in assigned.items()
    ]
    return cast("list[ConsumerChange]", records)


def _client(member: Member, protocol_name: str | None) -> ClientRecord:
    metadata = member.metadata(protocol_name)
    return ClientRecord(
        instance_id=member.instance_id,
        rack_id=decode_rack(metadata),
        client_id=member.client_id,
        client_host=member.client_host,
        topics=tuple(sorted(set(decode_subscription(metadata).topics))),
        topic_regex="",
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        assignor=None,
        classic=ClassicTerms(member.session_timeout_ms, member.protocols),
    )


def _assigned(member: Member, topics: Topics) -> Partitions:
    """Nothing for a member that has never synced; topics that do not exist are left out.

    Raises `MalformedMetadata` where the leader has written user data: what a custom strategy needs would be lost.
    librdkafka's cooperative-sticky writes some from its second generation on, so that 4.1.1 refuses its groups.
    """
    assignment = decode_assignment(member.assignment)
    if assignment.user_data:
        raise MalformedMetadata(f"the assignment of {member.id!r} has user data of a custom strategy")
    found = ((topics.find(name), number) for name, number in assignment.partitions)
    return partitions((topic.id, (number,)) for topic, number in found if topic is not None)
