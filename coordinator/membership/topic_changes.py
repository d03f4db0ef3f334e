"""When topics make a member rejoin, and when the brokers are asked about topics again.

Two things are watched between rebalances (ConsumerCoordinator.rejoinNeededOrPending of kafka-clients 4.1.1):

- Every member watches what its own pattern matches. When that changes, it rejoins with the topics of now. A member
  that subscribes by name never has another subscription than it was given.
- The leader keeps how many partitions each topic of the group had when it assigned them, topics of other members
  and topics that there were not included. When any of that differs from what the brokers say, it rejoins, and the
  group assigns anew. Nobody else does: a follower may see a topic grow and leave it to the leader. A static leader
  that came back into a stable group and was told to skip the assignment watches as any other (KIP-814).

What was seen before a rebalance began is no reason for another: the leader's memory is that of its last assignment.

A topic that was deleted is a change like any other, and its members rejoin at once. Kafka's do that only without
auto-commit: with it kafka-clients 4.1.1 was seen to repeat the commit of the topic's partitions, which no broker takes
any more, until max.poll.interval.ms is over, and to keep them meanwhile.

Metadata is asked for anew when it is metadata.max.age.ms old, and soon when a topic that is wanted by name is not
there: after retry.backoff.ms, then after twice that, up to a second (Metadata.requestUpdate; KIP-580).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.membership.subscription import Subscription, TopicsSeen

#: retry.backoff.max.ms by Kafka's default: the longest wait for a topic that is missing.
MISSING_TOPIC_WAIT_MS_MAX = 1_000

#: Why a rebalance begins, as the trace says it.
METADATA_CHANGED = "metadata-changed"


@dataclass(frozen=True, slots=True)
class Watched:
    """What one stream has its eye on: what it subscribes to now, and the leader's memory; None for a follower."""

    stream: int
    topics: frozenset[str]
    assigned_sizes: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Resubscribe:
    """The stream's pattern matches other topics than before."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Rejoin:
    """The stream leads, and the topics that it shared out have changed; `changed` is sorted."""

    changed: tuple[str, ...]


def topic_reaction(watched: Watched, subscription: Subscription, seen: TopicsSeen) -> Resubscribe | Rejoin | None:
    """What a stream has to do about the topics as they are now. A change of its own comes first and covers both."""
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
    """Which topics the brokers are asked about: our own, and as leader the whole group's; None is all there are."""
    if subscription.names is None:
        return None
    return subscription.names.union(*(memory for memory in assigned_sizes if memory is not None))


def wait_ms(*, missing: bool, in_vain: int, max_age_ms: int, backoff_ms: int) -> int:
    """How long until the brokers are asked again; `in_vain` counts the looks that did not help."""
    if not missing:
        return max_age_ms
    soon = min(backoff_ms << min(in_vain, 20), max(backoff_ms, MISSING_TOPIC_WAIT_MS_MAX))
    return min(soon, max_age_ms)
