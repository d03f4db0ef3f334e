"""The one task that performs what the rebalance decides: batches of effects, one after the other.

The counterpart of the original's watcher executor and of its rebalance lock in one: demands and notifications
come from anywhere through `tell`, which only steps the machine; what follows from them is performed here.
Reads of one step are sent together, in order; writes one after the other, as the original sends everything.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.errors import RebalanceLabError
from kernel.trace.writer import partitions_field
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from kernel.zookeeper.errors import NodeExists, NoNode
from zkconsumer import effects
from zkconsumer.effects import Answer, Answered, Ask, Operation, Performed, Refusal, Request, StepFailed
from zkconsumer.rebalance import is_busy, step
from zkconsumer.state import State
from zkconsumer.streams import PartitionInfo
from zkconsumer.watching import Listening

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kernel.consumer import RebalanceListener
    from kernel.trace.writer import Tracer
    from kernel.zookeeper.session import ZooKeeperSession
    from zkconsumer.effects import Effect, Event
    from zkconsumer.leaders import FetcherManager
    from zkconsumer.offsets import Offsets
    from zkconsumer.state import Rebalance
    from zkconsumer.streams import Registry, Stream
    from zkconsumer.watching import Watching

log = logging.getLogger(__name__)

_READS = frozenset({Operation.EXISTS, Operation.GET_DATA, Operation.GET_CHILDREN})


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
        self._perform: Mapping[type[Effect], Callable[..., Awaitable[None]]] = {
            effects.WatchBrokers: self._watch_brokers,
            effects.StopFetchers: lambda _: parts.fetchers.stop(),
            effects.CommitOffsets: self._commit,
            effects.TellRevoked: lambda told: parts.listener.on_revoked(told.stream, told.partitions),
            effects.TellAssigned: lambda told: parts.listener.on_assigned(told.stream, told.partitions),
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
            effects.StartFetchers: lambda _: parts.fetchers.start(parts.registry.infos()),
            effects.EndStreams: self._end_streams,
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

    async def demand(self, trigger: str) -> str | None:
        """Have one rebalance done; None, or why every attempt failed."""
        ticket = len(self._tickets)
        self._tickets[ticket] = asyncio.get_running_loop().create_future()
        self.tell(effects.RebalanceDemanded(trigger, ticket))
        return await self._tickets[ticket]

    def abandon(self) -> None:
        """Say what has ended when fetchers and streams were stopped without the machine's shutdown."""
        for stream, had in sorted(self.machine.delivering.items()):
            fields = {"partitions": had, "all": frozenset[TopicPartition]()}
            self._emit(effects.Emit("partitions_revoked", fields, stream))
        self._emit(effects.Emit("member_closed", {"group": self.machine.rules.group}))

    async def run(self) -> None:
        """Until the machine is closed."""
        while self.machine.state is not State.CLOSED:
            batch = await self._batches.get()
            while batch:
                outcome = await self._perform_batch(batch)
                if not is_busy(self.machine):
                    break
                self.machine, batch = step(self.machine, outcome)

    async def _perform_batch(self, batch: tuple[Effect, ...]) -> Event:
        outcome: Event = Performed()
        for effect in batch:
            outcome = Performed()
            try:
                if isinstance(effect, Ask):
                    outcome = Answered(await self._ask(effect))
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
        path, cause = request.path, self.machine.cause
        try:
            match request.operation:
                case Operation.GET_DATA:
                    return Answer(data=await self._parts.watching.get(path, step=number, cause=cause))
                case Operation.GET_CHILDREN:
                    return Answer(children=tuple(await self._parts.watching.children(path, step=number, cause=cause)))
                case Operation.CREATE:
                    await self._parts.session.create(
                        path, request.data, ephemeral=True, makepath=True, step=number, cause=cause
                    )
                case Operation.DELETE:
                    await self._parts.session.delete(path, step=number, cause=cause)
                case _:
                    raise AssertionError(f"no step asks for {request.operation}")
        except NoNode:
            return Answer(refusal=Refusal.NO_NODE)
        except NodeExists:
            return Answer(refusal=Refusal.NODE_EXISTS)
        return Answer()

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

    def _emit(self, told: effects.Emit) -> None:
        fields = {
            name: partitions_field(value) if isinstance(value, frozenset) else value
            for name, value in told.fields.items()
        }
        self._parts.tracer.emit(
            told.kind, member=self.machine.rules.consumer_id, stream=told.stream, cause=told.cause, **fields
        )

    def _report(self, report: effects.Report) -> None:
        waiting = self._tickets[report.ticket]
        if not waiting.done():
            waiting.set_result(report.error)
