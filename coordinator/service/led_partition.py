"""One partition of `__consumer_offsets` that this broker leads: the machine, its log, and its waiting requests.

Effects are performed in the machine's order. Writes reach the log in the order in which they were handed out; those
that arrive during a write, or shortly after it, are stored together next. The machine learns of each when it is
durable, and only then answers. Answers are sent in turns (`coordinator.service.reply_queue`). A fenced write means that
another broker leads: all waiting requests get NOT_COORDINATOR at once, before the cluster's view changes.

An exception from the machine, or while its effects are performed or records are encoded, is a bug (`internal_errors`):
the machine's state can no longer be trusted, and the partition stops.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from coordinator.groups.effects import NOTHING, Moment, SetTimer, Write
from coordinator.groups.errors import Error
from coordinator.service.loading import in_pieces
from coordinator.service.log_lines import line_of
from coordinator.service.record_codec import decode_all, encode, encode_ahead
from coordinator.service.reply_queue import ReplyQueue
from coordinator.service.timers import Timers
from kernel.broker.server.handlers import failed_response
from kernel.broker.storage.errors import Fenced, LogStopped, StorageFailed
from kernel.broker.storage.internal_errors import log_stopped
from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from coordinator.groups.consumer.requests import ConsumerHeartbeat
    from coordinator.groups.effects import (
        Decide,
        Effects,
        Marker,
        Reply,
        Search,
        TimerKey,
        TraceEvent,
        Turn,
        WatchEffect,
    )
    from coordinator.groups.machine import Machine
    from coordinator.groups.records import StoredChange
    from coordinator.groups.requests import Request
    from coordinator.groups.server.requests import Await, OwnedCommit
    from coordinator.service.loading import Loading
    from kernel.broker.server.handlers import DeferredResponse
    from kernel.broker.services import BrokerServices
    from kernel.broker.storage.logs import KeyValueLog

    AnyRequest = Request | Await | OwnedCommit | ConsumerHeartbeat

#: The name of the logger of groups.
GROUP_LOG = __name__
log = logging.getLogger(GROUP_LOG)

#: Records applied between clock checks.
CHANGES_PER_PIECE = 10
#: Writes encoded, or reported after storing, between clock checks.
WRITES_PER_PIECE = 16
#: The most writes stored in one transaction.
WRITES_PER_BATCH = 500
#: The longest that a write waits for others, as in Kafka (default of 4.1.1's group.coordinator.append.linger.ms).
LINGER_S = 0.005
#: What a Kafka batch, and each record in it, takes besides keys and values (a record's numbers are varints).
BATCH_OVERHEAD_BYTES, RECORD_OVERHEAD_BYTES = 61, 10

Response = TypeVar("Response")
#: Tokens are unique in the process, so that partitions never confuse them.
_TOKENS = itertools.count(1)


def next_token() -> int:
    """A token for the next request."""
    return next(_TOKENS)


class LedPartition:
    """From taking over the log until leadership is given up."""

    def __init__(
        self,
        machine: Machine,
        log_: KeyValueLog,
        services: BrokerServices,
        *,
        deliver: Callable[[Marker], Awaitable[None]],
        watch: Callable[[WatchEffect, LedPartition], None],
        decide: Callable[[Decide, LedPartition], None],
        search: Callable[[Search, LedPartition], None],
    ) -> None:
        """`deliver` writes a marker to all its partitions before it returns.

        `watch` takes the machine's requests to ZooKeeper, `decide` those to its strategy, `search` those for topics;
        results arrive by `notify`.
        """
        self._batch_bytes_max = services.config.number("message.max.bytes")
        self.machine = machine
        self.closed = False
        self._log = log_
        self._clock = services.runtime.clock
        self._stopwatch = services.runtime.stopwatch
        self._moment = Moment(-1, 0)
        self._tracer = services.tracer
        self._node_id = services.node_id
        self._timers = Timers(self._clock, self._timer_fired)
        self._reply_queue = ReplyQueue(services.turns)
        self._writes: deque[Write] = deque()
        self._writer: asyncio.Task[None] | None = None
        self._deliver = deliver
        self._watch = watch
        self._decide = decide
        self._search = search
        self._deliveries: set[asyncio.Task[None]] = set()
        self._stop_log = services.storage.stop_log
        self._failure: LogStopped | None = None
        self._is_failing = False  #: its last write did not fit on the disk

    def stop(self, bug: BaseException) -> None:
        """After a bug: answer waiting requests and have the partition given up."""
        failure = log_stopped(f"the coordinator of {self._log.topic_partition}", bug)
        if self._failure is None:
            self._failure = failure
            self.unload()
            self._stop_log(self._log.topic_partition, failure)

    async def load(self, loading: Loading) -> None:
        """Take over what the log holds. Raises Fenced, StorageFailed, MalformedRecord, LogStopped.

        It is read on another thread, but decoded and applied here, in pieces between which other work runs. Decoding on
        a thread would slow everything down: after each system call the loop would wait for the interpreter's lock, up
        to sys.getswitchinterval().
        """
        pages = await self._log.pages()
        await loading.run(itertools.chain(self._apply(pages), self._wake()))
        # Only loaded partitions were notified of topics that changed meanwhile.
        self.notify(lambda machine, turn: machine.server.topics_changed(turn))
        if self._failure is not None:
            raise self._failure

    def _apply(self, pages: Iterable[Iterable[tuple[bytes, bytes]]]) -> Iterator[int]:
        apply = self.machine.apply
        changes = decode_all(itertools.chain.from_iterable(pages))
        while piece := list(itertools.islice(changes, CHANGES_PER_PIECE)):
            for change in piece:
                apply(change)
            yield len(piece)

    def _wake(self) -> Iterator[int]:
        for event in self.machine.wake():
            self._perform(self.machine.step(event, self._now()))
            yield 0

    def ask(
        self,
        request: Callable[[int], AnyRequest],
        translate: Callable[[Any], Response],
    ) -> Response | DeferredResponse[Response]:
        """As `put`, for a request made from a new token."""
        token = next_token()
        return self.put(token, request(token), translate)

    def put(
        self,
        token: int,
        request: AnyRequest,
        translate: Callable[[Any], Response],
    ) -> Response | DeferredResponse[Response]:
        """Put a request to the machine. Return the answer, or an awaitable of it if the request has to wait.

        For a request that is never answered (a member's first JoinGroup, after its second) the awaitable never ends,
        and its connection is not read any further. Kafka does the same: its clients expect answers in order.
        """
        try:
            effects = self.machine.handle(request, self._now())
            replies = effects.replies
            if len(replies) != 1 or replies[0].token != token:
                later = self._reply_queue.expect(token, translate)
                if effects is not NOTHING:  # as it is for most waiting requests
                    self._perform(effects, replies=replies)
                return later
            self._perform(effects, replies=())
        except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            self.stop(bug)
            return failed_response()
        return translate(replies[0].answer)

    def notify(self, event: Callable[[Machine, Turn], None]) -> None:
        """Put an observation to the machine; ignored once the partition is given up."""
        if not self.closed:
            self._performed(lambda: self.machine.step(partial(event, self.machine), self._now()))

    async def close(self) -> None:
        """Give up: answer waiting requests and finish writes."""
        self.unload()
        await self.landed()
        await self._reply_queue.emptied()
        self._reply_queue.lose_rest()
        await asyncio.gather(*self._deliveries, return_exceptions=True)

    async def landed(self) -> None:
        """Return when no write is under way."""
        if self._writer is not None:
            await self._writer

    def unload(self) -> None:
        """As `close`, without waiting: requests whose writes are under way are answered when those end."""
        if not self.closed:
            self.closed = True
            self._performed(lambda: self.machine.unload(self._now()))
            self._timers.close()
            for delivery in self._deliveries:
                delivery.cancel()

    # -- performing -----------------------------------------------------------------------------------------------

    def _now(self) -> Moment:
        """The present moment: one value throughout a millisecond."""
        ms = self._clock.monotonic_ns() // NS_PER_MS
        if ms != self._moment.ms:
            self._moment = Moment(ms, self._clock.wall_ms())
        return self._moment

    def _timer_fired(self, key: TimerKey) -> None:
        self._performed(lambda: self.machine.timer_fired(key, self._now()))

    def _performed(self, event: Callable[[], Effects]) -> None:
        """Perform the effects of an event that no caller waits for."""
        try:
            self._perform(event())
        except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            self.stop(bug)

    def _perform(self, effects: Effects, *, replies: Iterable[Reply] | None = None) -> None:
        """In the order of `coordinator.groups`; `replies` replaces those of the effects, if given."""
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                self._timers.set(timer.key, timer.at_ms)
            else:
                self._timers.cancel(timer.key)
        for event in effects.events:
            self._emit(event)
        self._reply_queue.put(effects.replies if replies is None else replies)
        for token in effects.abandoned:
            self._reply_queue.abandon(token)
        if effects.writes:
            self._writes += effects.writes
            if self._writer is None:
                self._writer = asyncio.create_task(self._write_all(), name="coordinator-writes")
        for watch in effects.watches:
            self._watch(watch, self)
        for decision in effects.decisions:
            self._decide(decision, self)
        for search in effects.searches:
            self._search(search, self)
        for marker in effects.markers:
            delivery = asyncio.create_task(self._deliver_marker(marker), name="coordinator-marker")
            self._deliveries.add(delivery)
            delivery.add_done_callback(self._deliveries.discard)

    async def _deliver_marker(self, marker: Marker) -> None:
        try:
            await self._deliver(marker)
        except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
            self.stop(bug)
        if not self.closed:
            self._performed(lambda: self.machine.step(partial(self.machine.transactions.marked, marker), self._now()))

    def _emit(self, event: TraceEvent) -> None:
        fields: dict[str, Any] = dict(event.fields)  # none is named member or stream
        self._tracer.emit(event.kind, cause=event.cause, **fields)
        if log.isEnabledFor(logging.INFO):
            line = line_of(event, self._node_id, self._log.topic_partition)
            if line is not None:
                log.info("%s", line)

    async def _write_all(self) -> None:
        """Write until the queue is empty; the next write starts a new task."""
        try:
            while self._writes:
                await self._gather()
                writes = [self._writes.popleft() for _ in range(min(len(self._writes), WRITES_PER_BATCH))]
                try:
                    errors = await self._store(writes)
                except Exception as bug:  # noqa: BLE001 - a bug: see kernel.broker.storage.internal_errors
                    self.stop(bug)
                    errors = [Error.UNKNOWN_SERVER_ERROR] * len(writes)
                await in_pieces(self._report(writes, errors), self._stopwatch)
                if Error.NOT_COORDINATOR in errors:
                    self.unload()
        finally:
            self._writer = None

    async def _gather(self) -> None:
        """Wait as long as each turn of the loop brings more writes, so that they share a transaction."""
        count, end = 0, self._stopwatch() + LINGER_S
        while count < len(self._writes) < WRITES_PER_BATCH and self._stopwatch() < end:
            count = len(self._writes)
            await asyncio.sleep(0)

    async def _store(self, writes: list[Write]) -> list[Error | None]:
        """The error, or None, of each."""
        for _ in encode_ahead(change for write in writes for change in write.changes):
            await asyncio.sleep(0)
        pairs: list[list[tuple[bytes, bytes | None]]] = []
        await in_pieces(self._encode(_lasting(writes), pairs), self._stopwatch)
        fits = [self._fits(write, encoded) for write, encoded in zip(writes, pairs, strict=True)]
        error = await self._write([pair for encoded, fit in zip(pairs, fits, strict=True) if fit for pair in encoded])
        return [error if fit else Error.UNKNOWN_SERVER_ERROR for fit in fits]

    def _fits(self, write: Write, pairs: list[tuple[bytes, bytes | None]]) -> bool:
        """Whether Kafka could write it as one batch; otherwise 4.1.1 answers UNKNOWN_SERVER_ERROR."""
        if not write.is_from_client:
            return True
        size = sum(len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES for key, value in pairs)
        if BATCH_OVERHEAD_BYTES + size <= self._batch_bytes_max:
            return True
        log.warning(
            "%s is refused with UNKNOWN_SERVER_ERROR: its records have %d bytes, more than message.max.bytes=%d",
            write,
            size,
            self._batch_bytes_max,
        )
        return False

    @staticmethod
    def _encode(
        writes: Sequence[Iterable[StoredChange]], pairs: list[list[tuple[bytes, bytes | None]]]
    ) -> Iterator[int]:
        """Append each write's pairs to `pairs`."""
        for number, changes in enumerate(writes):
            if number and not number % WRITES_PER_PIECE:
                yield WRITES_PER_PIECE
            pairs.append([encode(change) for change in changes])

    def _report(self, writes: list[Write], errors: list[Error | None]) -> Iterator[int]:
        """Report the results of writes to the machine."""
        for number, (write, error) in enumerate(zip(writes, errors, strict=True)):
            if number and not number % WRITES_PER_PIECE:
                yield WRITES_PER_PIECE
            if type(write) is Write:
                continue
            # A failed report must not stop the others: requests wait for them.
            event = write.stored if error is None else partial(write.not_stored, error)
            self._performed(partial(self.machine.step, event, self._now()))

    async def _write(self, pairs: list[tuple[bytes, bytes | None]]) -> Error | None:
        try:
            if pairs:
                await self._log.upsert(pairs, self._now().wall_ms)
        except Fenced as error:
            log.info("another broker leads now, a write was fenced: %s", error)
            return Error.NOT_COORDINATOR
        except StorageFailed as error:
            if not self._is_failing:
                log.warning("the coordinator of %s cannot write: %s", self._log.topic_partition, error)
            self._is_failing = True
            return Error.COORDINATOR_NOT_AVAILABLE
        except LogStopped:  # the traceback has been logged
            return Error.UNKNOWN_SERVER_ERROR
        if pairs and self._is_failing:
            log.info("the coordinator of %s can write again", self._log.topic_partition)
            self._is_failing = False
        return None


def _lasting(writes: Sequence[Write]) -> list[Sequence[StoredChange]]:
    """The changes of each write without those that a later one replaces: the log keeps a key's last value only.

    Writes of clients stay whole, because they may be refused.
    """
    found: list[Sequence[StoredChange]] = []
    replaced: set[object] = set()
    for write in reversed(writes):
        changes: Sequence[StoredChange] = write.changes
        if not write.is_from_client:
            last = {change[0]: change for change in changes if change[0] not in replaced}
            replaced.update(last)
            changes = list(last.values())
        found.append(changes)
    found.reverse()
    return found
