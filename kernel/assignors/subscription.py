"""The signature of all assignment strategies.

An assignor is a pure function of the whole group. It takes the sizes of all existing topics and the subscriptions of
all members, and returns a list for every member, which may be empty. It skips topics that do not exist (absent or of
size 0) silently, as Kafka does (AbstractPartitionAssignor, 0.9 to 4.1). Range and round robin do not use all of the
input: the sticky strategies also need the partitions that a member owned, and in which generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """The subscription of a member, as it sends it to the group.

    `owned` and `generation` are its claim on previous partitions (KIP-429, KIP-792). Only the strategy that added
    `user_data` reads it.
    """

    topics: tuple[str, ...]
    instance_id: str | None = None  #: group.instance.id of a static member (KIP-345)
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None  #: None if the member's protocol version lacks this field
    user_data: bytes | None = None


#: ({topic: number of partitions}, {member id: subscription}) -> {member id: its partitions} for every member.
Assignor = Callable[[Mapping[str, int], Mapping[str, MemberSubscription]], dict[str, list[TopicPartition]]]


def java_order(text: str) -> bytes:
    """A sort key for Java's `String.compareTo`, by UTF-16 code units (Python sorts by code points).

    They differ for characters beyond the basic plane, whose surrogates (0xD800 and up) sort before U+E000.
    """
    return text.encode("utf-16-be", "surrogatepass")


def members_in_order(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids in Kafka's order since 2.3 (KIP-345).

    Static members come first, by instance id, so that a restart with a new member id changes nothing. Dynamic ones
    follow by member id. Two with the same instance id, which no broker admits to a group, stay in hash order.
    """

    def rank(member: str) -> tuple[bool, bytes]:
        instance_id = subscriptions[member].instance_id
        return (instance_id is None, java_order(member if instance_id is None else instance_id))

    return sorted(texts_in_hash_order(subscriptions), key=rank)
