"""What a group's leader does between Join and Sync: read the others' subscriptions, look up topics, assign."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from coordinator.protocol import MalformedMetadata, decode_subscription, encode_assignment
from kernel.assignors.registry import assignor
from kernel.assignors.subscription import MemberSubscription
from kernel.errors import Unavailable
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinator.membership.effects import RunAssignor
    from coordinator.membership.events import GroupMember
    from coordinator.surroundings import Surroundings

#: A topic that was just created by a Metadata request is described by one of the next.
LOOKUPS = 5


async def decide(effect: RunAssignor, around: Surroundings, *, wanted: Callable[[], bool]) -> dict[str, bytes]:
    """Assignment bytes for every member of the list, also for those that get nothing (the Java client needs them).

    Waits for brokers as long as `wanted()`: until then the group waits for us, which is what Kafka's leader does.
    """
    subscriptions = {member.member_id: subscription_of(member) for member in effect.members}
    topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
    await _describe(topics, around, wanted)
    sizes = {topic: len(around.client.metadata.partitions_of(topic)) for topic in topics}
    assignment = assignor(effect.protocol)(sizes, subscriptions)
    return {member: encode_assignment(partitions) for member, partitions in assignment.items()}


def subscription_of(member: GroupMember) -> MemberSubscription:
    """What a member asks for; one that sent nonsense asks for nothing, and the others get on with their work."""
    try:
        return decode_subscription(member.metadata, instance_id=member.instance_id)
    except MalformedMetadata:
        return MemberSubscription(topics=(), instance_id=member.instance_id)


async def _describe(topics: Sequence[str], around: Surroundings, wanted: Callable[[], bool]) -> None:
    """Metadata of every topic; a topic that nobody knows after a few looks does not exist."""
    looks = 0
    client = around.client
    while looks < LOOKUPS and any(not client.metadata.partitions_of(topic) for topic in topics) and wanted():
        if looks:
            await asyncio.sleep(around.config.retry_backoff_ms / 1000)
        looks += 1
        try:
            await client.refresh(topics, create=True, timeout_ms=around.config.request_timeout_ms)
        except (Unavailable, ProtocolError):
            looks = max(looks - 1, 1)
