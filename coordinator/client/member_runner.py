"""Runs one member of any design with a coordinator: performs the effects of its state machine and feeds it events.

All input goes through `feed`: responses, timers, polls. Effects are performed in the given order: trace events and
requests at once; what must finish before the next effect (a commit before a revocation, the listener's callbacks) goes
through a task queue.

This class has what all such members share: the step, its timer and tasks, passing failures to the application, finding
the coordinator, commits, and an orderly close. A design adds its state machine (`MemberLogic`), the requests of its
protocol, and how to revoke, take over and lose partitions (`MemberRunner._perform_own`).
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from coordinator.client import log_lines
from coordinator.client.commits import RETRIED, CommitRequest, CommittingMember, commit
from coordinator.client.errors import GroupRefused
from coordinator.client.link import CoordinatorFinder
from coordinator.client.task_queue import TaskQueue
from coordinator.membership import effects, events
from coordinator.membership.events import UNANSWERED
from kernel.clock import NS_PER_MS
from kernel.consumer import MemberPlace
from kernel.tasks import cancel_and_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping
    from enum import Enum
    from typing import Any

    from coordinator.client.context import AnyContext
    from coordinator.membership.effects import Identity
    from kernel.client.connection import BrokerConnection
    from kernel.values import CommitOutcome, TopicPartition

log = logging.getLogger(__name__)

#: How long a close waits for the last commit, and again for the leave request; the group notices a death anyway.
LEAVE_TIMEOUT_MS = 2_000
#: How long a close waits for the application's callbacks (30 s in KafkaConsumer.close).
CLOSE_TIMEOUT_S = 30


class MemberValue(CommittingMember, Protocol):
    """What the runner needs of a member value."""

    @property
    def member_id(self) -> str: ...

    @property
    def state(self) -> Enum: ...


class Reaction(Protocol):
    """Returns the event for an error in the response to `api`; None when it concerns only the caller."""

    def __call__(self, api: str, error: str, *, stamp: int, sent_ns: int) -> events.Refusal | None: ...


M = TypeVar("M", bound=MemberValue)
L = TypeVar("L", bound=CoordinatorFinder)
X = TypeVar("X", bound="AnyContext")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberLogic(Generic[M]):
    """One design's state machine, and the names of its commit request and its leave task."""

    step: Callable[[M, events.Event, int], tuple[M, tuple[effects.Effect, ...]]]  #: member, event, now in monotonic ns
    deadline: Callable[[M], int | None]  #: when `Ticked` is next due, in monotonic ns
    reaction: Reaction
    leaving: frozenset[Enum]  #: states in which a member is about to leave
    commit: str  #: name of the commit request, for `reaction`
    leave_task: str  #: name of the asyncio task that sends the leave request


