"""Sets of partitions by topic id: what a member has, gives up or shall have. A topic without partitions is left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

TopicId = bytes  #: the 16 bytes of a Uuid
Partitions = Mapping[TopicId, frozenset[int]]

NONE: Partitions = MappingProxyType({})


def partitions(pairs: Iterable[tuple[TopicId, Iterable[int]]]) -> Partitions:
    """Of (topic id, numbers); a topic may come more than once."""
    found: dict[TopicId, frozenset[int]] = {}
    for topic, numbers in pairs:
        if given := frozenset(numbers):
            found[topic] = found[topic] | given if topic in found else given
    return found


def both(left: Partitions, right: Partitions) -> Partitions:
    """The partitions that are in both."""
    return {topic: common for topic in left if topic in right and (common := left[topic] & right[topic])}


def without(left: Partitions, right: Partitions) -> Partitions:
    """The partitions of the first that are not in the second."""
    return {topic: rest for topic, numbers in left.items() if (rest := numbers - right.get(topic, frozenset()))}


def together(left: Partitions, right: Partitions) -> Partitions:
    """The partitions that are in either."""
    return {**left, **{topic: left.get(topic, frozenset()) | numbers for topic, numbers in right.items()}}


def overlap(left: Partitions, right: Partitions) -> bool:
    return any(topic in right and not numbers.isdisjoint(right[topic]) for topic, numbers in left.items())


def is_within(part: Partitions, whole: Partitions) -> bool:
    return all(numbers <= whole.get(topic, frozenset()) for topic, numbers in part.items())


def each(given: Partitions) -> Iterator[tuple[TopicId, int]]:
    for topic, numbers in given.items():
        for number in numbers:
            yield topic, number
