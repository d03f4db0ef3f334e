"""The one task that performs what the rebalance decides: batches of effects, one after the other.

It replaces both the original's watcher executor and its rebalance lock: demands and notifications arrive from anywhere
through `post`, which only steps the machine; this task performs the effects. Requests are sent one after the other, as
the original sends them; with `rebalance.reads=together` all reads of a step are sent at once, in the same order.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from kernel.values import TopicPartition, partitions_field
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode, SessionExpired
from zkconsumer.member import log_lines
from zkconsumer.rebalance import effects
from zkconsumer.rebalance.effects import (
    Answered,
    Ask,
    OffsetsFetched,
    Operation,
    Performed,
    ReadStoredOffsets,
    Refusal,
    Request,
    Response,
    StepFailed,
)
from zkconsumer.rebalance.machine import is_busy, step
from zkconsumer.rebalance.releasing import not_delivering
from zkconsumer.rebalance.state import RebalanceState
from zkconsumer.records.streams import PartitionInfo
from zkconsumer.watching.watcher import Listening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.zookeeper.session import ZooKeeperSession
    from zkconsumer.offsets.commits import Offsets
    from zkconsumer.rebalance.effects import Effect, Event
    from zkconsumer.rebalance.state import Rebalance
    from zkconsumer.records.leaders import FetcherManager
    from zkconsumer.records.streams import Registry, Stream
    from zkconsumer.watching.watcher import Watcher

log = logging.getLogger(__name__)

_READS = frozenset({Operation.EXISTS, Operation.GET_DATA, Operation.GET_CHILDREN})

#: Refusals that a step can handle.
_REFUSALS = {
    NoNode: Refusal.NO_NODE,
    NodeExists: Refusal.NODE_EXISTS,
    BadVersion: Refusal.BAD_VERSION,
    SessionExpired: Refusal.OTHER_SESSION,  # only for requests bound to one session; all others are retried in the next
}


class ListenerFailed(RebalanceLabError):
    """The application's listener raised, which fails the attempt (rebalance.listener.in.attempt)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the executor performs effects on."""

    session: ZooKeeperSession
    watcher: Watcher
    fetchers: FetcherManager
    offsets: Offsets
    registry: Registry
    streams: Mapping[
        tuple[str, str], Stream
    ]  #: by (topic, thread id); with a pattern, all topics share a thread's stream
    listener: RebalanceListener
    tracer: Tracer
    stop_auto_commit: Callable[[], Awaitable[None]]
    one_by_one: bool  #: send a read only after the answer to the one before (rebalance.reads)