class MemberRunner(ABC, Generic[M, L, X]):
    """See the module. `number` is the stream's.

    M is the member value, L its link to the coordinator, X the consumer's context. A subclass adds `_perform_own` and
    any other input of its design.
    """

    def __init__(self, number: int, member: M, logic: MemberLogic[M], link: L, context: X) -> None:
        self.number = number
        self.member = member
        self.committing = asyncio.Lock()  #: held during a commit
        self.leader = ""  #: the id of the group's leader, in designs that have one
        self._logic = logic
        self._link = link
        link.log_prefix = log_lines.prefix(context.config.client_id, context.config.group_id)
        self._context = context
        self._task_queue = TaskQueue(self._fail, self._idle)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None  #: for `_due_ns`
        self._due_ns: int | None = None  #: the member's deadline
        self._failure: BaseException | None = None  #: the next poll raises it
        self._refusal: GroupRefused | None = None  #: every poll raises it
        self._changed_event = asyncio.Event()  #: replaced whenever the member has changed: what a held commit waits for

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def poll(self) -> None:
        """Pass on the application's poll. Raises what a callback raised, or `GroupRefused` after a fatal error."""
        self._raise_failure()
        if self._refusal is not None and not self._busy:
            raise self._refusal
        if self._due_ns is not None and self._due_ns <= self._now():
            # If the process was stopped, the timer may not have fired yet.
            self.feed(events.Ticked())
        if self._takes_polls():
            self.feed(events.Polled())

    def place(self) -> MemberPlace:
        identity, connection = self.member.identity, self._link.connection
        return MemberPlace(
            member_id=self.member.member_id,
            generation=None if identity is None else identity.generation,
            leader="" if identity is None else self.leader,
            coordinator="" if connection is None else f"{connection.host}:{connection.port} (id {connection.node_id})",
        )

    def _takes_polls(self) -> bool:
        """Return whether to pass a poll on to the member; a design may override it."""
        return True

    async def commit(self, offsets: Mapping[TopicPartition, int], *, explicit: bool) -> CommitOutcome:
        """Commit under the current identity; see `coordinator.client.commits`."""
        timeout_ms = self._context.config.default_api_timeout_ms
        if not explicit and self.member.state in self._logic.leaving:
            timeout_ms = LEAVE_TIMEOUT_MS
        request = CommitRequest(
            identity=self._identity_for_commit(),
            offsets=dict(offsets),
            explicit=explicit,
            give_up_ns=self._now() + timeout_ms * NS_PER_MS,
            blocked=self._blocks_commits,
            retried=self._retried(explicit=explicit),
        )
        return await commit(self, request, self._context, api=self._logic.commit)

    def _identity_for_commit(self) -> Callable[[], Identity | None]:
        """Return what tells under which identity to send a commit called now: the present one, as long as it lasts."""
        called_under = self.member.identity
        return lambda: called_under if self.member.identity == called_under else None

    def _retried(self, *, explicit: bool) -> frozenset[str]:
        """Return the errors after which a commit is sent again; a design may tell commits apart."""
        return RETRIED

    def _blocks_commits(self) -> bool:
        """Return whether a commit sent now would queue behind a parked request; a design that parks overrides it."""
        return False

    @property
    def _busy(self) -> bool:
        """Whether the listener has yet to be called, or to return."""
        return self._task_queue.busy

    def _idle(self) -> None:
        """Take note that the task queue is empty."""
        self._context.changed()

    async def close(self) -> None:
        """Commit, revoke and leave, as far as the coordinator responds. Raises what a callback raised."""
        self.feed(events.Closed())
        await self._wait_until_left()
        if self._timer is not None:
            self._timer.cancel()
        await cancel_and_wait(*self._tasks)
        await self._link.close()
        self._raise_failure()

    async def _wait_until_left(self) -> None:
        """Wait until the callbacks have returned and the leave request is answered, each up to its timeout."""
        await self._task_queue.join(CLOSE_TIMEOUT_S)
        leaving = {task for task in self._tasks if task.get_name() == self._logic.leave_task}
        if leaving:
            await asyncio.wait(leaving, timeout=LEAVE_TIMEOUT_MS / 1000)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # -- what commits need --------------------------------------------------------------------------------------------

    @property
    def connection(self) -> BrokerConnection | None:
        """The connection to the coordinator, while it is known."""
        return self._link.connection

    async def wait_for_change(self, timeout_s: float) -> None:
        """Wait until the member has changed, at most `timeout_s`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._changed_event.wait()
        except TimeoutError:
            return

    def refused(self, api: str, error: str, *, stamp: int, sent_ns: int, connection: BrokerConnection | None) -> None:
        """Feed the member an error; ignore a missing response on a connection that was already abandoned."""
        if error == UNANSWERED and connection is not self._link.connection:
            return
        event = self._logic.reaction(api, error, stamp=stamp, sent_ns=sent_ns)
        if event is not None:
            self.feed(event)

    # -- the machine --------------------------------------------------------------------------------------------------

    def feed(self, event: events.Event, at_ns: int = 0) -> None:
        """Step the member (the only way to change it), perform the effects, set the timer, wake waiters.

        It is `at_ns` at least.
        """
        before = self.member
        self.member, wanted = self._logic.step(before, event, max(self._now(), at_ns))
        self._link.name(self.member.member_id)
        for effect in wanted:
            self._perform(effect)
        self._arm()
        unchanged = before.state is self.member.state and (not wanted or isinstance(event, events.Polled))
        if not unchanged:  # a poll that only commits must not wake itself
            changed, self._changed_event = self._changed_event, asyncio.Event()
            changed.set()
            self._context.changed()

    def _perform(self, effect: effects.Effect) -> None:
        match effect:
            case effects.Emit():
                if effect.kind == "rebalance_triggered":
                    self._log_trigger(str(effect.fields["trigger"]))
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
        """Perform an effect of the design: its requests, and revoking and taking over partitions."""

    def _arm(self) -> None:
        """Set the timer for the member's deadline. Most events leave both as they are: polls above all."""
        due_ns = self._logic.deadline(self.member)
        if due_ns == self._due_ns and self._timer is not None:
            return
        self._due_ns = due_ns
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_ns is not None:
            delay_s = max(0, due_ns - self._now()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.feed(events.Ticked(), self._due_ns or 0)  # its loop may fire a timer nanoseconds too soon

    def _now(self) -> int:
        return self._context.runtime.clock.monotonic_ns()

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
        """Find the coordinator. A fatal error applies to the member's state by then.

        A state that ignores the error finds the coordinator again later, and gets it again.
        """
        sent_ns = self._now()
        try:
            self.feed(await self._link.find())
        except GroupRefused as refusal:
            api, error = refusal.api, refusal.error
            self.feed(events.Refused(stamp=self.member.stamp, api=api, error=error, sent_ns=sent_ns))
            self.feed(events.CoordinatorUnknown(error))

    # -- log lines ----------------------------------------------------------------------------------------------------

    def _log(self, line: str, *arguments: object, level: int = logging.INFO) -> None:
        log.log(level, line, self._link.log_prefix, *arguments)

    def _log_trigger(self, trigger: str) -> None:
        self._log(log_lines.WANTS_TO_JOIN, log_lines.reason(trigger))

    def _log_partitions(self, line: str, partitions: Iterable[TopicPartition]) -> None:
        if log.isEnabledFor(logging.INFO):
            self._log(line, log_lines.listed(partitions))

    # -- queued tasks -------------------------------------------------------------------------------------------------

    async def _notify_lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._log_partitions(log_lines.LOST, partitions)
        async with self._context.listening:
            await self._context.listener.on_lost(self.number, partitions)

    async def _auto_commit(self, identity: Identity, positions: Mapping[TopicPartition, int], *, wait: bool) -> None:
        """Commit; a failure is traced, and the next auto-commit makes up for it."""
        if self.committing.locked() and not wait:
            return  # an earlier commit is still running; the next one that is due commits more
        if positions and self._commits_under(identity):
            await self.commit(positions, explicit=False)

    def _commits_under(self, identity: Identity) -> bool:
        """Return whether a commit that was due under this identity may still be made."""
        return identity == self.member.identity
