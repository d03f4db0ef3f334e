"""SyncGroup and Heartbeat of a member of the classic protocol in a group of the `consumer` design."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.answers import SyncAnswer, heartbeat_answer
from coordinator.groups.consumer.heartbeat import Refused
from coordinator.groups.consumer.states import ConsumerMemberState
from coordinator.groups.consumer.timers import (
    cancel_deadline,
    has_deadline,
    restart_session,
    session_timeout_ms,
    set_deadline,
)
from coordinator.groups.effects import TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.partitions import each, without
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, encode_ordered_assignment, readable_version
from kernel.assignors.hash_order import table_size
from kernel.assignors.target.group import id_spread
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from coordinator.groups.consumer.draft import Draft
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.member import ConsumerMember
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.effects import Turn
    from coordinator.groups.partitions import Partitions
    from coordinator.groups.requests import Heartbeat, Sync


def sync(draft: Draft, request: Sync, turn: Turn) -> None:
    """One SyncGroup: what the member has now. Raises `Refused`."""
    group = draft.group
    if request.lacks_protocol:
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    member = _member(group, request)
    assert member.classic is not None, "the others are refused"
    name, metadata = member.classic.protocols[0]
    if request.protocol_type not in (None, CONSUMER_PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    if group.epoch > member.epoch and member.state is not ConsumerMemberState.UNREVOKED_PARTITIONS:
        _call(group, member, turn)
        raise Refused(Error.REBALANCE_IN_PROGRESS)
    answer = SyncAnswer(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=assignment_of(member.assigned, metadata, draft.topics),
    )
    draft.then = partial(_synced, draft, member)
    draft.store(request.token, answer, turn)


def _synced(draft: Draft, member: ConsumerMember, turn: Turn) -> None:
    cancel_deadline(draft.group, TimerKind.RESYNC, member.id, turn)
    restart_session(draft.group, member.id, session_timeout_ms(member, draft.settings), turn)


def heartbeat(draft: Draft, request: Heartbeat, turn: Turn) -> None:
    """One Heartbeat. Raises `Refused`."""
    group = draft.group
    member = _member(group, request)
    restart_session(group, member.id, session_timeout_ms(member, draft.settings), turn)
    error = Error.REBALANCE_IN_PROGRESS if _must_rejoin(group, member) else Error.NONE
    if error is Error.REBALANCE_IN_PROGRESS:
        _call(group, member, turn)
    draft.store(request.token, heartbeat_answer(error), turn)


def assignment_of(assigned: Partitions, metadata: bytes, topics: Topics) -> bytes:
    """For the member whose subscription is `metadata`, in the same version. Deleted topics are left out; the others
    come in the order of a HashMap of their ids, as from Kafka.
    """
    buckets = table_size(len(assigned))
    ordered = sorted(assigned, key=lambda topic: (id_spread(topic) & (buckets - 1), topic))
    named = ((topics.name_of(topic), assigned[topic]) for topic in ordered)
    return encode_ordered_assignment(
        [TopicPartition(name, number) for name, numbers in named if name is not None for number in sorted(numbers)],
        version=readable_version(metadata),
    )


def _member(group: ConsumerGroup, request: Heartbeat | Sync) -> ConsumerMember:
    """The member that sends this, of the right generation. Raises `Refused`."""
    member = group.members.get(request.member_id)
    if request.instance_id is not None:
        holder = group.instances.get(request.instance_id)
        if holder is None:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
        if holder != request.member_id:
            raise Refused(Error.FENCED_INSTANCE_ID)
    if member is None or member.classic is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID)
    if member.epoch != request.generation:
        raise Refused(Error.ILLEGAL_GENERATION)
    return member


def _must_rejoin(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.epoch < group.epoch or member.state is ConsumerMemberState.UNREVOKED_PARTITIONS:
        return True
    if member.state is not ConsumerMemberState.UNRELEASED_PARTITIONS:
        return False
    missing = without(group.target_of(member.id), member.assigned)
    return all(group.is_free(topic, number) for topic, number in each(missing))


def _call(group: ConsumerGroup, member: ConsumerMember, turn: Turn) -> None:
    """The member has to rejoin; its time runs from the first call on."""
    if not has_deadline(group, TimerKind.REJOIN, member.id):
        set_deadline(group, TimerKind.REJOIN, member.id, member.rebalance_timeout_ms, turn)
