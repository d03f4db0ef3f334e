"""What a consumer subscribes to, by name or by a pattern, and what each of its streams has of that.

By name every topic has its own number of streams: stream n takes part in the topics that have more than n. With a
pattern there is one number, and every stream takes part in all topics that match: the whole name, as Java's
Matcher.matches, and none of Kafka's own topics unless exclude.internal.topics is off (ConsumerCoordinator
.updatePatternSubscription and ConsumerMetadata.retainTopic of kafka-clients 4.1.1). The group never hears of the
pattern; it is told the topics that match, by each member for itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.broker.cluster.cluster_view import topic_name_problem
from kernel.errors import UserError
from kernel.java_regex import compiled

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """What the brokers said of topics: {topic: number of partitions}, and which topics are Kafka's own."""

    sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    internal: frozenset[str] = frozenset()

    def of(self, topics: frozenset[str]) -> dict[str, int]:
        """The sizes of some topics; 0 for those that there are not."""
        return {topic: self.sizes.get(topic, 0) for topic in topics}


@dataclass(frozen=True, slots=True)
class ByName:
    """{topic: streams}."""

    wanted: Mapping[str, int]

    @property
    def streams(self) -> int:
        return max(self.wanted.values())

    @property
    def names(self) -> frozenset[str] | None:
        """What metadata is asked for; None would be all topics."""
        return frozenset(self.wanted)

    def topics_of(self, stream: int, _: TopicsSeen) -> frozenset[str]:
        """What one stream subscribes to, whether it exists or not."""
        return frozenset(topic for topic, streams in self.wanted.items() if streams > stream)


@dataclass(frozen=True, slots=True)
class ByPattern:
    """All topics that match, with the same number of streams."""

    pattern: re.Pattern[str]
    streams: int
    exclude_internal: bool

    @property
    def names(self) -> frozenset[str] | None:
        """Of a pattern None, all topics: which of them match is our own business."""
        return None

    def topics_of(self, stream: int, seen: TopicsSeen) -> frozenset[str]:
        """What one stream subscribes to, of the topics that there are."""
        if stream >= self.streams:
            return frozenset()
        hidden = seen.internal if self.exclude_internal else frozenset()
        return frozenset(topic for topic in seen.sizes if topic not in hidden and self.pattern.fullmatch(topic))


Subscription = ByName | ByPattern


def by_name(topics: Mapping[str, int]) -> ByName:
    """Raises `UserError` without a topic, for a topic without a stream, and for a name that no topic can have."""
    if not topics:
        raise UserError("subscribe to at least one topic")
    for topic, streams in topics.items():
        if problem := topic_name_problem(topic):
            raise UserError(f"{topic!r} cannot be subscribed to: {problem}")
        if streams < 1:
            raise UserError(f"{topic!r} needs at least one stream")
    return ByName(MappingProxyType(dict(topics)))


def by_pattern(pattern: str, streams: int, *, exclude_internal: bool) -> ByPattern:
    """Raises `UserError` for an empty pattern, one that is no expression or not translatable, and for no stream."""
    if not pattern:
        raise UserError("the pattern of topics is empty: .* takes them all")
    if streams < 1:
        raise UserError(f"{pattern!r} needs at least one stream")
    return ByPattern(compiled(pattern), streams, exclude_internal)
