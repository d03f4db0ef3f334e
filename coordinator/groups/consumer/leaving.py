"""How members leave: by themselves, by an administrator, or because they were silent or slow for too long."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.groups.answers import ConsumerHeartbeatAnswer, LeaveAnswer, Left
from coordinator.groups.consumer.draft import Draft
from coordinator.groups.consumer.heartbeat import Refused
from coordinator.groups.consumer.member import LEAVING_FOR_A_WHILE
from coordinator.groups.consumer.timers import cancel_timers
from coordinator.groups.errors import Error
from coordinator.groups.partitions import NONE

if TYPE_CHECKING:
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.requests import ConsumerHeartbeat, ConsumerSettings
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import Leave, Leaving


def leave(
    group: ConsumerGroup, request: ConsumerHeartbeat, settings: ConsumerSettings, topics: Topics, turn: Turn
) -> None:
    """A heartbeat with the epoch -1 or -2. Raises `Refused`."""
    answer = ConsumerHeartbeatAnswer(Error.NONE, request.member_id, request.epoch)
    if request.instance_id is None:
        if request.member_id not in group.members:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
    else:
        holder = group.instances.get(request.instance_id)
        if holder is None:
            raise Refused(Error.UNKNOWN_MEMBER_ID)
        if holder != request.member_id:
            raise Refused(Error.FENCED_INSTANCE_ID)
    if request.epoch == LEAVING_FOR_A_WHILE:
        # Its session goes on: if it does not return in time, it has left for good.
        draft = Draft(group, settings, topics)
        draft.place(replace(group.members[request.member_id], epoch=LEAVING_FOR_A_WHILE, revoking=NONE))
        draft.store(request.token, answer, turn)
    else:
        draft = Draft(group, settings, topics)
        _remove(draft, request.member_id, turn)
        draft.store(request.token, answer, turn)


def remove(draft: Draft, member_id: str, turn: Turn) -> None:
    """Remove a member that was silent or slow."""
    _remove(draft, member_id, turn)
    draft.store(None, None, turn)


def remove_named(group: ConsumerGroup, request: Leave, settings: ConsumerSettings, topics: Topics, turn: Turn) -> None:
    """LeaveGroup, by which administrators remove members of this design, too: all at once, for one new epoch.

    Every name is judged before the first is removed, so a member that is named twice has left twice.
    """
    draft = Draft(group, settings, topics)
    named = [_named(group, leaving) for leaving in request.members]
    for member_id in dict.fromkeys(found for found in named if not isinstance(found, Error)):
        draft.remove(member_id)
        cancel_timers(group, member_id, turn)
    if draft.batch.changes:
        _bump_without_them(draft)
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


def _remove(draft: Draft, member_id: str, turn: Turn) -> None:
    """Its partitions are free at once; the next heartbeat of anybody computes the new target."""
    draft.remove(member_id)
    cancel_timers(draft.group, member_id, turn)
    _bump_without_them(draft)


def _bump_without_them(draft: Draft) -> None:
    draft.forget_unused_regexes()
    draft.bump()