class Executor:
    """Holds the machine and performs its effects on the other parts."""

    def __init__(self, machine: Rebalance, parts: Parts) -> None:
        self.machine = machine
        self._parts = parts
        self._batches: asyncio.Queue[tuple[Effect, ...]] = asyncio.Queue()
        self._tickets: dict[int, asyncio.Future[str | None]] = {}
        self._numbers = itertools.count()
        self._reminders: set[asyncio.TimerHandle] = set()
        self._freezing: asyncio.Task[None] | None = None
        self._perform: Mapping[type[Effect], Callable[..., Awaitable[None]]] = {
            effects.WatchBrokers: self._watch_brokers,
            effects.StopFetchers: lambda _: self._stop_fetchers(),
            effects.StartFetchers: lambda _: self._start_fetchers(),
            effects.ResumeFetchers: lambda _: self._resume_fetchers(),
            effects.CommitOffsets: self._commit,
            effects.NotifyRevoked: lambda effect: self._notify(
                parts.listener.on_revoked(effect.stream, effect.partitions)
            ),
            effects.NotifyAssigned: lambda effect: self._notify(
                parts.listener.on_assigned(effect.stream, effect.partitions)
            ),
            effects.BackOff: lambda effect: asyncio.sleep(effect.ms / 1000),
            effects.StopAutoCommit: lambda _: parts.stop_auto_commit(),
            effects.CloseSession: lambda _: parts.session.close(),
        }
        self._at_once: Mapping[type[Effect], Callable[..., None]] = {
            effects.Emit: self._emit,
            effects.Warn: lambda effect: log.warning("%s: %s", machine.config.consumer_id, effect.message),
            effects.Report: self._report,
            effects.ForgetOwned: lambda effect: parts.registry.forget(effect.topics),
            effects.AdoptClaims: self._adopt,
            effects.ClearStreams: self._clear,
            effects.EndStreams: self._end_streams,
            effects.Freeze: self._freeze,
            effects.Remind: self._remind,
        }

    def post(self, event: Event) -> None:
        """Step the machine with an event from outside. Never waits; a busy machine only records the event."""
        was_busy = is_busy(self.machine)
        self.machine, wanted = step(self.machine, event)
        if was_busy or not is_busy(self.machine):
            # Instant effects belong to this moment: the registry, for one, is emptied now and not after the batch.
            for effect in wanted:
                assert isinstance(effect, effects.INSTANT), f"{event} started a second batch"
                self._say(effect)
                self._at_once[type(effect)](effect)
        else:
            self._batches.put_nowait(wanted)

    async def demand(self, trigger: str, cause: str = "") -> str | None:
        """Run one rebalance; returns None, or why every attempt failed. `cause`: the change behind it."""
        ticket = next(self._numbers)
        waiting: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._tickets[ticket] = waiting
        self.post(effects.RebalanceDemanded(trigger, ticket, cause))
        return await waiting

    def abandon(self) -> None:
        """Emit the final trace events after fetchers and streams were stopped without the machine's shutdown."""
        for stream, had in sorted(self.machine.delivering.items()):
            fields = {"partitions": had, "all": frozenset[TopicPartition]()}
            self._emit(effects.Emit("partitions_revoked", fields, stream))
        self.machine = not_delivering(self.machine)
        self._emit(effects.Emit("member_closed", {"group": self.machine.config.group}))

    async def run(self) -> None:
        """Perform batches until the machine is closed."""
        try:
            while self.machine.state is not RebalanceState.CLOSED:
                batch = await self._batches.get()
                while batch:
                    outcome = await self._perform_batch(batch)
                    if not is_busy(self.machine):
                        break
                    self.machine, batch = step(self.machine, outcome)
        finally:
            for reminder in self._reminders:
                reminder.cancel()

    async def _perform_batch(self, batch: tuple[Effect, ...]) -> Event:
        outcome: Event = Performed()
        for effect in batch:
            outcome = Performed()
            self._say(effect)
            try:
                if isinstance(effect, Ask):
                    outcome = Answered(await self._ask(effect))
                elif isinstance(effect, ReadStoredOffsets):
                    outcome = OffsetsFetched(await self._stored(effect))
                elif type(effect) in self._at_once:
                    self._at_once[type(effect)](effect)
                else:
                    await self._perform[type(effect)](effect)
            except RebalanceLabError as error:
                log.info("%s failed", effect, exc_info=True)
                return StepFailed(f"{type(error).__name__}: {error}")
        return outcome

    async def _ask(self, ask: Ask) -> tuple[Response, ...]:
        if not self._parts.one_by_one and all(request.operation in _READS for request in ask.requests):
            responses = await asyncio.gather(
                *(self._request(request, ask.step) for request in ask.requests), return_exceptions=True
            )
            for response in responses:
                if isinstance(response, BaseException):
                    raise response
            return tuple(response for response in responses if isinstance(response, Response))
        return tuple([await self._claimed(request, ask.step) for request in ask.requests])

    async def _claimed(self, request: Request, number: str) -> Response:
        """Perform a request that may claim a partition."""
        response = await self._request(request, number)
        if log.isEnabledFor(logging.INFO):
            line = log_lines.answered(request, response, self.machine.config.consumer_id)
            if line is not None:
                log.info("%s", line)
        return response

    async def _request(self, request: Request, number: str) -> Response:
        session, path, cause = self._parts.session, request.path, self.machine.cause
        # The session in which the request is sent. If a new session replaces it before we run again, the older id
        # only makes fences stricter, and a rebalance in the new session is already due.
        sent_in = session.session_id
        try:
            match request.operation:
                case Operation.GET_DATA:
                    data, stat = await self._parts.watcher.read(path, step=number, cause=cause)
                    return Response(data=data, version=stat.version, owner=stat.ephemeral_owner, session=sent_in)
                case Operation.GET_CHILDREN:
                    return Response(children=tuple(await self._parts.watcher.children(path, step=number, cause=cause)))
                case Operation.EXISTS:
                    if await session.exists(path, step=number, cause=cause) is None:
                        return Response(refusal=Refusal.NO_NODE)
                case Operation.CREATE:
                    await session.create(
                        path,
                        request.data,
                        ephemeral=not request.persistent,
                        makepath=True,
                        step=number,
                        cause=cause,
                        only_in=request.session,
                    )
                case Operation.DELETE:
                    await session.delete(path, request.version, step=number, cause=cause, only_in=request.session)
                case Operation.SET_DATA:
                    stat = await session.set(path, request.data, step=number, cause=cause, only_in=request.session)
                    return Response(version=stat.version, session=sent_in)
                case Operation.SYNC:
                    await session.sync(path, step=number, cause=cause)
                case _:
                    raise AssertionError(f"no step sends {request.operation}")
        except tuple(_REFUSALS) as refused:
            return Response(refusal=_REFUSALS[type(refused)])
        return Response(session=sent_in)

    async def _stored(self, wanted: ReadStoredOffsets) -> Mapping[TopicPartition, int]:
        return await self._parts.offsets.fetch_stored(wanted.partitions, lambda: self.machine.closing)

    # -- fetchers --------------------------------------------------------------------------------------------------

    async def _stop_fetchers(self) -> None:
        await self._frozen()
        await self._parts.fetchers.stop()

    async def _start_fetchers(self) -> None:
        await self._frozen()
        self._parts.fetchers.start(self._parts.registry.infos())

    async def _resume_fetchers(self) -> None:
        """Records that were fetched but not handed out were dropped, so they are fetched again."""
        await self._frozen()
        infos = self._parts.registry.infos()
        for info in infos:
            info.fetched, info.started = info.consumed, False
        self._parts.fetchers.start(infos)

    def _freeze(self, _: Effect) -> None:
        """Clear the streams at once; clear them again when the fetchers have stopped a moment later."""
        self._clear(effects.ClearStreams())
        self._freezing = asyncio.ensure_future(self._freeze_fetchers(self._freezing))

    async def _freeze_fetchers(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await self._parts.fetchers.stop()
        self._clear(effects.ClearStreams())

    async def _frozen(self) -> None:
        """Wait for a freeze that is under way: concurrent stops would not wait for each other."""
        if self._freezing is not None:
            await self._freezing
            self._freezing = None

    def _say(self, effect: Effect) -> None:
        """Log what is about to be done in a rebalance."""
        if log.isEnabledFor(logging.INFO) and self.machine.state is not RebalanceState.CLOSING:
            for line in log_lines.before(effect, self.machine.config.consumer_id):
                log.info("%s", line)

    # -- the other effects -------------------------------------------------------------------------------------------

    async def _notify(self, call: Awaitable[None]) -> None:
        if not self.machine.config.listener_in_attempt:
            await call
            return
        try:
            await call
        except RebalanceLabError:
            raise
        except Exception as error:
            # In Kafka 1.1 any exception of the application fails the attempt, but not the member.
            raise ListenerFailed(f"the rebalance listener raised {error!r}: check the application") from error

    def _remind(self, effect: effects.Remind) -> None:
        def remind() -> None:
            self._reminders.discard(handle)
            self.post(effects.Reminded(effect.token))

        handle = asyncio.get_running_loop().call_later(effect.ms / 1000, remind)
        self._reminders.add(handle)

    async def _watch_brokers(self, _: Effect) -> None:
        await self._parts.watcher.listen(
            paths.BROKER_IDS, Listening.CHILDREN, lambda cause: self.post(effects.ChangeNotified("brokers", cause))
        )

    async def _commit(self, _: Effect) -> None:
        step = "close" if self.machine.state is RebalanceState.CLOSING else "R4"
        await self._parts.offsets.commit(explicit=False, step=step)

    def _adopt(self, adopted: effects.AdoptClaims) -> None:
        infos = []
        for claim in adopted.claims:
            stream = self._parts.streams.get((claim.topic, claim.thread))
            if stream is None:
                raise RebalanceLabError(
                    f"our registration names {claim.thread} for topic {claim.topic}: no such stream"
                )
            infos.append(PartitionInfo.of(claim, stream))
        self._parts.registry.adopt(infos)

    def _end_streams(self, _: Effect) -> None:
        for stream in dict.fromkeys(self._parts.streams.values()):  # one marker each (KAFKA-1764)
            stream.end()

    def _clear(self, wanted: effects.ClearStreams) -> None:
        for (topic, _), stream in self._parts.streams.items():
            if wanted.topics is None or topic in wanted.topics:
                stream.clear()
            else:
                stream.clear_current()

    def _emit(self, event: effects.Emit) -> None:
        fields = {
            name: partitions_field(value) if isinstance(value, frozenset) else value
            for name, value in event.fields.items()
        }
        self._parts.tracer.emit(
            event.kind, member=self.machine.config.consumer_id, stream=event.stream, cause=event.cause, **fields
        )

    def _report(self, report: effects.Report) -> None:
        waiting = self._tickets.pop(report.ticket)
        if not waiting.done():
            waiting.set_result(report.error)
