"""How members leave: by themselves, by an administrator, or because they were silent or slow for too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.answers import ConsumerHeartbeatAnswer, LeaveAnswer, Left
from coordinator.groups.consumer.heartbeat import Refused
from coordinator.groups.consumer.member import LEAVING_FOR_A_WHILE
from coordinator.groups.consumer.timers import cancel_timers
from coordinator.groups.errors import Error
from coordinator.groups.partitions import NONE

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinator.groups.consumer.draft import Draft
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.requests import ConsumerHeartbeat
    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import Leave, Leaving


def leave(draft: Draft, request: ConsumerHeartbeat, turn: Turn) -> None:
    """A heartbeat with the epoch -1 or -2. Raises `Refused`."""
    group = draft.group
    answer = ConsumerHeartbeatAnswer(Error.NONE, request.member_id, request.epoch)
    if request.instance_id is None:
        if request.member_id not in group.members:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
    else:
        holder = group.members.get(group.instances.get(request.instance_id, ""))
        if holder is None:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
        if holder.id != request.member_id:
            raise Refused(Error.FENCED_INSTANCE_ID)
    if request.epoch == LEAVING_FOR_A_WHILE:
        # Its session goes on: if it does not return in time, it has left for good.
        draft.place(group.members[request.member_id]._replace(epoch=LEAVING_FOR_A_WHILE, revoking=NONE))
    else:
        _remove(draft, (request.member_id,), turn)
    draft.store(request.token, answer, turn)


def remove(draft: Draft, member_id: str, turn: Turn) -> None:
    """Remove a member that was silent or slow."""
    _remove(draft, (member_id,), turn)
    draft.store(None, None, turn)


def remove_named(draft: Draft, request: Leave, turn: Turn) -> None:
    """LeaveGroup: of members of the classic protocol, and by administrators of any, all at once for one new epoch.

    Every name is judged before the first is removed, so a member that is named twice has left twice.
    """
    named = [_named(draft.group, leaving) for leaving in request.members]
    gone = tuple(dict.fromkeys(found for found in named if not isinstance(found, Error)))
    if gone:
        _remove(draft, gone, turn)
    left = tuple(
        Left(*leaving, found if isinstance(found, Error) else Error.NONE)
        for leaving, found in zip(request.members, named, strict=True)
    )
    draft.store(request.token, LeaveAnswer(members=left), turn)


def _named(group: ConsumerGroup, leaving: Leaving) -> str | Error:
    """The id of the member that is to be removed."""
    member_id = leaving.member_id
    if leaving.instance_id is not None:
        holder = group.instances.get(leaving.instance_id)
        if holder is None:
            return Error.UNKNOWN_MEMBER_ID
        if member_id not in ("", holder):
            return Error.FENCED_INSTANCE_ID
        member_id = holder
    return member_id if member_id in group.members else Error.UNKNOWN_MEMBER_ID


def _remove(draft: Draft, member_ids: Collection[str], turn: Turn) -> None:
    """Their partitions are free at once; the next heartbeat of anybody computes the new target.

    If only members of the classic protocol stay, the group becomes theirs.
    """
    conversions = draft.conversions
    if conversions is not None and conversions.may_downgrade(draft.group, member_ids, draft.settings, turn):
        conversions.downgrade(draft, member_ids, turn)
        return
    for member_id in member_ids:
        draft.remove(member_id)
        cancel_timers(draft.group, member_id, turn)
    draft.forget_unused_regexes()
    draft.bump()
    if not draft.group.members and 20442 in draft.settings.mended:
        draft.finish_target()  # in 4.1.1 the assignment of an empty group stays an epoch behind it (KAFKA-20442)
