"""The one task that performs what the rebalance decides: batches of effects, one after the other.

The counterpart of the original's watcher executor and of its rebalance lock in one: demands and notifications
come from anywhere through `tell`, which only steps the machine; what follows from them is performed here.
Reads of one step are sent together, in order; writes one after the other, as the original sends everything.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from kernel.trace.writer import partitions_field
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.errors import BadVersion, NodeExists, NoNode, SessionExpired
from zkconsumer.rebalance import effects
from zkconsumer.rebalance.effects import (
    Answer,
    Answered,
    Ask,
    OffsetsFetched,
    Operation,
    Performed,
    ReadStoredOffsets,
    Refusal,
    Request,
    StepFailed,
)
from zkconsumer.rebalance.machine import is_busy, step
from zkconsumer.rebalance.state import State
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
    from zkconsumer.watching.watcher import Watching

log = logging.getLogger(__name__)

_READS = frozenset({Operation.EXISTS, Operation.GET_DATA, Operation.GET_CHILDREN})

#: Refusals that a step has an answer to.
_REFUSALS = {
    NoNode: Refusal.NO_NODE,
    NodeExists: Refusal.NODE_EXISTS,
    BadVersion: Refusal.BAD_VERSION,
    SessionExpired: Refusal.OTHER_SESSION,  # only what is for one session; everything else is repeated in the next
}


class ListenerFailed(RebalanceLabError):
    """The application's listener raised, and its rules say that this fails the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the executor performs with; nothing of it is decided here."""

    session: ZooKeeperSession
    watching: Watching
    fetchers: FetcherManager
    offsets: Offsets
    registry: Registry
    streams: Mapping[tuple[str, str], Stream]  #: by (topic, thread id); with a pattern, topics share a thread's stream
    listener: RebalanceListener
    tracer: Tracer
    stop_auto_commit: Callable[[], Awaitable[None]]


