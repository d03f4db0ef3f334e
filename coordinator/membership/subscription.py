"""A consumer's subscription, by name or by pattern, and the topics of each of its streams.

By name, each topic has its own number of streams: stream n subscribes to the topics with more than n streams. With a
pattern there is one number, and every stream subscribes to all topics that match: the whole name, as in Java's
Matcher.matches, without Kafka's internal topics unless exclude.internal.topics is off (ConsumerCoordinator
.updatePatternSubscription and ConsumerMetadata.retainTopic of kafka-clients 4.1.1). The pattern itself is not sent to
the group: each member sends the topics that match. A regular expression for the coordinator (KIP-848) is sent as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import UserError
from kernel.java_regex import Regex, compiled
from kernel.topic_names import topic_name_problem

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """Topics according to the brokers: {topic: number of partitions}, and Kafka's internal topics."""

    sizes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    internal: frozenset[str] = frozenset()

    def of(self, topics: frozenset[str]) -> dict[str, int]:
        """Return the sizes of these topics; 0 for those that do not exist."""
        return {topic: self.sizes.get(topic, 0) for topic in topics}


@dataclass(frozen=True, slots=True)
class ByName:
    """A subscription to named topics: {topic: number of streams}."""

    wanted: Mapping[str, int]

    @property
    def streams(self) -> int:
        return max(self.wanted.values())

    @property
    def names(self) -> frozenset[str] | None:
        """The topics to request metadata for; None would be all."""
        return frozenset(self.wanted)

    def topics_of(self, stream: int, _: TopicsSeen) -> frozenset[str]:
        """Return one stream's topics, whether they exist or not."""
        return frozenset(topic for topic, streams in self.wanted.items() if streams > stream)


@dataclass(frozen=True, slots=True)
class ByPattern:
    """A subscription to all topics that match a pattern, with the same number of streams."""

    pattern: Regex
    streams: int
    exclude_internal: bool

    @property
    def names(self) -> frozenset[str] | None:
        """The topics to request metadata for: None, that is, all."""
        return None

    def topics_of(self, stream: int, seen: TopicsSeen) -> frozenset[str]:
        """Return one stream's topics among those that exist."""
        if stream >= self.streams:
            return frozenset()
        hidden = seen.internal if self.exclude_internal else frozenset()
        return frozenset(topic for topic in seen.sizes if topic not in hidden and self.pattern.fullmatch(topic))


@dataclass(frozen=True, slots=True)
class ByRegex:
    """A subscription to the topics that match at the coordinator: the member knows none of them."""

    regex: str
    streams: int

    @property
    def names(self) -> frozenset[str] | None:
        return frozenset()

    def topics_of(self, _: int, __: TopicsSeen) -> frozenset[str]:
        return frozenset()


Subscription = ByName | ByPattern | ByRegex


def by_name(topics: Mapping[str, int]) -> ByName:
    """Subscribe by name. Raises `UserError` for no topics, a topic without streams, or an invalid topic name."""
    if not topics:
        raise UserError("subscribe to at least one topic")
    for topic, streams in topics.items():
        if problem := topic_name_problem(topic):
            raise UserError(f"cannot subscribe to {topic!r}: {problem}")
        if streams < 1:
            raise UserError(f"{topic!r} needs at least one stream")
    return ByName(MappingProxyType(dict(topics)))


def by_regex(regex: str, streams: int) -> ByRegex:
    """Subscribe by a regular expression of the coordinator's. Raises `UserError` for an empty one, or no streams."""
    if not regex:
        raise UserError("the regular expression is empty. Use .* for all topics")
    if streams < 1:
        raise UserError(f"{regex!r} needs at least one stream")
    return ByRegex(regex, streams)


def by_pattern(pattern: str, streams: int, *, exclude_internal: bool) -> ByPattern:
    """Subscribe by pattern. Raises `UserError` for an empty, invalid or untranslatable pattern, or no streams."""
    if not pattern:
        raise UserError("the topic pattern is empty. Use .* for all topics")
    if streams < 1:
        raise UserError(f"{pattern!r} needs at least one stream")
    return ByPattern(compiled(pattern), streams, exclude_internal)
