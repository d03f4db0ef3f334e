"""A member's log lines, in the words of Kafka's Java consumer.

They are those of 3.9.1, which the client printed (`AbstractCoordinator`, `ConsumerCoordinator`): of everything that
differs between releases, what seed articles of 2.7 and later quote. A format per line, in the order of a rebalance; the
first argument is always `prefix`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.values import TopicPartition

SUBSCRIBED = "%sSubscribed to topic(s): %s"
SUBSCRIBED_BY_PATTERN = "%sSubscribed to pattern: '%s'"
FIND_COORDINATOR_ANSWERED = "%sReceived FindCoordinator response %s"
DISCOVERED = "%sDiscovered group coordinator %s"
LOOKUP_FAILED = "%sGroup coordinator lookup failed: %s"
WANTS_TO_JOIN = "%sRequest joining group due to: %s"
JOINING = "%s(Re-)joining group"
JOIN_ANSWERED = "%sReceived successful JoinGroup response: %s"
JOIN_FAILED = "%sJoinGroup failed: %s"
JOINED = "%sSuccessfully joined group with generation %s"
ASSIGNING = "%sPerforming assignment using strategy %s with subscriptions {%s}"
ASSIGNED = "%sFinished assignment for group at generation %d: {%s}"
SENDING_LEADERS_SYNC = "%sSending leader SyncGroup to coordinator %s at generation %s: %d assignments"
SENDING_FOLLOWERS_SYNC = "%sSending follower SyncGroup to coordinator %s at generation %s: %d assignments"
SYNCED = "%sSuccessfully synced group in generation %s"
JOIN_COMPLETE = "%sExecuting onJoinComplete with generation %d and memberId %s"
NOTIFYING = "%sNotifying assignor about the new %s"
ADDING = "%sAdding newly assigned partitions: %s"
NO_OFFSET_FOUND = "%sFound no committed offset for partition %s"
OFFSET_FOUND = "%sSetting offset for partition %s to the committed offset %d"
REVOKING = "%sRevoke previously assigned partitions %s"
LOST = "%sLost previously assigned partitions %s"
LEAVING = "%sMember %s sending LeaveGroup request to coordinator %s due to %s"

GIVEN_AN_ID = "need to re-join with the given member-id: %s"
#: Why a member rejoins, in Kafka's words; other triggers are ours.
_REASONS: Mapping[str, str] = {"group-rebalancing": "group is already rebalancing"}
_INT_MAX = 2**31 - 1


def prefix(client: str, group: str, instance: str | None = None) -> str:
    """What Kafka's LogContext puts in front of a consumer's lines."""
    static = f"instanceId={instance}, " if instance else ""
    return f"[Consumer {static}clientId={client}, groupId={group}] "


def node(host: str, port: int, node_id: int) -> str:
    """A coordinator as a Node: its id counts down from the highest, so that it has a connection of its own."""
    return f"{host}:{port} (id: {_INT_MAX - node_id} rack: null)"


def generation(number: int, member: str, protocol: str) -> str:
    return f"Generation{{generationId={number}, memberId='{member}', protocol='{protocol}'}}"


def listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))


def assignment(partitions: Iterable[TopicPartition]) -> str:
    return f"Assignment(partitions=[{listed(partitions)}])"


def assignments(decided: Mapping[str, Iterable[TopicPartition]]) -> str:
    """All members' assignments, without the braces."""
    return ", ".join(f"{member}={assignment(partitions)}" for member, partitions in decided.items())


def subscriptions(topics: Mapping[str, Iterable[str]]) -> str:
    """All members' subscriptions, without the braces."""
    return ", ".join(f"{member}=Subscription(topics=[{', '.join(names)}])" for member, names in topics.items())


def reason(trigger: str) -> str:
    return _REASONS.get(trigger, trigger)
