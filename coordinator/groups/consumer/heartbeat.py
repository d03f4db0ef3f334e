"""ConsumerGroupHeartbeat of a member that joins or stays.

One step decides everything: who the member is, whether the group needs a new target, what that target is, and what the
member has to give up or may take (GroupMetadataManager.consumerGroupHeartbeat, 4.1.1).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.answers import ConsumerHeartbeatAnswer
from coordinator.groups.consumer.group import client_record
from coordinator.groups.consumer.member import (
    JOINING,
    LEAVING_FOR_A_WHILE,
    NO_TIMEOUT,
    ConsumerMember,
)
from coordinator.groups.consumer.reconciliation import Goal, MemberFenced, reconciled
from coordinator.groups.consumer.searching import due_search
from coordinator.groups.consumer.target import changed_targets
from coordinator.groups.consumer.timers import restart_session, time_revocation
from coordinator.groups.consumer_records import ClientKey, TargetKey, TargetRecord
from coordinator.groups.errors import Error
from coordinator.groups.partitions import NONE, is_within

if TYPE_CHECKING:
    from coordinator.groups.consumer.draft import Draft
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.requests import ConsumerHeartbeat, ConsumerSettings
    from coordinator.groups.effects import Turn
    from coordinator.groups.partitions import Partitions


class Refused(Exception):  # an answer, not a failure
    def __init__(self, error: Error, message: str | None = None) -> None:
        self.error = error
        self.message = message


def invalid(request: ConsumerHeartbeat, settings: ConsumerSettings) -> Error | None:
    """The error of a request that no group could accept."""
    if not request.group_id.strip() or _is_blank(request.instance_id) or _is_blank(request.rack_id):
        return Error.INVALID_REQUEST
    if not request.member_id.strip() and not (request.may_lack_id and request.epoch in (JOINING, LEAVING_FOR_A_WHILE)):
        return Error.INVALID_REQUEST
    if request.epoch < LEAVING_FOR_A_WHILE or (request.epoch == LEAVING_FOR_A_WHILE and request.instance_id is None):
        return Error.INVALID_REQUEST
    if request.epoch == JOINING and (
        request.rebalance_timeout_ms == NO_TIMEOUT
        or request.owned is None
        or request.owned
        or request.bare_topics
        or (request.topics is None and request.topic_regex is None)
    ):
        return Error.INVALID_REQUEST
    if request.assignor is not None and request.assignor not in settings.assignors:
        return Error.UNSUPPORTED_ASSIGNOR
    return None


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def heartbeat(draft: Draft, request: ConsumerHeartbeat, turn: Turn) -> None:
    """One valid request to a group, which may be a new one if the member joins. Raises `Refused`."""
    group, settings = draft.group, draft.settings
    former = _member(draft, request, settings)
    _check_regex(draft, former, request)
    is_new_name = request.instance_id is not None and request.instance_id not in group.instances
    target_epoch = group.target_epoch
    described = _described(former, request)
    before = seen_before(draft, turn)
    search = due_search(draft, former.topic_regex, described.topic_regex, turn)
    assignor = group.assignor(settings.assignors) if 20434 in settings.mended else None
    _describe(draft, former, described)
    is_changed = before.topics_changed or needs_target(group, former)
    if assignor is not None and group.assignor(settings.assignors, described) != assignor:
        is_changed = True  # 4.1.1 does not look (KAFKA-20434)
    if is_changed:
        draft.bump()
    present = group.members[former.id]
    compute_target(draft, present, is_alike=None if is_changed else before.is_alike)
    try:
        # Kafka finds a static member's target by its instance id, which a member that was dynamic has only from now on.
        target = NONE if is_new_name and group.target_epoch == target_epoch else None
        member = reconcile(draft, present, request.owned, turn, target)
    except MemberFenced as fenced:
        draft.undo()
        raise Refused(Error.FENCED_MEMBER_EPOCH) from fenced
    restart_session(group, member.id, settings.session_timeout_ms, turn)
    if search is not None:
        group.is_searching = True
        turn.search(search)
    tells = request.is_full or member.assigned != present.assigned
    answer = ConsumerHeartbeatAnswer(
        Error.NONE,
        member.id,
        member.epoch,
        settings.heartbeat_interval_ms,
        member.assigned if tells else None,
    )
    draft.store(request.token, answer, turn)


def settled_member(group: ConsumerGroup, request: ConsumerHeartbeat) -> ConsumerMember | None:
    """The sender of a request that was accepted, if it changes no more than a session as long as the group stays as it
    is and need not look at its topics; never in a group with regular expressions, which any heartbeat may search for.
    """
    member = group.members.get(request.member_id)
    if member is None or request.epoch == JOINING or not group.is_settled_at(request.epoch):
        return None
    if request.instance_id is not None and group.instances.get(request.instance_id) != member.id:
        return None
    return member if member.is_at(group.epoch) and _described(member, request) == member else None


def refuse_if_full(group: ConsumerGroup, member_id: str, settings: ConsumerSettings) -> None:
    """Raises `Refused`."""
    if len(group.members) >= settings.members_max and member_id not in group.members:
        raise Refused(Error.GROUP_MAX_SIZE_REACHED)


def _member(draft: Draft, request: ConsumerHeartbeat, settings: ConsumerSettings) -> ConsumerMember:
    """The member that sends this, as known, or a new one. Raises `Refused`."""
    group, member_id = draft.group, request.member_id or request.fresh_id
    refuse_if_full(group, member_id, settings)
    if request.instance_id is not None:
        return _static_member(draft, member_id, request)
    member = group.members.get(member_id)
    if member is None:
        if request.epoch != JOINING:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
        return ConsumerMember(id=member_id)
    _check_epoch(member, request, settings)
    return member


def _static_member(draft: Draft, member_id: str, request: ConsumerHeartbeat) -> ConsumerMember:
    """An instance that has left for a while is replaced, a running one is not: the newcomer loses.

    Of the classic protocol, a running one is replaced as well: the newcomer is its upgraded self.
    """
    assert request.instance_id is not None, "an instance id is what makes a member static"
    group = draft.group
    holder = group.members.get(group.instances.get(request.instance_id, ""))
    if request.epoch == JOINING:
        if holder is None:
            return group.members.get(member_id) or ConsumerMember(id=member_id)
        if holder.epoch != LEAVING_FOR_A_WHILE and holder.classic is None:
            raise Refused(Error.UNRELEASED_INSTANCE_ID)
        return replaced(draft, holder, member_id)
    if holder is None:
        raise Refused(Error.UNKNOWN_MEMBER_ID)
    if holder.id != member_id:
        raise Refused(Error.FENCED_INSTANCE_ID)
    _check_epoch(holder, request, draft.settings)
    return holder


def _check_epoch(member: ConsumerMember, request: ConsumerHeartbeat, settings: ConsumerSettings) -> None:
    """The previous epoch will do if the answer with the present one may have been lost. Raises `Refused`."""
    if request.epoch == member.epoch or (request.epoch == JOINING and 19233 in settings.mended):
        return
    knows_less = request.epoch < member.epoch and request.epoch == member.previous_epoch
    names_others = any(topic not in member.assigned for topic in request.bare_topics)
    if not knows_less or names_others or request.owned is None or not is_within(request.owned, member.assigned):
        raise Refused(Error.FENCED_MEMBER_EPOCH)


def replaced(draft: Draft, holder: ConsumerMember, member_id: str) -> ConsumerMember:
    """The same member under its new id, with the same target and partitions, which it has to take again."""
    group, target = draft.group, draft.group.target_of(holder.id)
    draft.remove(holder.id)
    member = holder._replace(id=member_id, epoch=JOINING, previous_epoch=JOINING)
    draft.put(ClientKey(group.id, member_id), client_record(member))
    draft.put(TargetKey(group.id, member_id), TargetRecord(target))
    draft.place(member)
    return group.members[member_id]


def _check_regex(draft: Draft, former: ConsumerMember, request: ConsumerHeartbeat) -> None:
    """Raises `Refused`."""
    regex = request.topic_regex
    if regex and regex != former.topic_regex and request.regex_problem is not None:
        draft.undo()
        raise Refused(
            Error.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {request.regex_problem}.",
        )


def _describe(draft: Draft, former: ConsumerMember, described: ConsumerMember) -> None:
    """Record what the client says of itself, if it is new."""
    if (described is not former and described != former) or former.id not in draft.group.members:
        draft.put(ClientKey(draft.group.id, former.id), client_record(described))
    forget_regex(draft, former, described)


def forget_regex(draft: Draft, former: ConsumerMember, described: ConsumerMember) -> None:
    """What the member's former regular expression matched, if no other member has it."""
    if described.topic_regex != former.topic_regex:
        draft.forget_unused_regexes()
        draft.group.seen_hash = draft.topics_hash()


