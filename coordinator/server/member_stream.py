"""One member of the `server` design at work: it performs what `membership.table` decides, and reports what happened.

Everything comes in through `feed`: answers, timers, polls, what becomes of the ZooKeeper session. Effects are performed
in the order given: trace events and requests at once, and what has to be waited for before the next thing may happen (a
commit before a revocation, the listener's callbacks) one after the other in a task of its own, the chores. Nothing of
this waits for a poll.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from coordinator.chores import Chores
from coordinator.commits import CommitRequest, commit
from coordinator.errors import GroupRefused
from coordinator.membership import effects as common
from coordinator.membership.events import Closed, CoordinatorUnknown, Polled, Refused, Ticked
from coordinator.membership.reactions import UNANSWERED
from coordinator.server import registering
from coordinator.server.calls import error_name
from coordinator.server.commands import Command
from coordinator.server.link import CommandLink
from coordinator.server.membership import effects, events
from coordinator.server.membership.member import NO_SESSION, Member, State, deadline
from coordinator.server.membership.reactions import AWAIT, COMMIT, reaction
from coordinator.server.membership.table import step
from kernel.broker.connection import UnsupportedByBroker
from kernel.clock import NS_PER_MS
from kernel.errors import Unavailable
from kernel.values import NO_OFFSET, CommitOutcome, TopicPartition
from kernel.wire.errors import ProtocolError
from kernel.zookeeper.errors import SessionClosed, SessionExpired
from kernel.zookeeper.operations import SessionState

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any

    from coordinator.membership.events import Event
    from coordinator.server.commands import Commanded
    from coordinator.server.member_surroundings import MemberSurroundings
    from kernel.broker.connection import BrokerConnection
    from kernel.zookeeper.operations import SessionChange

log = logging.getLogger(__name__)

#: A coordinator that has seen a member's id has something to say within a round; one that is silent for longer may look
#: elsewhere.
SILENCE_MS = 60_000

#: An orderly end waits so long for the last commit, and again for the id to be taken away; a session's end does both.
PARTING_TIMEOUT_MS = 2_000
#: ... and so long for the application's callbacks.
CLOSE_TIMEOUT_S = 30


class MemberStream:
    """See the module. `number` is the stream's; `topics` what it subscribes to."""

    def __init__(self, number: int, topics: tuple[str, ...], surroundings: MemberSurroundings) -> None:
        self.number = number
        self.topics = topics
        self.member = Member(settings=surroundings.config.member)
        self.committing = asyncio.Lock()  #: held by the commit that is under way
        self._around = surroundings
        self._link = CommandLink(surroundings, number)
        self._named: tuple[int, str] = (NO_SESSION, "")  #: the session in which the id was made, and the id
        self._chores = Chores(self._fail, surroundings.changed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None  #: the next poll raises it
        self._refusal: GroupRefused | None = None  #: every poll raises it
        self._silent_since_ns: int | None = None  #: registered, and told nothing since then
        self._moved = asyncio.Event()  #: replaced whenever the member has changed: what a held commit waits for

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def session_changed(self, change: SessionChange) -> None:
        """What became of the ZooKeeper session, in order; the first that is told begins the membership."""
        match change.state:
            case SessionState.CONNECTED if change.session_id == self.member.session:
                self.feed(events.SessionRestored())
            case SessionState.CONNECTED:
                self.feed(events.SessionBegun(change.session_id, self._around.session.negotiated_timeout_ms))
            case SessionState.SUSPENDED:
                self.feed(events.SessionInterrupted())
            case SessionState.LOST:
                self.feed(events.SessionEnded())

    def poll(self) -> None:
        """The application polls. Raises what a callback raised, or `GroupRefused` for an error that does not pass."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        if self._refusal is not None and not self._chores.busy:
            raise self._refusal
        now = self._now()
        due = deadline(self.member)
        if due is not None and due <= now:  # after a stop of the whole process the timer may not have run yet
            self.feed(Ticked())
        self.feed(Polled())

    async def commit(self, offsets: Mapping[TopicPartition, int], *, explicit: bool) -> CommitOutcome:
        """Commit under the identity of now; see `coordinator.commits`."""
        patience_ms = self._around.config.default_api_timeout_ms
        if not explicit and self.member.state is State.CLOSING:
            patience_ms = PARTING_TIMEOUT_MS
        request = CommitRequest(
            identity=self.member.identity,
            offsets=dict(offsets),
            explicit=explicit,
            give_up_ns=self._now() + patience_ms * NS_PER_MS,
        )
        return await commit(self, request, self._around, api=COMMIT)

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """Other topics from the next round on; what is owned until then is delivered until then."""
        if topics != self.topics:
            self.topics = topics
            if self.member.registered:
                self._spawn(self._announce(), "announce")

    async def close(self) -> None:
        """Commit, revoke and leave, as far as coordinator and ZooKeeper answer."""
        self.feed(Closed())
        await self._chores.done(CLOSE_TIMEOUT_S)
        leaving = {task for task in self._tasks if task.get_name() == "unregister"}
        if leaving:
            await asyncio.wait(leaving, timeout=PARTING_TIMEOUT_MS / 1000)
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._link.close()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    # -- what commits need --------------------------------------------------------------------------------------------

    @property
    def connection(self) -> BrokerConnection | None:
        """To the coordinator, while it is known."""
        return self._link.connection

    async def wait_moved(self, timeout_s: float) -> None:
        """Until the member has changed, or the time is over."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._moved.wait()
        except TimeoutError:
            return

    def refused(self, api: str, error: str, *, stamp: int, sent_ns: int, connection: BrokerConnection | None) -> None:
        """Tell the member of an error. Silence on a connection that was given up already is no news."""
        if error == UNANSWERED and connection is not self._link.connection:
            return
        event = reaction(api, error, stamp=stamp, sent_ns=sent_ns)
        if event is not None:
            self.feed(event)

    # -- the machine --------------------------------------------------------------------------------------------------

    def feed(self, event: Event) -> None:
        before = self.member
        self.member, wanted = step(before, event, self._now())
        self._link.name(self.member.member_id)
        for effect in wanted:
            self._perform(effect)
        self._arm()
        told_nothing = before.state is self.member.state and (not wanted or isinstance(event, Polled))
        if not told_nothing:  # a poll that only commits must not wake itself
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()
            self._around.changed()

    def _perform(self, effect: common.Effect) -> None:
        match effect:
            case common.Emit():
                self._around.tracer.emit(
                    effect.kind,
                    member=effect.member_id or None,
                    stream=self.number,
                    cause=effect.cause,
                    **effect.fields,
                )
            case effects.Lose():
                self._around.fetcher.drop(self.number)
                self._chores.add(partial(self._tell_lost, effect.partitions))
            case common.Fail():
                self._refusal = GroupRefused(effect.api, effect.error, self._around.config.group_id)
            case common.AbandonCoordinator():
                self._link.abandon()
            case effects.CallOff():
                if self._asking is not None:
                    self._asking.cancel()
                self._link.call_off()
            case effects.CommitPositions():
                # Taken now: what the poll that commits goes on to hand out, nobody has dealt with yet.
                positions = self._around.fetcher.positions(self.number)
                if effect.wait:
                    self._around.fetcher.pause(self.number)
                    self._chores.add(partial(self._auto_commit, effect, positions))
                else:
                    self._spawn(self._auto_commit(effect, positions), "auto-commit")
            case effects.Revoke():
                self._around.fetcher.pause(self.number)
                self._chores.add(partial(self._revoke, effect))
            case effects.Assign():
                self._chores.add(partial(self._assign, effect))
            case _:
                self._request(effect)

    def _request(self, effect: common.Effect) -> None:
        match effect:
            case common.FindCoordinator():
                self._spawn(self._find(), "find the coordinator")
            case effects.AwaitCommand():
                self._asking = self._spawn(self._ask(effect), "await a command")
            case effects.Register():
                self._spawn(self._register(effect), "register")
            case effects.Unregister():
                session, member_id = self._named
                going = registering.unregister(
                    self._around.session, self._around.config.group_id, member_id, only_in=session
                )
                self._spawn(going, "unregister")
            case _:
                raise AssertionError(f"no way to perform {effect}")

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = deadline(self.member)
        if due is not None:
            delay_s = max(0, due - self._now()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.feed, Ticked())

    def _now(self) -> int:
        return self._around.clock.monotonic_ns()

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
        self._around.changed()

    # -- requests -----------------------------------------------------------------------------------------------------

    async def _register(self, effect: effects.Register) -> None:
        """Under a new id in every session, unless consumer.id says otherwise."""
        config = self._around.config
        session, member_id = self._named
        if session != effect.session:
            member_id = registering.new_member_id(config.group_id, config.consumer_id, self.number)
            self._named = (effect.session, member_id)
        if self.number == 0:
            self._around.session.member = member_id
        told: tuple[str, ...] = ()

        def topics() -> tuple[str, ...]:
            nonlocal told
            told = self.topics
            return told

        try:
            await registering.register(self._around.session, config.group_id, member_id, topics, only_in=effect.session)
        except (SessionExpired, SessionClosed):
            return  # the session's own events say what comes next
        self.feed(events.Registered(effect.stamp, member_id))
        if told != self.topics:
            await self._announce()

    async def _announce(self) -> None:
        session, member_id = self._named
        await registering.announce(
            self._around.session, self._around.config.group_id, member_id, self.topics, only_in=session
        )
        self.feed(events.SubscriptionAnnounced())

    async def _find(self) -> None:
        """A refusal concerns the member as it is by then; one that cannot take it now will ask, and hear it, again."""
        sent_ns = self._now()
        try:
            self.feed(await self._link.find())
        except GroupRefused as refusal:
            api, error = refusal.api, refusal.error
            self.feed(Refused(stamp=self.member.stamp, api=api, error=error, sent_ns=sent_ns))
            self.feed(CoordinatorUnknown(error))

    def _note_silence(self, command: Command) -> None:
        if command is not Command.NOTHING or self.member.state is not State.WAITING:
            self._silent_since_ns = None
            return
        now = self._now()
        self._silent_since_ns = now if self._silent_since_ns is None else self._silent_since_ns
        if now - self._silent_since_ns >= SILENCE_MS * NS_PER_MS:
            self._silent_since_ns = now
            log.warning(
                "%s has waited %g s for group %s to start it: either a member does not stop, or the brokers do not see "
                "its id; zookeeper.connect=%s must name the brokers' own ZooKeeper and chroot",
                self.member.member_id,
                SILENCE_MS / 1000,
                self._around.config.group_id,
                self._around.config.zookeeper_connect,
            )

    async def _ask(self, effect: effects.AwaitCommand) -> None:
        known, sent_ns = self._link.connection, self._now()
        try:
            connection = await self._link.for_commands()
            answer = await self._around.calls.await_command(connection, effect, self.topics)
        except UnsupportedByBroker:
            error = "UNSUPPORTED_VERSION"
        except (Unavailable, ProtocolError):
            error = UNANSWERED
        else:
            error = error_name(answer.error)
            if not error:
                self._note_silence(answer.command)
                self.feed(_told(effect.stamp, answer))
                return
        self.refused(AWAIT, error, stamp=effect.stamp, sent_ns=sent_ns, connection=known)

    # -- chores -------------------------------------------------------------------------------------------------------

    async def _revoke(self, effect: effects.Revoke) -> None:
        around = self._around
        try:
            async with around.listening:
                if self.member.identity is None:  # the commit was refused, or the session is over
                    await around.listener.on_lost(self.number, effect.partitions)
                else:
                    await around.listener.on_revoked(self.number, effect.partitions)
        finally:
            around.fetcher.drop(self.number)
            self.feed(events.Stopped())

    async def _tell_lost(self, partitions: frozenset[TopicPartition]) -> None:
        async with self._around.listening:
            await self._around.listener.on_lost(self.number, partitions)

    async def _assign(self, effect: effects.Assign) -> None:
        try:
            async with self._around.listening:
                await self._around.listener.on_assigned(self.number, frozenset(effect.offsets))
        finally:
            if self.member.stamp == effect.stamp and self.member.state is State.STARTING:
                positions = {tp: None if at == NO_OFFSET else at for tp, at in effect.offsets.items()}
                self._around.fetcher.begin(self.number, self.member.member_id, positions)
                self.feed(events.Resumed(effect.stamp))

    async def _auto_commit(self, effect: effects.CommitPositions, positions: Mapping[TopicPartition, int]) -> None:
        """Whatever becomes of it is in the trace, and the next one makes up for it."""
        if self.committing.locked() and not effect.wait:
            return  # the one under way is slow; the next poll that is due says more
        if positions and effect.identity == self.member.identity:
            await self.commit(positions, explicit=False)


def _told(stamp: int, answer: Commanded) -> Event:
    match answer.command:
        case Command.NOTHING:
            return events.NothingTold(stamp)
        case Command.STOP:
            return events.StopTold(stamp, answer.generation)
        case Command.START:
            offsets = {TopicPartition(part.topic, part.partition): part.offset for part in answer.partitions}
            return events.StartTold(stamp, answer.generation, offsets)
