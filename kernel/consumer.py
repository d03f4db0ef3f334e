"""The interface of all designs: `GroupConsumer`, and the `RebalanceListener` that it calls.

Both backends implement it without knowing each other, and one contract test suite covers all designs.

The designs differ in these respects:

- *When the listener is called.* `zookeeper` rebalances in the background, so it calls the listener between polls;
  `eager` rebalances within `getmany`. Calls are on the consumer's event loop, one at a time.
- *When `on_lost` is called.* Only in designs whose protocol reports that partitions were lost without a chance to
  commit (`eager`: when the member id or generation is invalid). The 0.8 consumer never knew.
- *Streams.* In `zookeeper`, k streams are k threads of one member (KafkaStream). In the coordinator designs they are k
  group members in one process. The unit of ownership is (process, member, stream).
- *Positions.* The position of a partition advances when a record is returned, not when it is processed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kernel.values import Batch, CommitOutcome, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The optional features of an implementation; check them before relying on one."""

    streams: bool  #: several streams share one membership (threads of one member)
    resubscribe: bool  #: subscribe() may be called again, and unsubscribe()
    patterns: bool  #: subscribe_pattern()
    commit_single_partitions: bool  #: commit(offsets) of chosen partitions; otherwise all or nothing
    seek: bool  #: seek()
    pause: bool  #: pause() and resume()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlace:
    """What a stream knows of its place in the group; '' or None is unknown, or does not exist in the design."""

    member_id: str = ""
    generation: int | None = None
    leader: str = ""  #: the id of the member that assigns partitions
    coordinator: str = ""  #: HOST:PORT (id N)


class RebalanceListener(Protocol):
    """The callbacks of a rebalance. `stream` is 0 for a member with one stream."""

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """The new partitions after a rebalance, possibly none; all of them if the member gave up everything before."""

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """The partitions that are being revoked. The member still owns them: a commit made here is accepted."""

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        """The lost partitions, which others may own already: a commit made here is refused or harmful."""


class SilentListener:
    """A listener that does nothing."""

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None: ...

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None: ...

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None: ...


class GroupConsumer(Protocol):
    """A consumer in a group. Call start, subscribe, then getmany and commit repeatedly, then close."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def member_ids(self) -> tuple[str, ...]:
        """The ids of this consumer in the group; empty before it joins."""

    def places(self) -> Mapping[int, MemberPlace]:
        """What each stream knows of its place in the group."""

    async def start(self) -> None:
        """Connect. Raises `Unavailable` if no server answers within the connection timeout."""

    async def subscribe(self, topics: Mapping[str, int], listener: RebalanceListener | None = None) -> None:
        """Join the group for `topics` ({topic: number of streams >= 1}).

        `zookeeper` performs its first rebalance here and may raise `RebalanceFailed` (the consumer stays registered,
        as the original did); the coordinator designs join in the first `getmany`. Another call replaces the previous
        subscription, by name or pattern, and the listener. Raises `StreamsExist` if called twice without the
        `resubscribe` capability, and `UserError` for an invalid topic name or a topic without streams.
        """

    async def subscribe_pattern(
        self, pattern: str, streams: int = 1, listener: RebalanceListener | None = None
    ) -> None:
        """Join the group for all present and future topics whose full name matches a Java regular expression.

        Each stream consumes all of them. Internal topics are excluded (exclude.internal.topics). The pattern may match
        no topic yet. Raises `UserError` for an invalid expression, and without the `patterns` capability.
        """

    async def unsubscribe(self) -> None:
        """Give up all partitions and leave the group; `subscribe` may be called again.

        Like Kafka's consumer, the classic designs do not commit here: records returned since the last commit will be
        delivered again. `server` commits, as at each of its stops. Without a subscription nothing happens. Raises
        `UserError` without the `resubscribe` capability, and whatever the listener raised.
        """

    async def getmany(self, *, timeout_ms: int, max_records: int = 500) -> Sequence[Batch]:
        """Wait up to `timeout_ms` for records; returns an empty sequence if there are none."""

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> CommitOutcome:
        """Commit offsets (default: the current positions). An offset is that of the *next* record to read."""

    def assignment(self) -> Mapping[int, frozenset[TopicPartition]]:
        """The partitions of each stream, as this member believes."""

    def position(self, partition: TopicPartition) -> int | None:
        """The next offset to be returned, or None if the partition is not owned or has no position yet."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Return records from this offset on, which is not committed by that.

        In `on_assigned` it replaces the group's committed offset: for those who save offsets elsewhere. Raises
        `UserError` if the partition is not this member's, and without the `seek` capability.
        """

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Return no records of these partitions until `resume`. They stay owned, and positions stay as they are.

        A pause belongs to the consumer that asked for it, and ends when a rebalance takes the partition from it: for
        all partitions in designs that stop everything (also if the same member gets them back), for those that move in
        the incremental ones, as in Kafka's consumer. Raises `UserError`, and pauses nothing, if a partition is not this
        member's, and without the `pause` capability.
        """

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Return records of these partitions again; no effect on others. Raises as `pause`."""

    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are paused now."""

    async def close(self) -> None:
        """Leave the group in the design's own shutdown order. Idempotent; also cleans up after a failed start."""
