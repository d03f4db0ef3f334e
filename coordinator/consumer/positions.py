"""Look up where a member starts to read its new partitions: at the group's committed offsets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from coordinator.consumer.errors import unanswered
from coordinator.membership.classic.member import MemberState
from kernel.errors import Unavailable
from kernel.values import NO_OFFSET, TopicPartition
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from coordinator.consumer.context import ConsumerContext
    from coordinator.membership.classic.effects import Assign
    from coordinator.membership.classic.member import Member
    from kernel.client.connection import BrokerConnection


class Resuming(Protocol):
    """What the lookup needs of the runner whose member took over partitions."""

    member: Member

    @property
    def connection(self) -> BrokerConnection | None: ...

    async def wait_for_change(self, timeout_s: float) -> None: ...

    def refused(self, api: str, error: str, *, stamp: int, sent_ns: int, connection: BrokerConnection) -> None: ...


async def committed(
    stream: Resuming, effect: Assign, context: ConsumerContext
) -> dict[TopicPartition, int | None] | None:
    """Return {partition: offset, or None if none was committed}; None if the partitions are no longer ours.

    Retries until some coordinator answers.
    """
    backoff_s = context.config.retry_backoff_ms / 1000

    def ours() -> bool:
        return stream.member.stamp == effect.stamp and stream.member.state is MemberState.RESUMING

    while ours():
        connection, sent_ns = stream.connection, context.clock.monotonic_ns()
        if not effect.partitions:
            return {}
        if connection is None:
            await stream.wait_for_change(backoff_s)
            continue
        try:
            error, offsets = await context.calls.committed(
                connection, effect.partitions, timeout_ms=context.config.session_timeout_ms
            )
        except (Unavailable, ProtocolError) as failure:
            name = unanswered(failure)
            stream.refused("OffsetFetch", name, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            continue
        if not error:
            return {tp: None if at == NO_OFFSET else at for tp, at in offsets.items()} if ours() else None
        stream.refused("OffsetFetch", error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
        await asyncio.sleep(backoff_s)
    return None
