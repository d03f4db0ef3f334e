"""JoinGroup of a member of the classic protocol to a group of the `consumer` design."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.answers import JoinAnswer
from coordinator.groups.consumer import heartbeat
from coordinator.groups.consumer.group import client_record
from coordinator.groups.consumer.heartbeat import Refused
from coordinator.groups.consumer.member import NO_TIMEOUT, ConsumerMember
from coordinator.groups.consumer.reconciliation import MemberFenced
from coordinator.groups.consumer.timers import cancel_deadline, restart_session, set_deadline
from coordinator.groups.consumer_records import ClassicTerms, ClientKey
from coordinator.groups.effects import TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.partitions import partitions
from coordinator.groups.requests import UNKNOWN_MEMBER
from coordinator.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedMetadata,
    decode_rack,
    decode_subscription,
)

if TYPE_CHECKING:
    from coordinator.groups.consumer.draft import Draft
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.effects import Turn
    from coordinator.groups.partitions import Partitions
    from coordinator.groups.requests import Join, Protocol
    from kernel.assignors.subscription import MemberSubscription


def join(draft: Draft, request: Join, turn: Turn) -> None:
    """One JoinGroup to a group with members. Raises `Refused`."""
    group, member_id = draft.group, request.member_id or request.fresh_id
    heartbeat.refuse_if_full(group, member_id, draft.settings)
    if request.size > turn.limits.member_bytes_max:
        raise Refused(Error.MESSAGE_TOO_LARGE)  # as of a classic group; not in Kafka
    if request.protocol_type != CONSUMER_PROTOCOL_TYPE or not _are_supported(group, request.protocols):
        raise Refused(Error.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id == UNKNOWN_MEMBER and request.instance_id is None and request.must_return_with_id:
        turn.reply(request.token, JoinAnswer(error=Error.MEMBER_ID_REQUIRED, member_id=member_id))
        return
    holder = None if request.instance_id is None else group.members.get(group.instances.get(request.instance_id, ""))
    former = _member(draft, request, member_id, holder)
    before = heartbeat.seen_before(draft, turn)
    try:
        subscription = decode_subscription(request.protocols[0].metadata)  # all protocols have the same
        _describe(draft, former, request, subscription)
        member = _moved(draft, former, holder, _owned(subscription, draft.topics), turn, before)
    except MalformedMetadata:
        draft.undo()
        raise Refused(Error.UNKNOWN_SERVER_ERROR) from None
    except MemberFenced:
        draft.undo()
        raise Refused(Error.FENCED_MEMBER_EPOCH) from None
    answer = JoinAnswer(
        member_id=member.id,
        generation=member.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
    )
    draft.then = partial(_joined, group, member.id, request)
    draft.store(request.token, answer, turn)


def _are_supported(group: ConsumerGroup, protocols: tuple[Protocol, ...]) -> bool:
    """Whether all present members of the classic protocol support one of these."""
    common = {name for name, _ in protocols}
    for member in group.members.values():
        if member.classic is not None:
            common &= {name for name, _ in member.classic.protocols}
    return bool(common)


def _member(draft: Draft, request: Join, member_id: str, holder: ConsumerMember | None) -> ConsumerMember:
    """The member that joins, as known, or a new one; `holder` has its instance id. Raises `Refused`."""
    if request.instance_id is None or (holder is None and request.member_id == UNKNOWN_MEMBER):
        return draft.group.members.get(member_id) or ConsumerMember(id=member_id)
    if holder is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID)
    if request.member_id == UNKNOWN_MEMBER:
        return heartbeat.replaced(draft, holder, member_id)
    if holder.id != member_id:
        raise Refused(Error.FENCED_INSTANCE_ID)
    return holder


def _describe(draft: Draft, former: ConsumerMember, request: Join, subscription: MemberSubscription) -> None:
    rack_id = decode_rack(request.protocols[0].metadata)
    timeout_ms = request.rebalance_timeout_ms
    described = former._replace(
        instance_id=former.instance_id if request.instance_id is None else request.instance_id,
        rack_id=former.rack_id if rack_id is None else rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=frozenset(subscription.topics),
        topic_regex="" if 19720 in draft.settings.mended else former.topic_regex,  # 4.1.1 keeps its predecessor's
        rebalance_timeout_ms=former.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
        classic=ClassicTerms(request.session_timeout_ms, request.protocols),
    )
    if described != former or former.id not in draft.group.members:
        draft.put(ClientKey(draft.group.id, former.id), client_record(described))
    heartbeat.forget_regex(draft, former, described)


def _owned(subscription: MemberSubscription, topics: Topics) -> Partitions:
    """Topics that do not exist cannot be owned."""
    found = ((topics.find(name), number) for name, number in subscription.owned)
    return partitions((topic.id, (number,)) for topic, number in found if topic is not None)


def _moved(
    draft: Draft,
    former: ConsumerMember,
    holder: ConsumerMember | None,
    owned: Partitions,
    turn: Turn,
    before: heartbeat.Before,
) -> ConsumerMember:
    """The member on its way to its target. Raises `MemberFenced`.

    If it replaces the last member of the other protocol, the group becomes a classic one with the target that it has;
    in a new generation if the newcomer subscribes to something else.
    """
    group, conversions = draft.group, draft.conversions
    present = group.members[former.id]
    gives_up_regex = former.topic_regex != present.topic_regex
    is_changed = before.topics_changed or gives_up_regex or heartbeat.needs_target(group, former)
    switches = holder is not None and holder.classic is None
    if switches and conversions is not None and conversions.may_downgrade(group, (), draft.settings, turn):
        member = present if is_changed else heartbeat.reconcile(draft, present, owned, turn)
        conversions.downgrade(draft, (), turn, rebalances=is_changed)
        return member
    if is_changed:
        draft.bump()
    heartbeat.compute_target(draft, present, is_alike=None if is_changed else before.is_alike)
    return heartbeat.reconcile(draft, group.members[former.id], owned, turn)


def _joined(group: ConsumerGroup, member_id: str, request: Join, turn: Turn) -> None:
    """It is stored: the member has to sync in time."""
    if member_id in group.members:  # and the group has not become a classic one
        cancel_deadline(group, TimerKind.REJOIN, member_id, turn)
        restart_session(group, member_id, request.session_timeout_ms, turn)
        set_deadline(group, TimerKind.RESYNC, member_id, request.rebalance_timeout_ms, turn)
