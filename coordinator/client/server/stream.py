"""One member of the `server` design: its registration, the commands it awaits, and its callbacks.

`coordinator.client.member_runner` has the mechanism, `membership.server.table` decides. Besides responses, timers and
polls it is fed the changes of the ZooKeeper session. Nothing here waits for a poll.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from coordinator.client import log_lines
from coordinator.client.context import ConsumerContext
from coordinator.client.member_runner import MemberLogic, MemberRunner
from coordinator.client.server import registration as registering
from coordinator.client.server.calls import ServerCalls, error_name
from coordinator.client.server.link import CommandLink
from coordinator.client.server.settings import ServerConsumerConfig
from coordinator.membership.effects import CommitPositions, Effect, Lose, Revoke
from coordinator.membership.events import UNANSWERED, Event, Resumed, Stopped
from coordinator.membership.server import effects, events
from coordinator.membership.server.member import NO_SESSION, ServerMember, ServerMemberState, deadline
from coordinator.membership.server.reactions import AWAIT, COMMIT, reaction
from coordinator.membership.server.table import step
from coordinator.protocol.server.commands import Command
from kernel.client.connection import UnsupportedByBroker
from kernel.clock import NS_PER_MS
from kernel.errors import Unavailable
from kernel.values import NO_OFFSET, TopicPartition
from kernel.wire.errors import ProtocolError
from kernel.zookeeper.errors import SessionClosed, SessionExpired
from kernel.zookeeper.operations import SessionState

if TYPE_CHECKING:
    import asyncio

    from coordinator.protocol.server.commands import CommandAnswer
    from kernel.zookeeper.operations import SessionChange
    from kernel.zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

#: When to warn that no command has come: a coordinator that sees a member's id starts it within a round. A longer
#: silence may mean that it watches another ZooKeeper.
SILENCE_MS = 60_000

#: The state machine of a member of this design, which leaves by deleting its id; the end of its session does the same.
LOGIC = MemberLogic(
    step=step,
    deadline=deadline,
    reaction=reaction,
    leaving=frozenset({ServerMemberState.CLOSING}),
    commit=COMMIT,
    leave_task="unregister",
)


ServerContext = ConsumerContext[ServerConsumerConfig, ServerCalls]


class MemberStream(MemberRunner[ServerMember, CommandLink, ServerContext]):
    """See the module. `number` is the stream's; `topics` what it subscribes to."""

    def __init__(self, number: int, topics: tuple[str, ...], context: ServerContext, session: ZooKeeperSession) -> None:
        member = ServerMember(settings=context.config.member)
        super().__init__(number, member, LOGIC, CommandLink(context, number), context)
        self.topics = topics
        self._session = session
        self._named: tuple[int, str] = (NO_SESSION, "")  #: the session for which the id was made, and the id
        self._await_task: asyncio.Task[None] | None = None
        self._silent_since_ns: int | None = None  #: registered, and without a command since then

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def session_changed(self, change: SessionChange) -> None:
        """Pass on a change of the ZooKeeper session, in order; the first one starts the membership."""
        match change.state:
            case SessionState.CONNECTED if change.session_id == self.member.session:
                self.feed(events.SessionRestored())
            case SessionState.CONNECTED:
                self.feed(events.SessionBegun(change.session_id, self._session.negotiated_timeout_ms))
            case SessionState.SUSPENDED:
                self.feed(events.SessionInterrupted())
            case SessionState.LOST:
                self.feed(events.SessionEnded())

    def resubscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to other topics from the next round on; until then, delivery goes on."""
        if topics != self.topics:
            self.topics = topics
            if self.member.registered:
                self._spawn(self._announce(), "announce")

    # -- performing effects -------------------------------------------------------------------------------------------

    def _perform_own(self, effect: Effect) -> None:
        match effect:
            case Lose():
                self._context.fetcher.drop(self.number)
                self._task_queue.add(partial(self._notify_lost, effect.partitions))
            case effects.CancelAwait():
                if self._await_task is not None:
                    self._await_task.cancel()
                self._link.cancel_await()
            case CommitPositions():
                # Read now: records that this poll goes on to return are not processed yet.
                positions = self._context.fetcher.positions(self.number)
                if effect.wait:
                    self._context.fetcher.stop(self.number)
                    self._task_queue.add(partial(self._auto_commit, effect.identity, positions, wait=True))
                else:
                    self._spawn(self._auto_commit(effect.identity, positions, wait=False), "auto-commit")
            case Revoke():
                self._context.fetcher.stop(self.number)
                self._task_queue.add(partial(self._revoke, effect))
            case effects.StartDelivery():
                self._task_queue.add(partial(self._assign, effect))
            case _:
                self._request(effect)

    def _request(self, effect: Effect) -> None:
        match effect:
            case effects.SendAwaitCommand():
                self._await_task = self._spawn(self._await_command(effect), "await a command")
            case effects.Register():
                self._spawn(self._register(effect), "register")
            case effects.Unregister():
                session, member_id = self._named
                work = registering.unregister(self._session, self._context.config.group_id, member_id, only_in=session)
                self._spawn(work, "unregister")
            case _:
                raise AssertionError(f"unknown effect {effect}")

    # -- requests -----------------------------------------------------------------------------------------------------

    async def _register(self, effect: effects.Register) -> None:
        """Register under a new id in every session, unless consumer.id sets a fixed one."""
        config = self._context.config
        session, member_id = self._named
        if session != effect.session:
            member_id = registering.new_member_id(
                config.group_id, config.consumer_id, self.number, self._context.runtime
            )
            self._named = (effect.session, member_id)
        if self.number == 0:
            self._session.member = member_id
        written: tuple[str, ...] = ()

        def topics() -> tuple[str, ...]:
            nonlocal written
            written = self.topics
            return written

        try:
            await registering.register(
                self._session,
                config.group_id,
                member_id,
                topics,
                clock=self._context.runtime.clock,
                only_in=effect.session,
            )
        except (SessionExpired, SessionClosed):
            return  # the session's own events move the member on
        self.feed(events.Registered(effect.stamp, member_id))
        if written != self.topics:
            await self._announce()

    async def _announce(self) -> None:
        session, member_id = self._named
        await registering.announce(
            self._session,
            self._context.config.group_id,
            member_id,
            self.topics,
            clock=self._context.runtime.clock,
            only_in=session,
        )
        self.feed(events.SubscriptionAnnounced())

    def _note_silence(self, command: Command) -> None:
        if command is not Command.NOTHING or self.member.state is not ServerMemberState.WAITING:
            self._silent_since_ns = None
            return
        now = self._now()
        self._silent_since_ns = now if self._silent_since_ns is None else self._silent_since_ns
        if now - self._silent_since_ns >= SILENCE_MS * NS_PER_MS:
            self._silent_since_ns = now
            log.warning(
                "%s has waited %g s for group %s to start it: either another member does not stop, or the brokers do "
                "not see its id; zookeeper.connect=%s must name the brokers' own ZooKeeper and chroot",
                self.member.member_id,
                SILENCE_MS / 1000,
                self._context.config.group_id,
                self._context.config.zookeeper_connect,
            )

    async def _await_command(self, effect: effects.SendAwaitCommand) -> None:
        known, sent_ns = self._link.connection, self._now()
        try:
            connection = await self._link.for_commands()
            answer = await self._context.calls.await_command(connection, effect, self.topics)
        except UnsupportedByBroker:
            error = "UNSUPPORTED_VERSION"
        except (Unavailable, ProtocolError):
            error = UNANSWERED
        else:
            error = error_name(answer.error)
            if not error:
                self._note_silence(answer.command)
                self.feed(command_event(effect.stamp, answer))
                return
        self.refused(AWAIT, error, stamp=effect.stamp, sent_ns=sent_ns, connection=known)

    # -- queued tasks -------------------------------------------------------------------------------------------------

    async def _revoke(self, effect: Revoke) -> None:
        context = self._context
        self._log_partitions(log_lines.REVOKING, effect.partitions)
        try:
            async with context.listening:
                if self.member.identity is None:  # the commit was rejected, or the session expired
                    await context.listener.on_lost(self.number, effect.partitions)
                else:
                    await context.listener.on_revoked(self.number, effect.partitions)
        finally:
            context.fetcher.drop(self.number)
            self.feed(Stopped())

    async def _assign(self, effect: effects.StartDelivery) -> None:
        self._log_partitions(log_lines.ADDING, effect.offsets)
        try:
            async with self._context.listening:
                await self._context.listener.on_assigned(self.number, frozenset(effect.offsets))
        finally:
            if self.member.stamp == effect.stamp and self.member.state is ServerMemberState.STARTING:
                positions = {tp: None if at == NO_OFFSET else at for tp, at in effect.offsets.items()}
                self._context.fetcher.begin(self.number, self.member.member_id, positions)
                self.feed(Resumed(effect.stamp))


def command_event(stamp: int, answer: CommandAnswer) -> Event:
    match answer.command:
        case Command.NOTHING:
            return events.NoCommand(stamp)
        case Command.STOP:
            return events.StopCommanded(stamp, answer.generation)
        case Command.START:
            offsets = {TopicPartition(part.topic, part.partition): part.offset for part in answer.partitions}
            return events.StartCommanded(stamp, answer.generation, offsets)
