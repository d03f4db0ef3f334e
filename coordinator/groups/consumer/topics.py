"""The topics of the cluster, as far as groups of the `consumer` design have to know them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinator.groups.partitions import TopicId


class Topic(NamedTuple):
    id: TopicId
    partitions: int


class Topics(NamedTuple):
    """The broker's view at the moment."""

    find: Callable[[str], Topic | None]  #: by name; None if there is none
    name_of: Callable[[TopicId], str | None]  #: None if the topic has been deleted
    view: Callable[[], object] = lambda: None  #: another object whenever any topic has changed
    names_version: Callable[[], int] = lambda: 0  #: greater whenever topics have been created


def metadata_hash(names: Iterable[str], topics: Topics) -> int:
    """Says whether subscribed topics have appeared, disappeared or grown; 0 without topics.

    Signed 64 bits, as stored. Kafka hashes the same with XXH3, and racks with it; only the coordinator compares them.
    """
    digest = hashlib.blake2b(digest_size=8)
    found = [(name, topic) for name in sorted(names) if (topic := topics.find(name)) is not None]
    for name, topic in found:
        digest.update(f"{name}\0{topic.partitions}\0".encode("utf-8", "surrogatepass") + topic.id)
    return int.from_bytes(digest.digest(), "big", signed=True) if found else 0


#: Of a coordinator that knows no topics.
NO_TOPICS = Topics(lambda _: None, lambda _: None)
