"""One member at work, in any design with a coordinator: it performs what a table decides, and reports what happened.

Everything comes in through `feed`: answers, timers, polls. Effects are performed in the order given: trace events
and requests at once, and what has to be waited for before the next thing may happen (a commit before a revocation, the
listener's callbacks) one after the other in a task of its own, the chores.

What is here is the same for every such member: the step, its alarm clock and its tasks, how failures reach the
application, looking for the coordinator, commits, and an orderly end. A design adds the table (`MemberLogic`), the
requests of its protocol, and what it means there to revoke, to take over and to lose partitions
(`MemberRunner._perform_own`).
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from coordinator.consumer.commits import CommitContext, CommitRequest, CommitSettings, Fenced, commit
from coordinator.consumer.errors import GroupRefused
from coordinator.consumer.link import CoordinatorFinder, LinkContext, LinkSettings
from coordinator.consumer.task_queue import TaskQueue
from coordinator.membership import effects, events
from coordinator.membership.events import UNANSWERED
from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from enum import Enum
    from typing import Any

    from coordinator.consumer.fetcher import Fetcher
    from coordinator.membership.effects import Identity
    from kernel.client.connection import BrokerConnection
    from kernel.consumer import RebalanceListener
    from kernel.values import CommitOutcome, TopicPartition

#: An orderly end waits so long for the last commit, and again for the farewell; the group notices a death anyway.
LEAVE_TIMEOUT_MS = 2_000
#: ... and so long for the application's callbacks (KafkaConsumer.close has 30 s).
CLOSE_TIMEOUT_S = 30


class MemberValue(Fenced, Protocol):
    """What every design's member, as a value, tells of itself."""

    @property
    def member_id(self) -> str: ...

    @property
    def state(self) -> Enum: ...


class RunnerSettings(CommitSettings, LinkSettings, Protocol):
    """By their Kafka names."""

    @property
    def default_api_timeout_ms(self) -> int: ...


class RunnerContext(CommitContext, LinkContext, Protocol):
    """What all members of one consumer share and work with, in any design."""

    @property
    def config(self) -> RunnerSettings: ...

    @property
    def fetcher(self) -> Fetcher: ...

    @property
    def listener(self) -> RebalanceListener: ...

    @property
    def listening(self) -> asyncio.Lock: ...

    @property
    def changed(self) -> Callable[[], None]: ...


class Reaction(Protocol):
    """The event that an error is to the member who sent `api`; None when it concerns only the caller."""

    def __call__(self, api: str, error: str, *, stamp: int, sent_ns: int) -> events.Refusal | None: ...


M = TypeVar("M", bound=MemberValue)
L = TypeVar("L", bound=CoordinatorFinder)
X = TypeVar("X", bound=RunnerContext)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLogic(Generic[M]):
    """What the members of one design decide by, and the names of its requests for a commit and for a farewell."""

    step: Callable[[M, events.Event, int], tuple[M, tuple[effects.Effect, ...]]]  #: member, event, now in monotonic ns
    deadline: Callable[[M], int | None]  #: when `Ticked` has something to do, in monotonic ns
    reaction: Reaction
    parting: frozenset[Enum]  #: the states in which a member is about to go
    commit: str  #: the request, for `reaction`
    farewell: str  #: the name of the task in which a member that goes says so


