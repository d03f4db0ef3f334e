"""What the group's leader does between JoinGroup and SyncGroup, and what each member does with its assignment.

The leader reads the members' subscriptions, looks up the topics, and assigns. Most strategies decide each round
independently; `delayed` keeps a memory, and adds a delay to the assignments.

Reading and assigning run on a thread (`computing`), so that heartbeats go on however long that takes. If the group
moves on meanwhile, the result is dropped. As in Kafka, a member makes one decision at a time: the next one waits for
the last one to end, even if its result is no longer wanted.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from coordinator.assignment import sticky
from coordinator.membership.classic.delayed_leader import PROTOCOL as DELAYED
from coordinator.membership.classic.delayed_leader import DelayedLeader, RoundInput
from coordinator.membership.classic.events import Synced
from coordinator.membership.classic.member import NO_GENERATION
from coordinator.protocol.consumer_protocol import decode_assignment, encode_assignment, subscription_of
from coordinator.protocol.delay_data import delay_of, encode_delay
from kernel.assignors.cooperative_faults import assign_by_every_claim, assign_by_highest_generation
from kernel.assignors.registry import COOPERATIVE, assignor
from kernel.clock import NS_PER_MS
from kernel.errors import Unavailable
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coordinator.assignment.subscription_arrays import Subscriptions
    from coordinator.client.link import ClassicContext
    from coordinator.membership.classic.effects import RunAssignor, SendSync
    from kernel.assignors.subscription import Assignor, MemberSubscription

log = logging.getLogger(__name__)

#: How often to look up a topic that the Metadata request may create: a later response describes it. If it may not be
#: created, one lookup is enough: the leader watches topics and rejoins when it appears.
LOOKUPS = 5


class GroupLeader:
    """One member's work as leader, with what it remembers from round to round."""

    def __init__(self, context: ClassicContext) -> None:
        self._context = context
        self._delayed = DelayedLeader()
        #: As leader: how many partitions each of the group's topics had at the last assignment, see `topic_changes`.
        self.assigned_sizes: Mapping[str, int] | None = None
        self._assigned_in = NO_GENERATION
        self._deciding = asyncio.Lock()

    def received(self, effect: SendSync, data: bytes) -> Synced:
        """Decode this member's assignment from the SyncGroup response. Raises `MalformedMetadata`."""
        if self._assigned_in != effect.identity.generation:
            self.assigned_sizes = None  # another member leads now, and watches the topics
        assignment = decode_assignment(data)
        delay_ms = delay_of(assignment.user_data) if effect.protocol == DELAYED else 0
        self._delayed = self._delayed.completed(effect.identity.generation)
        return Synced(effect.stamp, assignment.partitions, delay_ms)

    async def decide(self, effect: RunAssignor, generation: int, *, wanted: Callable[[], bool]) -> dict[str, bytes]:
        """Return assignment bytes for every member, including those that get nothing (the Java client needs them).

        Retries brokers while `wanted()`: the group waits for its leader that long, as in Kafka.
        """
        async with self._deciding:
            return await self._decide(effect, generation, wanted)

    async def _decide(self, effect: RunAssignor, generation: int, wanted: Callable[[], bool]) -> dict[str, bytes]:
        if not wanted():  # the group has moved on during the previous decision
            return {}
        faulty = self._faulty_assignor(effect.protocol)
        read = partial(_Group, effect, one_by_one=faulty is not None)
        group = await self._context.runtime.threads.compute(read, "read subscriptions")
        topics = group.topics
        await _describe(topics, self._context, wanted)
        if not wanted():
            return {}
        known = self._context.client.metadata.sizes()
        self.assigned_sizes = sizes = {topic: known.get(topic, 0) for topic in topics}
        self._assigned_in = generation
        if effect.skip_assignment:
            return {}  # the coordinator has kept the assignment; this leader only watches the topics
        if effect.protocol == DELAYED:
            return await self._decide_delayed(generation, sizes, group.subscriptions, wanted)
        if group.in_arrays is not None:
            return await self._decide_sticky(effect, generation, sizes, group.in_arrays)
        work = partial(_assigned, faulty or assignor(effect.protocol), sizes, group.subscriptions)
        return await self._context.runtime.threads.compute(work, "assign")

    def _faulty_assignor(self, strategy: str) -> Assignor | None:
        """The strategy with a fault that it had, if a setting asks for it."""
        config = self._context.config
        if strategy not in COOPERATIVE:
            return None
        if config.fault_kafka_12984:
            return assign_by_every_claim
        return assign_by_highest_generation if config.fault_kafka_14639 else None

    async def _decide_sticky(
        self, effect: RunAssignor, generation: int, sizes: Mapping[str, int], subscriptions: Subscriptions
    ) -> dict[str, bytes]:
        decide = partial(
            sticky.decide,
            effect.protocol,
            sizes,
            {member.member_id: member.metadata for member in effect.members},
            subscriptions,
            exact_up_to=self._context.config.sticky_exact_partitions_max,
        )
        decision = await self._context.runtime.threads.compute(decide, "assign")
        log.info(
            "generation %d assigned by %s (%s): %d partitions, %d members",
            generation,
            effect.protocol,
            decision.algorithm,
            decision.partitions,
            len(effect.members),
        )
        return decision.assignments

    async def _decide_delayed(
        self,
        generation: int,
        sizes: Mapping[str, int],
        subscriptions: Mapping[str, MemberSubscription],
        wanted: Callable[[], bool],
    ) -> dict[str, bytes]:
        round_input = RoundInput(
            now_ms=self._context.runtime.clock.monotonic_ns() // NS_PER_MS,
            max_delay_ms=self._context.config.scheduled_rebalance_max_delay_ms,
            generation=generation,
            sizes=sizes,
            subscriptions=subscriptions,
        )
        work = partial(_assigned_with_delay, self._delayed, round_input)
        leader, assignments = await self._context.runtime.threads.compute(work, "assign")
        if wanted():  # forget a decision that reaches no member
            self._delayed = leader
        return assignments


