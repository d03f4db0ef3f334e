"""The metadata that a member sends with JoinGroup: one subscription for each strategy that it offers.

They differ only in the user data. A sticky member revokes everything before it joins, so it sends its last assignment:
each strategy remembers the last one that it decided, across a rejoin, a lost session and a new member id. A
cooperative member names what it owns, in every subscription. Source: ConsumerCoordinator.metadata and the assignors'
onAssignment and subscriptionUserData of kafka-clients 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from coordinator.protocol.consumer_protocol import encode_subscription
from kernel.assignors.sticky_data import NO_GENERATION, encode_cooperative, encode_sticky
from kernel.assignors.subscription import MemberSubscription

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kernel.values import TopicPartition


def instance_of(instance_id: str | None, stream: int) -> str | None:
    """Return the group.instance.id of one stream, since each is a member: `<id>`, `<id>-1`, `<id>-2`, ..."""
    return instance_id if instance_id is None or not stream else f"{instance_id}-{stream}"


@dataclass(frozen=True, slots=True)
class LastAssignment:
    """The last assignment that one strategy decided for this member."""

    partitions: tuple[TopicPartition, ...]
    generation: int


@dataclass(frozen=True, slots=True)
class JoinMetadata:
    """See the module; `strategies` are in order of preference."""

    strategies: Sequence[str]
    remembered: Mapping[str, LastAssignment] = field(default_factory=dict)

    def after(self, protocol: str, partitions: Collection[TopicPartition], generation: int) -> JoinMetadata:
        """Remember the assignment by `protocol` that the member has taken over."""
        given = LastAssignment(tuple(sorted(partitions)), generation)
        return replace(self, remembered={**self.remembered, protocol: given})

    def protocols(
        self, topics: tuple[str, ...], generation: int, owned: Collection[TopicPartition] = ()
    ) -> dict[str, bytes]:
        """Return {strategy: its metadata in JoinGroup}; a generation below 0 means none.

        Every subscription has what the member owns while it joins, and in which generation: Kafka compares these
        generations when two members claim a partition. Only a cooperative member owns anything then (KIP-429).
        """
        return {
            strategy: encode_subscription(
                MemberSubscription(
                    topics=topics,
                    owned=tuple(sorted(owned)),
                    generation=None if generation < 0 else generation,
                    user_data=self._user_data(strategy),
                )
            )
            for strategy in self.strategies
        }

    def _user_data(self, strategy: str) -> bytes | None:
        last = self.remembered.get(strategy)
        match strategy:
            case "sticky":
                return None if last is None else encode_sticky(last.partitions, last.generation)
            case "cooperative-sticky":
                return encode_cooperative(NO_GENERATION if last is None else last.generation)
            case _:
                return None
