"""The consumer of the classic designs; its settings decide which one (`eager`, `static`, `cooperative`, `delayed`).

`polling` has what it shares with the `server` design, `subscribing` what it also shares with KIP-848's consumer. Each
stream is a `GroupStream`, a separate group member. Rebalances begin and end inside `getmany`, as in Kafka's consumer: a
member that has to rejoin keeps its partitions until the next poll, then commits, revokes all of them (a cooperative one
only what it must), joins, and takes over its assignment.

Positions are committed in a poll when auto-commit is due, before a rebalance and on close: always after the application
has polled again, so nothing is committed that it may not have processed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.client.calls import GroupCalls
from coordinator.client.classic.stream import GroupStream
from coordinator.client.settings import CoordinatorConsumerConfig
from coordinator.client.subscribing import SubscribingConsumer
from kernel.runtime import REAL, Runtime

if TYPE_CHECKING:
    from kernel.trace.writer import Tracer


class CoordinatorConsumer(SubscribingConsumer[GroupStream, CoordinatorConsumerConfig]):
    """A consumer with one or more members of one group. `process` names it in messages."""

    def __init__(
        self, config: CoordinatorConsumerConfig, *, tracer: Tracer, process: str, runtime: Runtime = REAL
    ) -> None:
        super().__init__(config, tracer=tracer, process=process, runtime=runtime)
        calls = GroupCalls(
            group=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            request_timeout_ms=config.request_timeout_ms,
        )
        self._context = self._context_of(calls)

    @property
    def member_ids(self) -> tuple[str, ...]:
        return tuple(stream.member.member_id for stream in self._streams if stream.member.member_id)

    def _begin(self, number: int, topics: tuple[str, ...]) -> None:
        self._streams.append(GroupStream(number, topics, self._context))
