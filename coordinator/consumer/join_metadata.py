"""What a member tells the group of itself when it joins: one subscription for each strategy that it offers.

They differ in the user data only. A sticky member says what it had, for by then it owns nothing: it gives
everything back before it joins, and its strategy remembers the last assignment that it decided itself, over a
rejoin, a lost session and a new member id. A cooperative one names what it owns, in every subscription. Source:
ConsumerCoordinator.metadata and the assignors' onAssignment and subscriptionUserData of kafka-clients 4.1.
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
    """group.instance.id of one of a consumer's streams, each of which is a member: `<id>`, `<id>-1`, `<id>-2`, ..."""
    return instance_id if instance_id is None or not stream else f"{instance_id}-{stream}"


@dataclass(frozen=True, slots=True)
class LastAssignment:
    """The last assignment that one strategy decided for this member."""

    partitions: tuple[TopicPartition, ...]
    generation: int


@dataclass(frozen=True, slots=True)
class JoinMetadata:
    """See the module; `strategies` in order of preference."""

    strategies: Sequence[str]
    remembered: Mapping[str, LastAssignment] = field(default_factory=dict)

    def after(self, protocol: str, partitions: Collection[TopicPartition], generation: int) -> JoinMetadata:
        """Once the member has taken over what `protocol` gave it."""
        given = LastAssignment(tuple(sorted(partitions)), generation)
        return replace(self, remembered={**self.remembered, protocol: given})

    def protocols(
        self, topics: tuple[str, ...], generation: int, owned: Collection[TopicPartition] = ()
    ) -> dict[str, bytes]:
        """{strategy: its metadata in JoinGroup}; a generation below 0 is none.

        What a member owns while it joins, and in which generation, goes into every subscription: of two claims, Kafka
        reads the generation of one from there. Only a cooperative member owns anything then (KIP-429).
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
