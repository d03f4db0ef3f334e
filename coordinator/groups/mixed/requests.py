"""The requests of the classic protocol, put to the groups of the `consumer` design."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.answers import JoinAnswer, SyncAnswer, heartbeat_answer
from coordinator.groups.consumer.heartbeat import Refused
from coordinator.groups.consumer.traces import REPLACED
from coordinator.groups.mixed import joining, standing
from coordinator.groups.requests import UNKNOWN_MEMBER

if TYPE_CHECKING:
    from coordinator.groups.consumer.groups import ConsumerGroups
    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import Heartbeat, Join, Sync


def join(groups: ConsumerGroups, request: Join, turn: Turn) -> None:
    """JoinGroup to a group that has members."""
    try:
        joining.join(groups.draft(request.group_id, REPLACED), request, turn)
    except Refused as refused:
        turn.reply(request.token, JoinAnswer(error=refused.error, member_id=UNKNOWN_MEMBER))


def sync(groups: ConsumerGroups, request: Sync, turn: Turn) -> None:
    """SyncGroup to a group that exists."""
    try:
        standing.sync(groups.draft(request.group_id), request, turn)
    except Refused as refused:
        turn.reply(request.token, SyncAnswer(error=refused.error))


def heartbeat(groups: ConsumerGroups, request: Heartbeat, turn: Turn) -> None:
    """Heartbeat to a group that exists."""
    try:
        standing.heartbeat(groups.draft(request.group_id), request, turn)
    except Refused as refused:
        turn.reply(request.token, heartbeat_answer(refused.error))
