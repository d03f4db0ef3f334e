"""The consumer of KIP-848.

`coordinator.client.subscribing` has what it shares with the classic designs. Each stream is a `Kip848Stream`, a
separate group member. The coordinator assigns and tells each member by itself; a member takes its assignment over
inside `getmany`: it commits, revokes what it has to give up, then takes what is new, while it delivers what it keeps.

Positions are committed in a poll when auto-commit is due, before each reconciliation, and on close: always after the
application has polled again, so nothing is committed that it may not have processed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.client.consumer.calls import Kip848Calls
from coordinator.client.consumer.settings import Kip848ConsumerConfig
from coordinator.client.consumer.stream import Kip848Stream
from coordinator.client.subscribing import SubscribingConsumer
from coordinator.membership.subscription import ByRegex, by_regex
from kernel.runtime import REAL, Runtime

if TYPE_CHECKING:
    from coordinator.membership.subscription import Subscription, TopicsSeen
    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer


class Kip848Consumer(SubscribingConsumer[Kip848Stream, Kip848ConsumerConfig]):
    """A consumer with one or more members of one group. `process` names it in messages."""

    def __init__(self, config: Kip848ConsumerConfig, *, tracer: Tracer, process: str, runtime: Runtime = REAL) -> None:
        super().__init__(config, tracer=tracer, process=process, runtime=runtime)
        calls = Kip848Calls(group=config.group_id, request_timeout_ms=config.request_timeout_ms)
        self._context = self._context_of(calls)

    @property
    def member_ids(self) -> tuple[str, ...]:
        return tuple(stream.member.member_id for stream in self._streams if stream.member.identity is not None)

    async def subscribe_regex(self, regex: str, streams: int = 1, listener: RebalanceListener | None = None) -> None:
        """Subscribe to all present and future topics that match at the coordinator, as subscribe(SubscriptionPattern).

        The syntax is that of RE2, and the whole name has to match. A poll raises `GroupRefused` for an invalid one.
        `subscribe_pattern` is subscribe(Pattern): there the member matches, and sends the topics that do.
        """
        await self._subscribe(by_regex(regex, streams), listener)

    def _spread(self, subscription: Subscription, seen: TopicsSeen) -> list[Kip848Stream]:
        surplus = super()._spread(subscription, seen)
        if isinstance(subscription, ByRegex):
            for stream in self._streams:
                stream.subscribe_regex(subscription.regex)
        return surplus

    def _begin(self, number: int, topics: tuple[str, ...]) -> None:
        self._streams.append(Kip848Stream(number, topics, self._context))
