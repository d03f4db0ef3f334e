"""A member's subscription, and the streams that it gets.

By name, each topic has its own number of streams, one for each (topic, thread). With a pattern there is a fixed
number of streams, each shared by all matching topics: thread n reads from all of them into stream n.

Source: TopicCount.scala, consume and WildcardStreamsHandler of Kafka 0.8.2. There the streams of a pattern are
assigned to the threads in the order of a hash set, here by number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.errors import UserError
from zkconsumer.records.streams import Stream
from zkconsumer.znodes.filters import TopicFilter
from zkconsumer.znodes.payloads import LEGAL_TOPIC, STATIC, thread_ids

if TYPE_CHECKING:
    from collections.abc import Callable

#: A stream by (topic, thread id).
Streams = Mapping[tuple[str, str], Stream]


@dataclass(frozen=True, slots=True)
class Subscription:
    """As in the member's znode: `wanted` is {topic: streams}, or {pattern: streams} for a wildcard."""

    pattern: str  #: static, white_list or black_list
    wanted: Mapping[str, int]

    @classmethod
    def by_name(cls, topics: Mapping[str, int]) -> Subscription:
        """{topic: streams}; an empty subscription is legal and owns nothing.

        Raises `UserError` for less than one stream, and for a name that is illegal for a topic (the original goes on
        and reads and watches a znode of that name, wherever it is).
        """
        for topic, streams in topics.items():
            if not LEGAL_TOPIC.match(topic):
                raise UserError(f"{topic!r} is not a legal topic name. Use up to 255 letters, digits, '.', '_' and '-'")
            _check(streams, topic)
        return cls(STATIC, MappingProxyType(dict(topics)))

    @classmethod
    def by_pattern(cls, topic_filter: TopicFilter, streams: int) -> Subscription:
        """Raises `UserError` for less than one stream."""
        _check(streams, topic_filter.pattern)
        return cls(topic_filter.kind, MappingProxyType({topic_filter.pattern: streams}))

    @property
    def most_streams(self) -> int:
        """The largest number of streams of any topic."""
        return max(self.wanted.values(), default=0)

    @property
    def topic_filter(self) -> TopicFilter | None:
        """None for a subscription by name."""
        return None if self.pattern == STATIC else TopicFilter(self.pattern, next(iter(self.wanted)))

    def new_streams(self, consumer_id: str, make: Callable[[str], Stream]) -> Streams:
        """Create the streams; `make` creates the stream of a thread id."""
        if self.pattern != STATIC:
            return SharedStreams([make(thread) for thread in thread_ids(consumer_id, self.most_streams)])
        return {
            (topic, thread): make(thread)
            for topic, count in self.wanted.items()
            for thread in thread_ids(consumer_id, count)
        }


def _check(streams: int, of: str) -> None:
    if any("\ud800" <= char <= "\udfff" for char in of):
        raise UserError(f"{of!r} contains half a character (a lone surrogate), which no znode can hold")
    if streams < 1:
        raise UserError(f"{of}:{streams}: a topic needs at least one stream")


class SharedStreams(Mapping[tuple[str, str], Stream]):
    """A pattern's streams for any topic. Every topic that was looked up is added, and none is ever removed.

    A rebalance may see a topic before the member has been notified of it. Here its partitions get their stream at once;
    in the original they get none, and the fetcher that brings the first chunk dies.
    """

    def __init__(self, streams: list[Stream]) -> None:
        self._by_thread = {stream.thread: stream for stream in streams}
        # Topics in order of appearance. The first, "", stands for the pattern itself, so that the streams exist
        # before any topic matches.
        self._topics = {"": None}

    def add(self, topic: str) -> None:
        self._topics[topic] = None

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics that ever matched."""
        return tuple(topic for topic in self._topics if topic)

    def __getitem__(self, key: tuple[str, str]) -> Stream:
        topic, thread = key
        stream = self._by_thread[thread]
        self.add(topic)
        return stream

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter([(topic, thread) for topic in self._topics for thread in self._by_thread])

    def __len__(self) -> int:
        return len(self._topics) * len(self._by_thread)
