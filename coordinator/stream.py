"""One membership of a consumer at work: it performs what `membership.table` decides, and reports what happened.

Everything comes in through `feed`: answers, timers, polls. Effects are performed in the order given: trace events
and requests at once, and what has to be waited for before the next thing may happen (a commit before a
revocation, the listener's callbacks, looking up positions) one after the other in a task of its own, the chores.
The chores begin inside a poll and go on when the poll's time is over, so a poll never waits longer than it was
told to; the member decides nothing that concerns the application meanwhile. What it keeps is delivered meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from coordinator.chores import Chores
from coordinator.commits import CommitRequest, commit
from coordinator.errors import GroupRefused, unanswered
from coordinator.introduction import Introduction, instance_of
from coordinator.link import CoordinatorLink
from coordinator.membership import effects, events
from coordinator.membership.member import Member, State, deadline
from coordinator.membership.moves import BETWEEN_JOIN_AND_SYNC
from coordinator.membership.reactions import UNANSWERED, reaction
from coordinator.membership.table import step
from coordinator.positions import committed
from coordinator.protocol import MalformedMetadata
from coordinator.strategy import Strategies
from kernel.clock import NS_PER_MS
from kernel.errors import Unavailable
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping
    from typing import Any

    from coordinator.surroundings import Surroundings
    from kernel.broker.connection import BrokerConnection
    from kernel.values import CommitOutcome, TopicPartition

#: An orderly end waits so long for the last commit, and again for LeaveGroup; the group notices a death anyway.
PARTING_TIMEOUT_MS = 2_000
#: ... and so long for the application's callbacks (KafkaConsumer.close has 30 s).
CLOSE_TIMEOUT_S = 30

#: In these the chores are the rebalance's own; polls meanwhile count, for max.poll.interval.ms.
_BUSY_IN_POLLS = frozenset({State.STOPPING, State.RELEASING, State.RESUMING})


class GroupStream:
    """See the module. `number` is the stream's; `topics` what it subscribes to."""

    def __init__(self, number: int, topics: tuple[str, ...], surroundings: Surroundings) -> None:
        self.number = number
        instance_id = instance_of(surroundings.config.group_instance_id, number)
        surroundings = replace(surroundings, calls=replace(surroundings.calls, instance_id=instance_id))
        settings = replace(surroundings.config.member, instance_id=instance_id)
        self.member = Member(settings=settings, topics=frozenset(topics))
        self._introduction = Introduction(surroundings.config.partition_assignment_strategy)
        self.strategies = Strategies(surroundings)
        self._around = surroundings
        self._link = CoordinatorLink(surroundings, number)
        self._chores = Chores(self._fail, surroundings.changed)
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._failure: BaseException | None = None  #: the next poll raises it
        self._refusal: GroupRefused | None = None  #: every poll raises it
        self.committing = asyncio.Lock()  #: held by the commit that is under way
        self._moved = asyncio.Event()  #: replaced whenever the member has changed: what a held commit waits for

    # -- what the consumer calls --------------------------------------------------------------------------------------

    def poll(self) -> None:
        """The application polls. Raises what a callback raised, or `GroupRefused` for an error that does not pass."""
        self._raise_failure()
        if self._refusal is not None and not self._chores.busy:
            raise self._refusal
        now = self._now()
        due = deadline(self.member)
        if due is not None and due <= now:  # after a stop of the whole process the timer may not have run yet
            self.feed(events.Ticked())
        if not self._chores.busy or self.member.state in _BUSY_IN_POLLS:
            self.feed(events.Polled())

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.member.topics or ()))

    def resubscribe(self, topics: Iterable[str]) -> None:
        """Other topics, from the next poll on; a member that had none joins with it."""
        self.feed(events.SubscriptionChanged(frozenset(topics)))

    def want_rejoin(self, trigger: str) -> None:
        """The next poll rejoins, for the reason given (see `RejoinWanted`); a member that is about to does nothing."""
        self.feed(events.RejoinWanted(trigger))

    async def unsubscribe(self) -> None:
        """Commit, revoke and leave, as far as the coordinator answers; polls do nothing until `resubscribe`."""
        self.feed(events.Unsubscribed())
        await self._parted()
        self._raise_failure()

    async def commit(self, offsets: Mapping[TopicPartition, int], *, explicit: bool) -> CommitOutcome:
        """Commit under the identity of now; see `coordinator.commits`."""
        patience_ms = self._around.config.default_api_timeout_ms
        if not explicit and self.member.state in (State.CLOSING, State.UNSUBSCRIBING):
            patience_ms = PARTING_TIMEOUT_MS
        request = CommitRequest(
            identity=self.member.identity,
            offsets=dict(offsets),
            explicit=explicit,
            give_up_ns=self._now() + patience_ms * NS_PER_MS,
            held_up=lambda: self.member.state in BETWEEN_JOIN_AND_SYNC,
        )
        return await commit(self, request, self._around)

    async def close(self) -> None:
        """Commit, revoke and leave, as far as the coordinator answers."""
        self.feed(events.Closed())
        await self._parted()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._link.close()
        self._raise_failure()

    async def _parted(self) -> None:
        """Until the callbacks have returned and LeaveGroup is answered, or took too long."""
        await self._chores.done(CLOSE_TIMEOUT_S)
        leaving = {task for task in self._tasks if task.get_name().startswith("leave")}
        if leaving:
            await asyncio.wait(leaving, timeout=PARTING_TIMEOUT_MS / 1000)

    def _raise_failure(self) -> None:
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

    def refused(self, api: str, error: str, *, stamp: int, sent_ns: int, connection: BrokerConnection) -> None:
        """Tell the member of an error. Silence on a connection that was given up already is no news."""
        if error == UNANSWERED and connection is not self._link.connection:
            return
        event = reaction(api, error, stamp=stamp, sent_ns=sent_ns)
        if event is not None:
            self.feed(event)

    # -- the machine --------------------------------------------------------------------------------------------------

    def feed(self, event: events.Event) -> None:
        before = self.member
        self.member, wanted = step(before, event, self._now())
        self._link.name(self.member.member_id)
        for effect in wanted:
            self._perform(effect)
        self._arm()
        told_nothing = before.state is self.member.state and (not wanted or isinstance(event, events.Polled))
        if not told_nothing:  # a poll that only commits must not wake itself
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()
            self._around.changed()

    def _perform(self, effect: effects.Effect) -> None:
        match effect:
            case effects.Emit():
                self._around.tracer.emit(
                    effect.kind,
                    member=effect.member_id or None,
                    stream=self.number,
                    cause=effect.cause,
                    **effect.fields,
                )
            case effects.Lose():
                self._around.fetcher.drop(self.number, effect.partitions)
                self._chores.add(partial(self._tell_lost, effect.partitions))
            case effects.Fail():
                self._refusal = GroupRefused(effect.api, effect.error, self._around.config.group_id)
            case effects.AbandonCoordinator():
                self._link.abandon()
            case effects.CommitPositions():
                # Taken now: what this poll goes on to hand out, nobody has dealt with yet.
                positions = self._around.fetcher.positions(self.number)
                if effect.wait:
                    self._chores.add(partial(self._auto_commit, effect, positions))
                else:
                    self._spawn(self._auto_commit(effect, positions), "auto-commit")
            case effects.Revoke():
                self._around.fetcher.pause(self.number, effect.partitions)
                self._chores.add(partial(self._revoke, effect))
            case effects.Assign():
                member = self.member
                self._introduction = self._introduction.after(member.protocol, member.owned, member.generation)
                self._chores.add(partial(self._assign, effect))
            case _:
                self._request(effect)

    def _request(self, effect: effects.Effect) -> None:
        match effect:
            case effects.FindCoordinator():
                self._spawn(self._find(), "find the coordinator")
            case effects.SendJoin():
                self._spawn(self._join(effect), "join")
            case effects.RunAssignor():
                self._spawn(self._decide(effect), "decide")
            case effects.SendSync():
                self._spawn(self._sync(effect), "sync")
            case effects.SendHeartbeat():
                self._spawn(self._heartbeat(effect), "heartbeat")
            case effects.SendLeave():
                parked = any(task.get_name() in ("join", "sync") for task in self._tasks)
                self._spawn(self._link.leave(effect.member_id, around_parked=parked), "leave")
            case _:
                raise AssertionError(f"no way to perform {effect}")

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = deadline(self.member)
        if due is not None:
            delay_s = max(0, due - self._now()) / 1e9
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.feed, events.Ticked())

    def _now(self) -> int:
        return self._around.clock.monotonic_ns()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = error
        self._around.changed()

    # -- requests -----------------------------------------------------------------------------------------------------

    async def _find(self) -> None:
        """A refusal concerns the member as it is by then; one that cannot take it now will ask, and hear it, again."""
        sent_ns = self._now()
        try:
            self.feed(await self._link.find())
        except GroupRefused as refusal:
            api, error = refusal.api, refusal.error
            self.feed(events.Refused(stamp=self.member.stamp, api=api, error=error, sent_ns=sent_ns))
            self.feed(events.CoordinatorUnknown(error))

    async def _join(self, effect: effects.SendJoin) -> None:
        connection, sent_ns = self._link.connection, self._now()
        assert connection is not None, self.member
        protocols = self._introduction.protocols(self.topics, self.member.generation, self.member.owned)
        try:
            answer = await self._around.calls.join(connection, effect.member_id, protocols)
        except (Unavailable, ProtocolError) as error:
            self.refused("JoinGroup", unanswered(error), stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        if answer.error == "MEMBER_ID_REQUIRED":
            self.feed(events.MemberIdGiven(effect.stamp, answer.member_id))
        elif answer.error:
            self.refused("JoinGroup", answer.error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
        else:
            self.feed(answer.as_event(effect.stamp))

    async def _decide(self, effect: effects.RunAssignor) -> None:
        assignments = await self.strategies.decide(
            effect, self.member.generation, wanted=lambda: self.member.stamp == effect.stamp
        )
        self.feed(events.Decided(effect.stamp, assignments))

    async def _sync(self, effect: effects.SendSync) -> None:
        connection, sent_ns = self._link.connection, self._now()
        if connection is None:
            return  # the event that took it away moves the member on
        try:
            error, data = await self._around.calls.sync(
                connection, effect.identity, effect.protocol, effect.assignments
            )
        except (Unavailable, ProtocolError) as failure:
            self.refused("SyncGroup", unanswered(failure), stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        if error:
            self.refused("SyncGroup", error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        try:
            synced = self.strategies.received(effect, data)
        except MalformedMetadata as malformed:
            self.feed(
                events.Refused(stamp=effect.stamp, api="SyncGroup", error=f"assignment: {malformed}", sent_ns=sent_ns)
            )
            return
        self.feed(synced)

    async def _heartbeat(self, effect: effects.SendHeartbeat) -> None:
        connection, sent_ns = self._link.connection, self._now()
        if connection is None:
            return  # taken away before this task began
        try:
            error = await self._around.calls.heartbeat(connection, effect.identity)
        except (Unavailable, ProtocolError) as failure:
            self.refused("Heartbeat", unanswered(failure), stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        if error:
            self.refused("Heartbeat", error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
        else:
            self.feed(events.HeartbeatAnswered(effect.stamp, sent_ns))

    # -- chores -------------------------------------------------------------------------------------------------------

    async def _revoke(self, effect: effects.Revoke) -> None:
        try:
            if effect.partitions:
                async with self._around.listening:
                    await self._around.listener.on_revoked(self.number, effect.partitions)
        finally:
            self._around.fetcher.drop(self.number, effect.partitions)
            self.feed(events.Stopped())

    async def _tell_lost(self, partitions: frozenset[TopicPartition]) -> None:
        async with self._around.listening:
            await self._around.listener.on_lost(self.number, partitions)

    async def _assign(self, effect: effects.Assign) -> None:
        try:
            async with self._around.listening:
                await self._around.listener.on_assigned(self.number, effect.partitions)
        finally:
            positions = await committed(self, effect, self._around)
            if positions is not None:
                self._around.fetcher.begin(self.number, self.member.member_id, positions)
                self.feed(events.Resumed(effect.stamp))

    async def _auto_commit(self, effect: effects.CommitPositions, positions: Mapping[TopicPartition, int]) -> None:
        """Whatever becomes of it is in the trace, and the next one makes up for it."""
        if self.committing.locked() and not effect.wait:
            return  # the one under way is slow; the next poll that is due says more
        if positions and effect.identity == self.member.identity:
            await self.commit(positions, explicit=False)
