"""Fatal errors of a group, with what to do about each."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.membership.events import UNANSWERED
from kernel.client.connection import UnsupportedByBroker
from kernel.errors import RefusedForGood

if TYPE_CHECKING:
    from collections.abc import Mapping

_REMEDIES: Mapping[str, str] = MappingProxyType(
    {
        "INCONSISTENT_GROUP_PROTOCOL": "its members use other strategies or another design: set the same "
        "partition.assignment.strategy, or another group.id",
        "INVALID_SESSION_TIMEOUT": "keep session.timeout.ms within the broker's group.min/max.session.timeout.ms",
        "GROUP_MAX_SIZE_REACHED": "the group has reached the broker's group.max.size (members), or its "
        "group.metadata.max.bytes (their ids and subscriptions)",
        "MESSAGE_TOO_LARGE": "this member's ids and subscriptions, one for each strategy, exceed the broker's "
        "group.member.metadata.max.bytes: subscribe to fewer topics, offer fewer strategies, or raise it",
        "INVALID_GROUP_ID": "set another group.id",
        "FENCED_INSTANCE_ID": "another member with this group.instance.id has replaced this one: give every "
        "member its own group.instance.id",
        "INCONSISTENT_STRATEGY": "its coordinator uses another one: remove partition.assignment.strategy, or set "
        "the brokers' group.server.assignment.strategy and restart them",
        "UNKNOWN_STRATEGY": "its coordinator has no such strategy: remove partition.assignment.strategy",
        "INVALID_REGULAR_EXPRESSION": "the brokers read regular expressions as RE2 does, without lookaround and back "
        "references: subscribe to another one, or by topic",
        "UNSUPPORTED_ASSIGNOR": "its coordinator has no such assignor: set group.remote.assignor to one of the "
        "brokers' group.consumer.assignors, or remove it",
        "UNRELEASED_INSTANCE_ID": "another member with this group.instance.id is in the group: give every member its "
        "own group.instance.id, or wait until that one has left or its session has ended",
        "UNSUPPORTED_VERSION": "the broker is too old or too new for this client",
    }
)

#: (api, error) -> remedy, where an error has another meaning for this request.
_REMEDIES_OF_REQUESTS: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("ConsumerGroupHeartbeat", "GROUP_MAX_SIZE_REACHED"): "the group has reached the brokers' "
        "group.consumer.max.size: raise it, or start fewer members",
        ("ConsumerGroupHeartbeat", "UNSUPPORTED_VERSION"): "the broker does not have the protocol of KIP-848: use "
        "another design, or a broker of Kafka 4.0 or later",
        ("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL"): "members of another design use this group id: set another "
        "group.id",
        (
            "SyncGroup",
            "UNKNOWN_SERVER_ERROR",
        ): "the broker did not store the assignment; its log says why, usually because "
        "the group is larger than its message.max.bytes",
    }
)


class GroupRefused(RefusedForGood):
    """The coordinator rejected this member with a fatal error."""

    def __init__(self, api: str, error: str, group: str) -> None:
        remedy = _REMEDIES_OF_REQUESTS.get((api, error), _REMEDIES.get(error))
        super().__init__(f"group {group!r} refused {api} with {error}" + (f": {remedy}" if remedy else ""))
        self.api = api
        self.error = error


def unanswered(error: Exception) -> str:
    """Return the error name for a request without a response."""
    return "UNSUPPORTED_VERSION" if isinstance(error, UnsupportedByBroker) else UNANSWERED
