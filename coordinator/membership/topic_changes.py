"""When a change of topics makes a member rejoin, and when to refresh the metadata of topics.

Members check two things between rebalances (ConsumerCoordinator.rejoinNeededOrPending of kafka-clients 4.1.1):

- A member with a pattern checks which topics match. When they change, it rejoins with the new ones. A subscription by
  name never changes by itself.
- The leader remembers how many partitions each of the group's topics had when it assigned them, including other
  members' topics and topics that did not exist. When the metadata differs, it rejoins, and the group assigns again.
  Followers do not: they leave growing topics to the leader. A static leader that returned to a stable group and skipped
  the assignment checks like any other (KIP-814).

Changes seen before a rebalance began do not cause another one: the leader compares with its last assignment.

A deleted topic is a change like any other, and its members rejoin at once. Kafka's do so only without auto-commit: with
it, kafka-clients 4.1.1 was seen to retry the commit of the topic's partitions, which brokers now refuse, until
max.poll.interval.ms has passed, and to keep the partitions meanwhile.

Metadata is refreshed when it is metadata.max.age.ms old, and sooner while a topic subscribed to by name is missing:
after retry.backoff.ms, then after twice that, up to a second (Metadata.requestUpdate; KIP-580).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.membership.subscription import Subscription, TopicsSeen

#: Kafka's default of retry.backoff.max.ms: the longest wait before looking for a missing topic again.
MISSING_TOPIC_WAIT_MS_MAX = 1_000

#: The trigger of a rebalance after a change of topics, in the trace.
METADATA_CHANGED = "metadata-changed"


@dataclass(frozen=True, slots=True)
class WatchedTopics:
    """What one stream compares with the metadata: its topics, and the sizes it assigned; None for a follower."""

    stream: int
    topics: frozenset[str]
    assigned_sizes: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """The stream's pattern now matches these topics."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rejoin:
    """The stream leads, and topics that it assigned have changed; `changed` is sorted."""

    changed: tuple[str, ...]


def topic_reaction(watched: WatchedTopics, subscription: Subscription, seen: TopicsSeen) -> Resubscribe | Rejoin | None:
    """Return what a stream must do about the current topics. Its own change comes first and covers both."""
    topics = subscription.topics_of(watched.stream, seen)
    if topics != watched.topics:
        return Resubscribe(topics)
    if watched.assigned_sizes is None:
        return None
    changed = tuple(sorted(topic for topic, size in watched.assigned_sizes.items() if seen.sizes.get(topic, 0) != size))
    return Rejoin(changed) if changed else None


def names_wanted(
    subscription: Subscription, assigned_sizes: Iterable[Mapping[str, int] | None]
) -> frozenset[str] | None:
    """Return the topics to request metadata for: our own, and a leader's whole group's; None for all."""
    if subscription.names is None:
        return None
    return subscription.names.union(*(memory for memory in assigned_sizes if memory is not None))


def wait_ms(*, missing: bool, failed_refreshes: int, max_age_ms: int, backoff_ms: int) -> int:
    """Return the time until the next refresh; `failed_refreshes` did not find a missing topic."""
    if not missing:
        return max_age_ms
    soon = min(backoff_ms << min(failed_refreshes, 20), max(backoff_ms, MISSING_TOPIC_WAIT_MS_MAX))
    return min(soon, max_age_ms)
