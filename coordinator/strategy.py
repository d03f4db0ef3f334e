"""What a group's leader does between Join and Sync, and what every member does with the answer to its Sync.

The leader reads the others' subscriptions, looks up topics, and assigns. Most strategies decide each round for
itself; `delayed` remembers, and sends a delay along.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.delayed.delay_data import delay_of, encode_delay
from coordinator.delayed.leader import PROTOCOL as DELAYED
from coordinator.delayed.leader import DelayedLeader, Gathering
from coordinator.membership.events import Synced
from coordinator.membership.member import NO_GENERATION
from coordinator.protocol import MalformedMetadata, decode_assignment, decode_subscription, encode_assignment
from kernel.assignors.registry import assignor
from kernel.assignors.subscription import MemberSubscription
from kernel.clock import NS_PER_MS
from kernel.errors import Unavailable
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coordinator.membership.effects import RunAssignor, SendSync
    from coordinator.membership.events import GroupMember
    from coordinator.surroundings import Surroundings

#: A topic that was just created by a Metadata request is described by one of the next. One that is not to be created
#: is looked for once: the leader goes on watching, and rejoins when it comes.
LOOKUPS = 5


class Strategies:
    """One member's strategies, with what they remember from round to round while it is a member."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._delayed = DelayedLeader()
        #: As leader: how many partitions each topic of the group had when it was last assigned, see `topic_watch`.
        self.led: Mapping[str, int] | None = None
        self._led_in = NO_GENERATION

    def received(self, effect: SendSync, data: bytes) -> Synced:
        """SyncGroup has answered, with what the group's leader gave this member. Raises `MalformedMetadata`."""
        if self._led_in != effect.identity.generation:
            self.led = None  # another member leads now, and watches
        assignment = decode_assignment(data)
        delay_ms = delay_of(assignment.user_data) if effect.protocol == DELAYED else 0
        self._delayed = self._delayed.completed(effect.identity.generation)
        return Synced(effect.stamp, assignment.partitions, delay_ms)

    async def decide(self, effect: RunAssignor, generation: int, *, wanted: Callable[[], bool]) -> dict[str, bytes]:
        """Assignment bytes for every member of the list, also for those that get nothing (the Java client needs them).

        Waits for brokers as long as `wanted()`: until then the group waits for us, which is what Kafka's leader does.
        """
        subscriptions = {member.member_id: subscription_of(member) for member in effect.members}
        topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
        await _describe(topics, self._around, wanted)
        known = self._around.client.metadata.sizes()
        self.led = sizes = {topic: known.get(topic, 0) for topic in topics}
        self._led_in = generation
        if effect.skip_assignment:
            return {}  # the coordinator has kept it; this leader only watches the topics
        if effect.protocol == DELAYED:
            return self._decide_delayed(generation, sizes, subscriptions)
        assignment = assignor(effect.protocol)(sizes, subscriptions)
        return {member: encode_assignment(partitions) for member, partitions in assignment.items()}

    def _decide_delayed(
        self, generation: int, sizes: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, bytes]:
        gathering = Gathering(
            now_ms=self._around.clock.monotonic_ns() // NS_PER_MS,
            max_delay_ms=self._around.config.scheduled_rebalance_max_delay_ms,
            generation=generation,
            sizes=sizes,
            subscriptions=subscriptions,
        )
        self._delayed, decision = self._delayed.decide(gathering)
        user_data = encode_delay(decision.delay_ms)
        return {
            member: encode_assignment(partitions, user_data=user_data)
            for member, partitions in decision.assignments.items()
        }


def subscription_of(member: GroupMember) -> MemberSubscription:
    """What a member asks for; one that sent nonsense asks for nothing, and the others get on with their work."""
    try:
        return decode_subscription(member.metadata, instance_id=member.instance_id)
    except MalformedMetadata:
        return MemberSubscription(topics=(), instance_id=member.instance_id)


async def _describe(topics: Sequence[str], around: Surroundings, wanted: Callable[[], bool]) -> None:
    """Metadata of every topic; a topic that nobody knows after a few looks does not exist."""
    client, create = around.client, around.config.allow_auto_create_topics
    looks, asked = LOOKUPS if create else 1, False
    while looks and any(not client.metadata.partitions_of(topic) for topic in topics) and wanted():
        if asked:
            await asyncio.sleep(around.config.retry_backoff_ms / 1000)
        asked = True
        try:
            await client.refresh(topics, create=create, timeout_ms=around.config.request_timeout_ms)
        except (Unavailable, ProtocolError):
            continue  # that was no look
        looks -= 1
