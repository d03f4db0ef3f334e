"""Prefetches records: one Fetch at a time to each leading broker, for all streams of the consumer together.

A partition is fetched while fewer than `PREFETCH_RECORDS` of its records are buffered, so the buffer is bounded by that
and by max.partition.fetch.bytes. Records that were requested before a rebalance and arrive after it are dropped with
their queue. A partition's position is the next offset to return, not the next to fetch.

Errors that a new leader fixes, and brokers that do not respond, cause a metadata refresh every retry.backoff.ms; an
offset out of range is reset by auto.offset.reset; any other error is raised by the next `take`.

A batch that cannot be read is handled as in Kafka's consumer: records before it are returned, then `take` raises
repeatedly (every retry.backoff.ms, while other partitions are read), until an offset after it is committed. It is never
skipped silently.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.client.record_runs import runs
from coordinator.client.setting_table import READ_COMMITTED
from kernel.client.reads import EARLIEST, LATEST, fetch, list_offset
from kernel.errors import RebalanceLabError, Unavailable
from kernel.tasks import cancel_and_wait
from kernel.values import Batch, Record, TopicPartition, partitions_field
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from coordinator.client.configuration import PollingConfig
    from kernel.client.client import ClusterClient
    from kernel.client.connection import BrokerConnection
    from kernel.client.reads import FetchedPartition
    from kernel.trace.writer import Tracer

PREFETCH_RECORDS = 1000

_TIMESTAMPS = {"earliest": EARLIEST, "latest": LATEST}

#: Look up the leader again; all of Kafka's retriable errors that Fetch and ListOffsets can return.
_CURED_BY_METADATA = frozenset(
    {
        "NOT_LEADER_OR_FOLLOWER",
        "LEADER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "INCONSISTENT_TOPIC_ID",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "KAFKA_STORAGE_ERROR",
        "BROKER_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
    }
)


class FetchFailed(RebalanceLabError):
    """A partition cannot be read, and a retry does not help."""


@dataclass(slots=True, eq=False)
class _Queue:
    """The buffer of one partition of one stream; a new assignment creates a new one."""

    stream: int
    member: str
    tp: TopicPartition
    position: int | None  #: None until it is resolved
    next_fetch: int | None  #: None asks for a reset
    records: deque[Record] = field(default_factory=deque)
    stopped: bool = False  #: being revoked, or without a usable offset
    stale: bool = False  #: its leader must be looked up before the next fetch
    sought: bool = False  #: its leader has been looked up
    corrupt: str = ""  #: why the batch after `records` cannot be read
    refused: str = ""  #: why the last fetch brought nothing


def _chosen(
    of_each: Mapping[tuple[int, TopicPartition], object], stream: int, partitions: Collection[TopicPartition] | None
) -> list[tuple[int, TopicPartition]]:
    """The keys of these partitions of a stream, or of all."""
    return [key for key in of_each if key[0] == stream and (partitions is None or key[1] in partitions)]


class Fetcher:
    """Fetches all partitions of one consumer; calls `changed` when `take` may have something to return."""

    def __init__(
        self,
        client: ClusterClient,
        config: PollingConfig,
        tracer: Tracer,
        changed: Callable[[], None],
    ) -> None:
        self._client = client
        self._config = config
        self._tracer = tracer
        self._changed = changed
        self._queues: dict[tuple[int, TopicPartition], _Queue] = {}
        self._sought: dict[tuple[int, TopicPartition], int] = {}  # where partitions begin that have not begun yet
        self._paused: dict[tuple[int, TopicPartition], str] = {}  # by the application, and the member that it asked
        self._fetching: dict[int, asyncio.Task[None]] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._failure: RebalanceLabError | None = None
        self._closed = False

    # -- which partitions ---------------------------------------------------------------------------------------------

    def begin(self, stream: int, member: str, positions: Mapping[TopicPartition, int | None]) -> None:
        """Start to fetch these partitions for a stream; None asks for auto.offset.reset."""
        for tp, committed in sorted(positions.items()):
            offset = self._sought.pop((stream, tp), committed)
            queue = _Queue(stream, member, tp, offset, offset)
            self._queues[stream, tp] = queue
            if offset is not None:
                self._emit(queue, "position_started", offset=offset)
        self._dispatch()

    def seek(self, stream: int, tp: TopicPartition, offset: int) -> None:
        """Go on from this offset; a partition that has not begun yet begins there."""
        queue = self._queues.get((stream, tp))
        if queue is None:
            self._sought[stream, tp] = offset
        elif not queue.stopped:
            self.begin(stream, queue.member, {tp: offset})  # a fetch under way fills the old queue

    def stop(self, stream: int, partitions: Collection[TopicPartition] | None = None) -> None:
        """Return nothing more from these partitions of a stream, or from all; positions stay known."""
        for key in _chosen(self._queues, stream, partitions):
            self._queues[key].stopped = True

    def drop(self, stream: int, partitions: Collection[TopicPartition] | None = None) -> None:
        """Forget these partitions of a stream, or all; the others go on without a gap."""
        for of_each in (self._queues, self._sought):
            for key in _chosen(of_each, stream, partitions):
                del of_each[key]
        self._end_pauses(stream, partitions, "rebalance")

    def pause(self, stream: int, member: str, partitions: Collection[TopicPartition]) -> None:
        """Return nothing from these partitions of a stream until `resume` or `drop`, also if they begin meanwhile."""
        if fresh := {tp for tp in partitions if (stream, tp) not in self._paused}:
            self._paused |= {(stream, tp): member for tp in fresh}
            self._tracer.emit("partitions_paused", member=member, stream=stream, partitions=partitions_field(fresh))

    def resume(self, stream: int, partitions: Collection[TopicPartition]) -> None:
        """Return records of these partitions again; what was fetched before is returned first."""
        self._end_pauses(stream, partitions, "asked")
        self._dispatch()
        self._changed()

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(tp for _, tp in self._paused)

    def _end_pauses(self, stream: int, partitions: Collection[TopicPartition] | None, cause: str) -> None:
        ended = {tp: self._paused.pop((stream, tp)) for _, tp in _chosen(self._paused, stream, partitions)}
        if ended:
            self._tracer.emit(
                "partitions_resumed",
                member=next(iter(ended.values())),  # a stream that gets another member id loses everything
                stream=stream,
                cause=cause,
                partitions=partitions_field(ended),
            )

    def positions(self, stream: int) -> dict[TopicPartition, int]:
        """Return the offsets for a commit of everything returned so far, without unresolved partitions."""
        return {queue.tp: queue.position for queue in self._of(stream) if queue.position is not None}

    def position(self, tp: TopicPartition) -> int | None:
        return next((queue.position for queue in self._queues.values() if queue.tp == tp), None)

    def _of(self, stream: int) -> list[_Queue]:
        return [queue for queue in self._queues.values() if queue.stream == stream]

    # -- returning records --------------------------------------------------------------------------------------------

    def take(self, max_records: int) -> list[Batch]:
        """Return up to `max_records` buffered records. Raises `FetchFailed` (once) when a partition cannot be read."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        batches: list[Batch] = []
        for key, queue in list(self._queues.items()):
            if max_records <= 0:
                break
            if queue.stopped or key in self._paused or not (queue.records or queue.corrupt):
                continue
            if not queue.records:
                if batches:
                    break  # raised by the next call
                self._queues[key] = self._queues.pop(key)  # the next call takes from the others first
                message, queue.corrupt = queue.corrupt, ""
                queue.stale = True  # retried after the backoff: it may have been repaired, or skipped
                self._refresh_soon()
                raise FetchFailed(message)
            taken = tuple(queue.records.popleft() for _ in range(min(max_records, len(queue.records))))
            max_records -= len(taken)
            queue.position = queue.records[0].offset if queue.records else queue.next_fetch
            if queue.position is None:  # waiting for a reset, which continues from here
                queue.position = taken[-1].offset + 1
            batches.append(Batch(queue.stream, queue.tp, taken))
            self._emit_delivered(queue, taken)
            self._queues[key] = self._queues.pop(key)  # served last next time
        if batches:
            self._dispatch()
        return batches

    def _emit_delivered(self, queue: _Queue, records: tuple[Record, ...]) -> None:
        for first, last, serial_first, serial_last in runs(records):
            serials = {"serial_first": serial_first, "serial_last": serial_last}
            self._emit(queue, "records_delivered", first=first, last=last, **serials)

    def _emit(self, queue: _Queue, kind: str, **fields: str | int | None) -> None:
        place = queue.tp
        self._tracer.emit(
            kind,
            member=queue.member,
            stream=queue.stream,
            cause="",
            topic=place.topic,
            partition=place.partition,
            **fields,
        )

    # -- fetching -----------------------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Send a Fetch to every idle leader of a partition that needs records."""
        if self._closed:
            return
        wanted: dict[int, dict[TopicPartition, _Queue]] = {}
        for queue in self._queues.values():
            if queue.stopped or queue.corrupt or not (self._wants_records(queue) or queue.next_fetch is None):
                continue
            node = None if queue.stale else self._client.leader_of(queue.tp)
            if node is None:
                self._set_stale(queue, "LEADER_NOT_AVAILABLE" if queue.sought and not queue.stale else queue.refused)
                self._refresh_soon()
            elif node not in self._fetching:
                wanted.setdefault(node, {}).setdefault(queue.tp, queue)
        for node, queues in wanted.items():
            task = asyncio.create_task(self._ask(node, queues), name=f"fetch from broker {node}")
            self._fetching[node] = task
            task.add_done_callback(functools.partial(self._asked, node))

    def _asked(self, node: int, task: asyncio.Task[None]) -> None:
        del self._fetching[node]
        if not task.cancelled():
            task.result()  # `_ask` handles all expected errors, so this one is a bug
        self._dispatch()

    def _wants_records(self, queue: _Queue) -> bool:
        """A paused partition wants none; but its position is reset, as in Kafka, lest `latest` skip more."""
        return len(queue.records) < PREFETCH_RECORDS and (queue.stream, queue.tp) not in self._paused

    async def _ask(self, node: int, queues: dict[TopicPartition, _Queue]) -> None:
        config = self._config
        try:
            connection = await self._client.connection(node)
            await self._reset(connection, [queue for queue in queues.values() if queue.next_fetch is None])
            offsets = {
                tp: queue.next_fetch
                for tp, queue in queues.items()
                if queue.next_fetch is not None and self._wants_records(queue)
            }
            if not offsets:
                return
            answer = await fetch(
                connection,
                offsets,
                max_wait_ms=config.fetch_max_wait_ms,
                min_bytes=config.fetch_min_bytes,
                max_bytes=config.fetch_max_bytes,
                partition_max_bytes=config.max_partition_fetch_bytes,
                timeout_ms=config.request_timeout_ms,
                committed=config.isolation_level == READ_COMMITTED,
            )
        except (Unavailable, ProtocolError) as error:
            if is_malformed := isinstance(error, ProtocolError):
                self._fail(f"broker {node} sent a malformed response to Fetch: {error}")
            for queue in queues.values():
                self._set_stale(queue, "CORRUPT_MESSAGE" if is_malformed else "NETWORK_EXCEPTION")
            return
        for tp, fetched in answer.items():
            self._store(queues[tp], fetched)

    def _store(self, queue: _Queue, fetched: FetchedPartition) -> None:
        if self._queues.get((queue.stream, queue.tp)) is not queue:
            return
        if fetched.error == "OFFSET_OUT_OF_RANGE":
            queue.next_fetch = None
            return
        if fetched.error:
            self._refused(queue, fetched.error)
            return
        queue.refused = ""
        queue.records.extend(fetched.records)
        queue.next_fetch = fetched.next_offset
        if not queue.records:
            queue.position = fetched.next_offset
        if fetched.corrupt is not None:
            queue.corrupt = (
                f"{fetched.corrupt}; all records before it were delivered; to skip it, commit a later offset"
            )
        if fetched.records or queue.corrupt:
            self._changed()

    async def _reset(self, connection: BrokerConnection, queues: Iterable[_Queue]) -> None:
        wanted = {queue.tp: queue for queue in queues}
        if not wanted:
            return
        policy = self._config.auto_offset_reset
        if policy == "none":
            self._fail(f"no usable offset for {', '.join(map(str, wanted))}, and auto.offset.reset is none")
            for queue in wanted.values():
                queue.stopped = True
            return
        answer = await list_offset(
            connection,
            dict.fromkeys(wanted, _TIMESTAMPS[policy]),
            timeout_ms=self._config.request_timeout_ms,
            committed=self._config.isolation_level == READ_COMMITTED,
        )
        for tp, (error, offset) in answer.items():
            queue = wanted[tp]
            if self._queues.get((queue.stream, tp)) is not queue:
                continue
            if error:
                self._refused(queue, error)
                continue
            queue.next_fetch = offset
            if not queue.records:
                queue.position = offset
            self._emit(queue, "position_reset", offset=offset, reset=policy)
            self._emit(queue, "position_started", offset=offset)

    def _set_stale(self, queue: _Queue, error: str) -> None:
        """Its leader must be looked up again; `error` is Kafka's name for why."""
        queue.stale = True
        if error != queue.refused:
            queue.refused = error
            self._emit(queue, "fetch_refused", error=error)

    def _refused(self, queue: _Queue, error: str) -> None:
        self._set_stale(queue, error)
        if error not in _CURED_BY_METADATA:
            self._fail(f"{queue.tp} cannot be read: {error}")

    def _fail(self, message: str) -> None:
        self._failure = FetchFailed(message)
        self._changed()

    # -- metadata -----------------------------------------------------------------------------------------------------

    def _refresh_soon(self) -> None:
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh(), name="refresh metadata")
            self._refreshing.add_done_callback(self._refreshed)

    async def _refresh(self) -> None:
        """Refresh after the backoff: by default at most ten times a second for a partition without a leader."""
        await asyncio.sleep(self._config.retry_backoff_ms / 1000)
        topics = {queue.tp.topic for queue in self._queues.values()}
        if not topics:
            return
        try:
            await self._client.refresh(sorted(topics), timeout_ms=self._config.request_timeout_ms)
        except (Unavailable, ProtocolError):
            return  # retried as long as a partition is stale

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled():
            task.result()
        for queue in self._queues.values():
            queue.stale, queue.sought = False, True
        self._dispatch()

    async def close(self) -> None:
        """Stop fetching. Idempotent."""
        self._closed = True
        tasks = [*self._fetching.values(), *([self._refreshing] if self._refreshing else [])]
        await cancel_and_wait(*tasks)
        self._queues.clear()