class MemberRunner(ABC, Generic[M, L, X]):
    """See the module. `number` is the stream's.

    M is the member as a value, L its link to the coordinator, X what the members of one consumer share. A subclass
    adds `_perform_own`, and whatever else the consumer or the world tells a member of its design.
    """

    def __init__(self, number: int, member: M, logic: MemberLogic[M], link: L, context: X) -> None:
        self.number = number
        self.member = member
        self.committing = asyncio.Lock()  #: held by the commit that is under way
        self._logic = logic
        self._link = link
        self._context = context
        self._task_queue = TaskQueue(self._fail, context.changed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None  #: the next poll raises it
        self._refusal: GroupRefused | None = None  #: every poll raises it
        self._changed_event = asyncio.Event()  #: replaced whenever the member has changed: what a held commit waits for

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def poll(self) -> None:
        """The application polls. Raises what a callback raised, or `GroupRefused` for an error that does not pass."""
        self._raise_failure()
        if self._refusal is not None and not self._task_queue.busy:
            raise self._refusal
        now = self._now()
        due = self._logic.deadline(self.member)
        if due is not None and due <= now:  # after a stop of the whole process the timer may not have run yet
            self.feed(events.Ticked())
        if self._takes_polls():
            self.feed(events.Polled())

    def _takes_polls(self) -> bool:
        """Whether a poll made now concerns the member: always, unless its design says otherwise."""
        return True

    async def commit(self, offsets: Mapping[TopicPartition, int], *, explicit: bool) -> CommitOutcome:
        """Commit under the identity of now; see `coordinator.consumer.commits`."""
        patience_ms = self._context.config.default_api_timeout_ms
        if not explicit and self.member.state in self._logic.parting:
            patience_ms = LEAVE_TIMEOUT_MS
        request = CommitRequest(
            identity=self.member.identity,
            offsets=dict(offsets),
            explicit=explicit,
            give_up_ns=self._now() + patience_ms * NS_PER_MS,
            blocked=self._blocks_commits,
        )
        return await commit(self, request, self._context, api=self._logic.commit)

    def _blocks_commits(self) -> bool:
        """Whether a parked request is ahead of whatever is sent now: never, unless the design parks requests."""
        return False

    async def close(self) -> None:
        """Commit, revoke and take leave, as far as anybody answers. Raises what a callback raised."""
        self.feed(events.Closed())
        await self._wait_until_left()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._link.close()
        self._raise_failure()

    async def _wait_until_left(self) -> None:
        """Until the callbacks have returned and the farewell is answered, or took too long."""
        await self._task_queue.done(CLOSE_TIMEOUT_S)
        leaving = {task for task in self._tasks if task.get_name() == self._logic.farewell}
        if leaving:
            await asyncio.wait(leaving, timeout=LEAVE_TIMEOUT_MS / 1000)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # -- what commits need --------------------------------------------------------------------------------------------

    @property
    def connection(self) -> BrokerConnection | None:
        """To the coordinator, while it is known."""
        return self._link.connection

    async def wait_for_change(self, timeout_s: float) -> None:
        """Until the member has changed, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed_event.wait()
        except TimeoutError:
            return

    def refused(self, api: str, error: str, *, stamp: int, sent_ns: int, connection: BrokerConnection | None) -> None:
        """Tell the member of an error. Silence on a connection that was given up already is no news."""
        if error == UNANSWERED and connection is not self._link.connection:
            return
        event = self._logic.reaction(api, error, stamp=stamp, sent_ns=sent_ns)
        if event is not None:
            self.feed(event)

    # -- the machine --------------------------------------------------------------------------------------------------

    def feed(self, event: events.Event) -> None:
        """The one way to move the member: step, perform what is wanted, set the alarm clock, wake who waits."""
        before = self.member
        self.member, wanted = self._logic.step(before, event, self._now())
        self._link.name(self.member.member_id)
        for effect in wanted:
            self._perform(effect)
        self._arm()
        told_nothing = before.state is self.member.state and (not wanted or isinstance(event, events.Polled))
        if not told_nothing:  # a poll that only commits must not wake itself
            moved, self._changed_event = self._changed_event, asyncio.Event()
            moved.set()
            self._context.changed()

    def _perform(self, effect: effects.Effect) -> None:
        match effect:
            case effects.Emit():
                self._context.tracer.emit(
                    effect.kind,
                    member=effect.member_id or None,
                    stream=self.number,
                    cause=effect.cause,
                    **effect.fields,
                )
            case effects.Fail():
                self._refusal = GroupRefused(effect.api, effect.error, self._context.config.group_id)
            case effects.FindCoordinator():
                self._spawn(self._find(), "find the coordinator")
            case effects.AbandonCoordinator():
                self._link.abandon()
            case _:
                self._perform_own(effect)

    @abstractmethod
    def _perform_own(self, effect: effects.Effect) -> None:
        """What the design wants done beyond that: its requests, and giving up and taking over partitions."""

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._logic.deadline(self.member)
        if due is not None:
            delay_s = max(0, due - self._now()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.feed, events.Ticked())

    def _now(self) -> int:
        return self._context.clock.monotonic_ns()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._context.changed()

    async def _find(self) -> None:
        """A refusal concerns the member as it is by then; one that cannot take it now will ask, and hear it, again."""
        sent_ns = self._now()
        try:
            self.feed(await self._link.find())
        except GroupRefused as refusal:
            api, error = refusal.api, refusal.error
            self.feed(events.Refused(stamp=self.member.stamp, api=api, error=error, sent_ns=sent_ns))
            self.feed(events.CoordinatorUnknown(error))

    # -- chores -------------------------------------------------------------------------------------------------------

    async def _notify_lost(self, partitions: frozenset[TopicPartition]) -> None:
        async with self._context.listening:
            await self._context.listener.on_lost(self.number, partitions)

    async def _auto_commit(self, identity: Identity, positions: Mapping[TopicPartition, int], *, wait: bool) -> None:
        """Whatever becomes of it is in the trace, and the next one makes up for it."""
        if self.committing.locked() and not wait:
            return  # the one under way is slow; the next poll that is due says more
        if positions and identity == self.member.identity:
            await self.commit(positions, explicit=False)