def _assigned(
    assign: Assignor, sizes: Mapping[str, int], subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, bytes]:
    return {member: encode_assignment(partitions) for member, partitions in assign(sizes, subscriptions).items()}


def _assigned_with_delay(leader: DelayedLeader, round_input: RoundInput) -> tuple[DelayedLeader, dict[str, bytes]]:
    after, decision = leader.decide(round_input)
    user_data = encode_delay(decision.delay_ms)
    return after, {
        member: encode_assignment(partitions, user_data=user_data)
        for member, partitions in decision.assignments.items()
    }


class _Group:
    """The members' subscriptions: as arrays for the strategies that use them, or one by one."""

    def __init__(self, effect: RunAssignor, *, one_by_one: bool) -> None:
        self.in_arrays: Subscriptions | None = None
        self.subscriptions: Mapping[str, MemberSubscription] = {}
        if effect.protocol in sticky.READERS and not one_by_one:
            read = sticky.READERS[effect.protocol]
            self.in_arrays = read({member.member_id: member.metadata for member in effect.members})
            self.topics = sorted(self.in_arrays.topics)
        else:
            self.subscriptions = {
                member.member_id: subscription_of(member.metadata, instance_id=member.instance_id)
                for member in effect.members
            }
            self.topics = sorted(
                {topic for subscription in self.subscriptions.values() for topic in subscription.topics}
            )


async def _describe(topics: Sequence[str], context: ClassicContext, wanted: Callable[[], bool]) -> None:
    """Fetch the metadata of every topic; a topic that is unknown after `LOOKUPS` does not exist."""
    client, create = context.client, context.config.allow_auto_create_topics
    lookups_left, asked = LOOKUPS if create else 1, False
    while lookups_left and not client.metadata.sizes().keys() >= set(topics) and wanted():
        if asked:
            await asyncio.sleep(context.config.retry_backoff_ms / 1000)
        asked = True
        try:
            await client.refresh(topics, create=create, timeout_ms=context.config.request_timeout_ms)
        except (Unavailable, ProtocolError):
            continue  # an unanswered lookup does not count
        lookups_left -= 1
