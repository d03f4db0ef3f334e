"""What an assignor is given and what it answers: the one signature of all strategies.

An assignor is a pure function of the whole group. It is handed the size of every topic that exists and what
every member told the group of itself, and it answers for every member, with an empty list where there is
nothing to have. Topics that do not exist (absent, or of size 0) are skipped without a complaint, as Kafka
does (AbstractPartitionAssignor, 0.9 to 4.1). The signature carries more than range and round robin look at:
the sticky strategies need what a member owned, and in which generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """What one member told the group.

    `owned` and `generation` are its claim on partitions from before (KIP-429, KIP-792); `user_data` is what
    its own strategy put beside the subscription and only that strategy reads.
    """

    topics: tuple[str, ...]
    instance_id: str | None = None  #: group.instance.id of a static member (KIP-345)
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None  #: None where the member's protocol version has no such field
    user_data: bytes | None = None


#: ({topic: number of partitions}, {member id: subscription}) -> {member id: its partitions}, every member named.
Assignor = Callable[[Mapping[str, int], Mapping[str, MemberSubscription]], dict[str, list[TopicPartition]]]


def java_order(text: str) -> bytes:
    """A key that sorts as Java's `String.compareTo`: by UTF-16 code units, where Python sorts by code points.

    They differ for characters beyond the basic plane, whose surrogates (0xD800 and up) sort before U+E000.
    """
    return text.encode("utf-16-be", "surrogatepass")


def members_in_order(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids in the order in which Kafka serves them since 2.3 (KIP-345).

    Static members come first, by instance id, so that a restart under a new member id changes nothing;
    dynamic ones follow by member id. Two that name the same instance, which no broker lets into one group, stay
    in hash order.
    """

    def rank(member: str) -> tuple[bool, bytes]:
        instance_id = subscriptions[member].instance_id
        return (instance_id is None, java_order(member if instance_id is None else instance_id))

    return sorted(texts_in_hash_order(subscriptions), key=rank)
