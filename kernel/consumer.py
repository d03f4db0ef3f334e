"""The one interface of all designs: `GroupConsumer`, and the listener it calls.

Both backends implement it, neither knows the other, and one contract test suite runs over every design.

What differs between the generations is declared, not hidden:

- *When callbacks come.* `zookeeper` rebalances in the background, so `RebalanceListener` is called between
  polls; `eager` rebalances inside `getmany`. A listener's methods are called on the consumer's event loop,
  one at a time.
- *What `lost` means.* It is called only where that generation of the protocol knew that partitions were lost
  without a chance to commit (`eager`: the member id or generation was taken away). The 0.8 consumer never knew.
- *Streams.* k streams are k threads of one member in `zookeeper` (KafkaStream) and k group members living in
  one process under the coordinator designs. The unit of ownership is (process, member, stream).
- *Positions.* A partition's position advances when a record is handed out, not when it was processed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel.values import Batch, CommitOutcome, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an implementation can do; a caller asks before it relies on it."""

    streams: bool  #: several streams share one membership (threads of one member)
    resubscribe: bool  #: subscribe() may be called again, and unsubscribe()
    patterns: bool  #: subscribe_pattern()
    commit_single_partitions: bool  #: commit(offsets) of chosen partitions; otherwise all or nothing
    rebalances_outside_poll: bool  #: partitions may come and go while nobody polls
    knows_loss: bool  #: on_lost is ever called


class RebalanceListener(Protocol):
    """What a caller may hook into. `stream` is 0 for a member with one stream."""

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """What is new after a rebalance: everything where it was all given back before, and possibly nothing."""

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """The partitions still are this member's: a commit made here is accepted."""

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """The partitions are somebody else's already: a commit made here is refused or harmful."""


class SilentListener:
    """A listener that does nothing."""

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None: ...

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None: ...

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None: ...


class GroupConsumer(Protocol):
    """A consumer in a group. Life: start, subscribe, getmany and commit as often as wanted, close."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def member_ids(self) -> tuple[str, ...]:
        """The ids under which the group knows this consumer; empty before it has joined."""

    async def start(self) -> None:
        """Connect. Raises `Unavailable` when nothing answers within the connection timeout."""

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """Join the group for `topics` ({topic: number of streams >= 1}).

        `zookeeper` performs its first rebalance here and may raise `RebalanceFailed` (the consumer stays
        registered, as the original did); the coordinator designs join at the first `getmany`. Called again, what it
        names takes the place of what was subscribed to, by name or by a pattern, and so does the listener.
        Raises `StreamsExist` when called twice without the `resubscribe` capability, and `UserError` for a name that
        no topic can have or a topic without a stream.
        """

    async def subscribe_pattern(
        self, pattern: str, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """As `subscribe`, for all topics whose whole name matches a regular expression of Java, now and later.

        Each stream takes part in all of them. Kafka's own topics are left out (exclude.internal.topics). It is fine
        when nothing matches yet. Raises `UserError` for what is no expression, and without the `patterns` capability.
        """

    async def unsubscribe(self) -> None:
        """Give everything back and leave the group; `subscribe` may come again.

        The classic designs commit nothing by themselves here, as Kafka's consumer: what was handed out since the last
        commit comes again. `server` commits, as at each of its stops. Nothing happens without a
        subscription. Raises `UserError` without the `resubscribe` capability, and what the listener raised.
        """

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        """Wait up to `timeout_ms` for records; an empty sequence when there are none."""

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> CommitOutcome:
        """Commit positions (default: everything handed out so far). An offset is the *next* to read."""

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        """What each stream owns by this member's own belief."""

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset to be handed out, or None when the partition is not ours or not resolved yet."""

    async def close(self) -> None:
        """Leave the group in the design's own order of shutdown. Idempotent; also ends a failed start."""