def _described(former: ConsumerMember, request: ConsumerHeartbeat) -> ConsumerMember:
    """The member as this request describes it."""
    if (
        request.client_id == former.client_id
        and request.client_host == former.client_host
        and request.rebalance_timeout_ms in (NO_TIMEOUT, former.rebalance_timeout_ms)
        and request.topics is None
        and request.topic_regex in (None, former.topic_regex)
        and request.instance_id in (None, former.instance_id)
        and request.rack_id in (None, former.rack_id)
        and request.assignor in (None, former.assignor)
        and former.classic is None
    ):
        return former
    return former._replace(
        instance_id=former.instance_id if request.instance_id is None else request.instance_id,
        rack_id=former.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=former.topics if request.topics is None else frozenset(request.topics),
        topic_regex=former.topic_regex if request.topic_regex is None else request.topic_regex,
        rebalance_timeout_ms=(
            former.rebalance_timeout_ms if request.rebalance_timeout_ms == NO_TIMEOUT else request.rebalance_timeout_ms
        ),
        assignor=former.assignor if request.assignor is None else request.assignor,
        classic=None,
    )


class Before(NamedTuple):
    """Of a group, as it was before a request: what its target follows from as long as the request needs no new one."""

    topics_changed: bool  #: those that it subscribes to have appeared, disappeared or grown
    is_alike: bool  #: the members were taken for subscribed alike