class Executor:
    """Holds the machine; everything else is handed in and only used."""

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
            effects.TellRevoked: lambda told: self._tell(parts.listener.on_revoked(told.stream, told.partitions)),
            effects.TellAssigned: lambda told: self._tell(parts.listener.on_assigned(told.stream, told.partitions)),
            effects.BackOff: lambda wanted: asyncio.sleep(wanted.ms / 1000),
            effects.StopAutoCommit: lambda _: parts.stop_auto_commit(),
            effects.CloseSession: lambda _: parts.session.close(),
        }
        self._at_once: Mapping[type[Effect], Callable[..., None]] = {
            effects.Emit: self._emit,
            effects.Warn: lambda wanted: log.warning("%s: %s", machine.rules.consumer_id, wanted.message),
            effects.Report: self._report,
            effects.ForgetOwned: lambda wanted: parts.registry.forget(wanted.topics),
            effects.AdoptClaims: self._adopt,
            effects.ClearStreams: self._clear,
            effects.EndStreams: self._end_streams,
            effects.Freeze: self._freeze,
            effects.Remind: self._remind,
        }

    def tell(self, event: Event) -> None:
        """Something happened outside. Never waits; a machine that is busy only takes note."""
        was_busy = is_busy(self.machine)
        self.machine, wanted = step(self.machine, event)
        if was_busy or not is_busy(self.machine):
            # It only tells, and what it tells belongs to this moment: the registry is emptied now, not later.
            for effect in wanted:
                assert isinstance(effect, effects.INSTANT), f"{event} made a second batch"
                self._at_once[type(effect)](effect)
        else:
            self._batches.put_nowait(wanted)

    async def demand(self, trigger: str, cause: str = "") -> str | None:
        """Have one rebalance done; None, or why every attempt failed. `cause`: the change that made it."""
        ticket = next(self._numbers)
        waiting: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._tickets[ticket] = waiting
        self.tell(effects.RebalanceDemanded(trigger, ticket, cause))
        return await waiting

    def abandon(self) -> None:
        """Say what has ended when fetchers and streams were stopped without the machine's shutdown."""
        for stream, had in sorted(self.machine.delivering.items()):
            fields = {"partitions": had, "all": frozenset[TopicPartition]()}
            self._emit(effects.Emit("partitions_revoked", fields, stream))
        self._emit(effects.Emit("member_closed", {"group": self.machine.rules.group}))

    async def run(self) -> None:
        """Until the machine is closed."""
        try:
            while self.machine.state is not State.CLOSED:
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

    async def _ask(self, ask: Ask) -> tuple[Answer, ...]:
        if all(request.operation in _READS for request in ask.requests):
            answers = await asyncio.gather(
                *(self._request(request, ask.step) for request in ask.requests), return_exceptions=True
            )
            for answer in answers:
                if isinstance(answer, BaseException):
                    raise answer
            return tuple(answer for answer in answers if isinstance(answer, Answer))
        return tuple([await self._request(request, ask.step) for request in ask.requests])

    async def _request(self, request: Request, number: str) -> Answer:
        session, path, cause = self._parts.session, request.path, self.machine.cause
        # As of the asking: where another session has come before we run again, the older of the two binds nothing
        # that it should not, and the rebalance in the new one is on its way.
        asked_in = session.session_id
        try:
            match request.operation:
                case Operation.GET_DATA:
                    data, stat = await self._parts.watching.read(path, step=number, cause=cause)
                    return Answer(data=data, version=stat.version, owner=stat.ephemeral_owner, session=asked_in)
                case Operation.GET_CHILDREN:
                    return Answer(children=tuple(await self._parts.watching.children(path, step=number, cause=cause)))
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
                    return Answer(version=stat.version, session=asked_in)
                case Operation.SYNC:
                    await session.sync(path, step=number, cause=cause)
                case _:
                    raise AssertionError(f"no step asks for {request.operation}")
        except tuple(_REFUSALS) as refused:
            return Answer(refusal=_REFUSALS[type(refused)])
        return Answer(session=asked_in)

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
        """What was fetched and not handed out has been forgotten: it is fetched again."""
        await self._frozen()
        infos = self._parts.registry.infos()
        for info in infos:
            info.fetched, info.started = info.consumed, False
        self._parts.fetchers.start(infos)

    def _freeze(self, _: Effect) -> None:
        """At once for the application; the fetchers end a moment later, and what they put meanwhile goes too."""
        self._clear(effects.ClearStreams())
        self._freezing = asyncio.ensure_future(self._freeze_fetchers(self._freezing))

    async def _freeze_fetchers(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await before
        await self._parts.fetchers.stop()
        self._clear(effects.ClearStreams())

    async def _frozen(self) -> None:
        """Two stops at once would not wait for each other."""
        if self._freezing is not None:
            await self._freezing
            self._freezing = None

    # -- the other effects -------------------------------------------------------------------------------------------

    async def _tell(self, telling: Awaitable[None]) -> None:
        if not self.machine.rules.listener_in_attempt:
            await telling
            return
        try:
            await telling
        except RebalanceLabError:
            raise
        except Exception as error:
            # Kafka 1.1 fails the attempt whatever the application's code raises, and the member goes on living.
            raise ListenerFailed(f"the rebalance listener raised {error!r}: look into the application") from error

    def _remind(self, wanted: effects.Remind) -> None:
        def remind() -> None:
            self._reminders.discard(handle)
            self.tell(effects.Reminded(wanted.token))

        handle = asyncio.get_running_loop().call_later(wanted.ms / 1000, remind)
        self._reminders.add(handle)

    async def _watch_brokers(self, _: Effect) -> None:
        await self._parts.watching.listen(
            paths.BROKER_IDS, Listening.CHILDREN, lambda cause: self.tell(effects.ChangeNotified("brokers", cause))
        )

    async def _commit(self, _: Effect) -> None:
        await self._parts.offsets.commit(explicit=False, step="close" if self.machine.state is State.CLOSING else "R4")

    def _adopt(self, adopted: effects.AdoptClaims) -> None:
        infos = []
        for claim in adopted.claims:
            stream = self._parts.streams.get((claim.topic, claim.thread))
            if stream is None:
                raise RebalanceLabError(f"our registration names {claim.thread} for {claim.topic}, which we never had")
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

    def _emit(self, told: effects.Emit) -> None:
        fields = {
            name: partitions_field(value) if isinstance(value, frozenset) else value
            for name, value in told.fields.items()
        }
        self._parts.tracer.emit(
            told.kind, member=self.machine.rules.consumer_id, stream=told.stream, cause=told.cause, **fields
        )

    def _report(self, report: effects.Report) -> None:
        waiting = self._tickets.pop(report.ticket)
        if not waiting.done():
            waiting.set_result(report.error)
