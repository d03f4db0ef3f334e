"""What a group's leader does between Join and Sync, and what every member does with the answer to its Sync.

The leader reads the others' subscriptions, looks up topics, and assigns. Most strategies decide each round for
itself; `delayed` remembers, and sends a delay along.

Reading and assigning happen on a thread (`computing`), and the leader's heartbeats go on however long they take. When
the group moves on meanwhile, the answer is dropped. A member makes one decision at a time, as Kafka's leader does: the
next one begins when the last one has ended, wanted or not.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from coordinator.assignment import strategies as wire_assignment
from coordinator.membership.classic.events import Synced
from coordinator.membership.classic.member import NO_GENERATION
from coordinator.membership.delayed_leader import PROTOCOL as DELAYED
from coordinator.membership.delayed_leader import DelayedLeader, Gathering
from coordinator.protocol.consumer_protocol import decode_assignment, encode_assignment, subscription_of
from coordinator.protocol.delay_data import delay_of, encode_delay
from kernel.assignors.registry import assignor
from kernel.clock import NS_PER_MS
from kernel.computing import computed
from kernel.errors import Unavailable
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coordinator.assignment.subscription_arrays import Subscriptions
    from coordinator.consumer.context import ConsumerContext
    from coordinator.membership.classic.effects import RunAssignor, SendSync
    from kernel.assignors.subscription import MemberSubscription

log = logging.getLogger(__name__)

#: A topic that was just created by a Metadata request is described by one of the next. One that is not to be created
#: is looked for once: the leader goes on watching, and rejoins when it comes.
LOOKUPS = 5


class GroupLeader:
    """One member's strategies, with what they remember from round to round while it is a member."""

    def __init__(self, context: ConsumerContext) -> None:
        self._context = context
        self._delayed = DelayedLeader()
        #: As leader: how many partitions each topic of the group had when it was last assigned, see `topic_watch`.
        self.assigned_sizes: Mapping[str, int] | None = None
        self._assigned_in = NO_GENERATION
        self._deciding = asyncio.Lock()

    def received(self, effect: SendSync, data: bytes) -> Synced:
        """SyncGroup has answered, with what the group's leader gave this member. Raises `MalformedMetadata`."""
        if self._assigned_in != effect.identity.generation:
            self.assigned_sizes = None  # another member leads now, and watches
        assignment = decode_assignment(data)
        delay_ms = delay_of(assignment.user_data) if effect.protocol == DELAYED else 0
        self._delayed = self._delayed.completed(effect.identity.generation)
        return Synced(effect.stamp, assignment.partitions, delay_ms)

    async def decide(self, effect: RunAssignor, generation: int, *, wanted: Callable[[], bool]) -> dict[str, bytes]:
        """Assignment bytes for every member of the list, also for those that get nothing (the Java client needs them).

        Waits for brokers as long as `wanted()`: until then the group waits for us, which is what Kafka's leader does.
        """
        async with self._deciding:
            return await self._decide(effect, generation, wanted)

    async def _decide(self, effect: RunAssignor, generation: int, wanted: Callable[[], bool]) -> dict[str, bytes]:
        if not wanted():  # the group has moved on while the last decision was made
            return {}
        group = await computed(partial(_Group, effect), "read subscriptions")
        topics = group.topics
        await _describe(topics, self._context, wanted)
        if not wanted():
            return {}
        known = self._context.client.metadata.sizes()
        self.assigned_sizes = sizes = {topic: known.get(topic, 0) for topic in topics}
        self._assigned_in = generation
        if effect.skip_assignment:
            return {}  # the coordinator has kept it; this leader only watches the topics
        if effect.protocol == DELAYED:
            return await self._decide_delayed(generation, sizes, group.subscriptions, wanted)
        if group.in_arrays is not None:
            return await self._decide_sticky(effect, generation, sizes, group.in_arrays)
        return await computed(partial(_assigned, effect.protocol, sizes, group.subscriptions), "assign")

    async def _decide_sticky(
        self, effect: RunAssignor, generation: int, sizes: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, bytes]:
        decide = partial(
            wire_assignment.decide,
            effect.protocol,
            sizes,
            {member.member_id: member.metadata for member in effect.members},
            subscriptions,
            exact_up_to=self._context.config.sticky_exact_partitions_max,
        )
        decision = await computed(decide, "assign")
        log.info(
            "generation %d is assigned by %s: %d partitions, %d members, by %s",
            generation,
            effect.protocol,
            decision.partitions,
            len(effect.members),
            decision.algorithm,
        )
        return decision.assignments

    async def _decide_delayed(
        self,
        generation: int,
        sizes: Mapping[str, int],
        subscriptions: Mapping[str, MemberSubscription],
        wanted: Callable[[], bool],
    ) -> dict[str, bytes]:
        gathering = Gathering(
            now_ms=self._context.clock.monotonic_ns() // NS_PER_MS,
            max_delay_ms=self._context.config.scheduled_rebalance_max_delay_ms,
            generation=generation,
            sizes=sizes,
            subscriptions=subscriptions,
        )
        leader, assignments = await computed(partial(_assigned_with_delay, self._delayed, gathering), "assign")
        if wanted():  # what no member will hear of is not remembered either
            self._delayed = leader
        return assignments


def _assigned(
    strategy: str, sizes: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, bytes]:
    assignment = assignor(strategy)(sizes, subscriptions)
    return {member: encode_assignment(partitions) for member, partitions in assignment.items()}


def _assigned_with_delay(leader: DelayedLeader, gathering: Gathering) -> tuple[DelayedLeader, dict[str, bytes]]:
    after, decision = leader.decide(gathering)
    user_data = encode_delay(decision.delay_ms)
    return after, {
        member: encode_assignment(partitions, user_data=user_data)
        for member, partitions in decision.assignments.items()
    }


class _Group:
    """What the members said: in arrays for the strategies that compute with them, or one by one."""

    def __init__(self, effect: RunAssignor) -> None:
        self.in_arrays: Subscriptions | None = None
        self.subscriptions: Mapping[str, MemberSubscription] = {}
        if effect.protocol in wire_assignment.READERS:
            read = wire_assignment.READERS[effect.protocol]
            self.in_arrays = read({member.member_id: member.metadata for member in effect.members})
            self.topics = sorted(self.in_arrays.topics)
        else:
            self.subscriptions = {
                member.member_id: subscription_of(member.metadata, instance_id=member.instance_id)
                for member in effect.members
            }
            self.topics = sorted({topic for said in self.subscriptions.values() for topic in said.topics})


async def _describe(topics: Sequence[str], context: ConsumerContext, wanted: Callable[[], bool]) -> None:
    """Metadata of every topic; a topic that nobody knows after a few looks does not exist."""
    client, create = context.client, context.config.allow_auto_create_topics
    looks, asked = LOOKUPS if create else 1, False
    while looks and not client.metadata.sizes().keys() >= set(topics) and wanted():
        if asked:
            await asyncio.sleep(context.config.retry_backoff_ms / 1000)
        asked = True
        try:
            await client.refresh(topics, create=create, timeout_ms=context.config.request_timeout_ms)
        except (Unavailable, ProtocolError):
            continue  # an unanswered lookup does not count
        looks -= 1