def seen_before(draft: Draft, turn: Turn) -> Before:
    """Looks at the topics when it is time."""
    group, view = draft.group, draft.topics.view()
    if turn.now.ms < group.topics_due_ms and view is group.topics_view:
        return Before(False, group.is_alike)
    group.topics_due_ms, group.topics_view = turn.now.ms + draft.settings.topics_refresh_ms, view
    seen_hash = group.metadata_hash if group.seen_hash is None else group.seen_hash
    return Before(draft.topics_hash() != seen_hash, group.is_alike)


def needs_target(group: ConsumerGroup, former: ConsumerMember) -> bool:
    """Whether the group is new, or the member subscribes to something else than before.

    A regular expression whose topics are not known yet changes nothing, nor does one that is given up: everybody keeps
    what it has until a search, or another reason, makes a new target.
    """
    member = group.members[former.id]
    if group.epoch == 0 or former.topics != member.topics:
        return True
    return former.topic_regex != member.topic_regex and member.topic_regex in group.regexes


def compute_target(draft: Draft, asking: ConsumerMember, *, is_alike: bool | None) -> None:
    """Share the partitions out if the group has got a new epoch."""
    group = draft.group
    if group.epoch > group.target_epoch:
        assignor = group.assignor(draft.settings.assignors, asking)
        for member_id, target in changed_targets(group, assignor, draft.topics, is_alike=is_alike).items():
            draft.put(TargetKey(group.id, member_id), TargetRecord(target))
        draft.finish_target()


def reconcile(
    draft: Draft, present: ConsumerMember, owned: Partitions | None, turn: Turn, target: Partitions | None = None
) -> ConsumerMember:
    """The member on its way to its target, or to the given one. Raises `MemberFenced`."""
    group = draft.group
    mine = present.id if 19449 in draft.settings.mended else None
    target = group.target_of(present.id) if target is None else target
    goal = Goal(group.target_epoch, target, partial(group.is_free, mine=mine))
    member = present if present.is_at(goal.epoch) else reconciled(present, goal, owned)
    if member != present:
        draft.place(member)
        if member.classic is None:  # the others have deadlines to rejoin and to sync
            time_revocation(group, member, turn)
    return member
