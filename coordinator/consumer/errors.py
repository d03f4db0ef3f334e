"""What a group may do to a consumer for good."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.membership.events import UNANSWERED
from kernel.client.connection import UnsupportedByBroker
from kernel.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

_REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "INCONSISTENT_GROUP_PROTOCOL": "its members use other strategies, or are of another design: set "
        "partition.assignment.strategy as they do, or another group.id",
        "INVALID_SESSION_TIMEOUT": "keep session.timeout.ms within the broker's group.min/max.session.timeout.ms",
        "GROUP_MAX_SIZE_REACHED": "the group has as many members as the broker's group.max.size allows, or they bring "
        "as many bytes as its group.metadata.max.bytes",
        "MESSAGE_TOO_LARGE": "what this member brings (ids, and all subscriptions that it offers) has more bytes than "
        "the broker's group.member.metadata.max.bytes: subscribe to fewer topics, offer fewer strategies, or raise it",
        "INVALID_GROUP_ID": "set another group.id",
        "FENCED_INSTANCE_ID": "another member uses this group.instance.id, and has taken this one's place: give every "
        "member a group.instance.id of its own",
        "INCONSISTENT_STRATEGY": "its coordinator assigns by another: leave partition.assignment.strategy out, or set "
        "the brokers' group.server.assignment.strategy and restart them",
        "UNKNOWN_STRATEGY": "its coordinator has no such strategy: leave partition.assignment.strategy out",
        "UNSUPPORTED_VERSION": "the broker is too old or too new for this client",
    }
)

#: (api, error) -> remedy, where an error means something else to this request.
_REMEDIES_OF_REQUESTS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL"): "members of another design use this group id: set another "
        "group.id",
        (
            "SyncGroup",
            "UNKNOWN_SERVER_ERROR",
        ): "the assignment was not stored, and the broker's log says why: as a rule "
        "the group is larger than its message.max.bytes",
    }
)


class GroupRefused(UserError):
    """The coordinator refuses this member with an error that does not pass; the consumer is of no more use."""

    def __init__(self, api: str, error: str, group: str) -> None:
        remedy = _REMEDIES_OF_REQUESTS.get((api, error), _REMEDIES.get(error))
        super().__init__(f"group {group!r} refused {api} with {error}" + (f": {remedy}" if remedy else ""))
        self.api = api
        self.error = error


def unanswered(error: Exception) -> str:
    """By which name a member is told that a request got no answer."""
    return "UNSUPPORTED_VERSION" if isinstance(error, UnsupportedByBroker) else UNANSWERED
