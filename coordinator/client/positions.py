"""Look up where a member starts to read its new partitions: at the group's committed offsets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from coordinator.client.errors import unanswered
from kernel.errors import Unavailable
from kernel.values import NO_OFFSET, TopicPartition
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.client.commits import Committing
    from coordinator.client.context import AnyContext
    from kernel.client.connection import BrokerConnection

Offsets = dict[TopicPartition, int]


class Lookup(Protocol):
    """A design's request for committed offsets: (error, {partition: offset or NO_OFFSET})."""

    async def __call__(
        self, connection: BrokerConnection, partitions: frozenset[TopicPartition], *, timeout_ms: int
    ) -> tuple[str, Offsets]: ...


async def committed(
    stream: Committing,
    wanted: Callable[[], frozenset[TopicPartition] | None],
    context: AnyContext,
    lookup: Lookup,
) -> dict[TopicPartition, int | None] | None:
    """Return {partition: offset, or None if none was committed}; None if the partitions are no longer ours.

    `wanted` returns the partitions that are still to be looked up, or None. Retries until some coordinator answers.
    """
    backoff_s = context.config.retry_backoff_ms / 1000
    while (partitions := wanted()) is not None:
        stamp, connection, sent_ns = stream.member.stamp, stream.connection, context.runtime.clock.monotonic_ns()
        if not partitions:
            return {}
        if connection is None:
            await stream.wait_for_change(backoff_s)
            continue
        try:
            error, offsets = await lookup(connection, partitions, timeout_ms=context.config.patience_ms)
        except (Unavailable, ProtocolError) as failure:
            name = unanswered(failure)
            stream.refused("OffsetFetch", name, stamp=stamp, sent_ns=sent_ns, connection=connection)
            continue
        if not error:
            ours = wanted()
            return None if ours is None else {tp: _known(offsets[tp]) for tp in sorted(partitions & ours)}
        stream.refused("OffsetFetch", error, stamp=stamp, sent_ns=sent_ns, connection=connection)
        await asyncio.sleep(backoff_s)
    return None


def _known(offset: int) -> int | None:
    return None if offset == NO_OFFSET else offset
