"""One member of a KIP-848 group: its heartbeats, and its callbacks and positions inside polls.

`coordinator.client.member_runner` has the mechanism, `membership.consumer.table` decides. A callback of the listener
begins inside a poll (or while the consumer closes or unsubscribes), as in Kafka's consumer: what the background decides
waits for it. Commits and lookups do not.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from coordinator.client import log_lines
from coordinator.client.commits import RETRIED
from coordinator.client.consumer.calls import Kip848Calls
from coordinator.client.consumer.settings import Kip848ConsumerConfig
from coordinator.client.consumer.targets import Targets
from coordinator.client.context import ConsumerContext
from coordinator.client.errors import GroupRefused, unanswered
from coordinator.client.join_metadata import instance_of
from coordinator.client.link import CoordinatorFinder
from coordinator.client.member_runner import MemberLogic, MemberRunner
from coordinator.client.positions import committed
from coordinator.membership.consumer import effects, events
from coordinator.membership.consumer.member import JOIN_EPOCH, ConsumerMember, ConsumerMemberState, deadline
from coordinator.membership.consumer.reactions import HEARTBEAT, reaction
from coordinator.membership.consumer.table import step
from coordinator.membership.effects import CommitPositions, Effect
from kernel.errors import Unavailable
from kernel.random_ids import fresh_base64_id
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from coordinator.client.task_queue import Work
    from coordinator.membership.effects import Identity
    from kernel.client.connection import BrokerConnection
    from kernel.values import TopicPartition

LOGIC = MemberLogic(
    step=step,
    deadline=deadline,
    reaction=reaction,
    leaving=frozenset({ConsumerMemberState.PREPARE_LEAVING}),
    commit="OffsetCommit",
    leave_task="leave",
)

#: The next poll joins.
_OUTSIDE = frozenset({ConsumerMemberState.UNSUBSCRIBED, ConsumerMemberState.STALE})

#: The group has given the member another epoch since the request was made.
STALE_EPOCH = "STALE_MEMBER_EPOCH"


class _Due(NamedTuple):
    """Work that waits for its turn; a callback also waits for a poll."""

    is_callback: bool
    work: Work


Kip848Context = ConsumerContext[Kip848ConsumerConfig, Kip848Calls]


class Kip848Stream(MemberRunner[ConsumerMember, CoordinatorFinder, Kip848Context]):
    """See the module. `number` is the stream's; `topics` what it subscribes to."""

    def __init__(self, number: int, topics: Iterable[str], context: Kip848Context) -> None:
        instance_id = instance_of(context.config.group_instance_id, number)
        context = replace(context, calls=replace(context.calls, instance_id=instance_id))
        settings = replace(context.config.member, instance_id=instance_id)
        member = ConsumerMember(settings=settings, member_id=fresh_base64_id(context.runtime.random))
        super().__init__(number, member, LOGIC, CoordinatorFinder(context, number), context)
        self._link.log_prefix = log_lines.prefix(context.config.client_id, context.config.group_id, instance_id)
        self._targets = Targets(context.client)
        self._due: deque[_Due] = deque()
        self._ending = False  #: closing or unsubscribing: callbacks need no poll
        self._unheard: frozenset[TopicPartition] = frozenset()  #: assigned; the listener has not returned from it
        #: To be revoked. If the listener raises and the target then gives them back, they begin again.
        self._stopped: frozenset[TopicPartition] = frozenset()
        self._unpositioned: frozenset[TopicPartition] = frozenset()  #: the listener knows; without a position yet
        self._positioning: asyncio.Task[None] | None = None
        self._resolving: asyncio.Task[None] | None = None
        self.resubscribe(topics)

    # -- what the consumer calls --------------------------------------------------------------------------------------

    @property
    def about_to_join(self) -> bool:
        """Whether the next poll joins."""
        return self.member.state in _OUTSIDE

    @property
    def settled(self) -> bool:
        """Members of this design never have to rejoin because topics changed: the coordinator watches them."""
        return False

    @property
    def assigned_sizes(self) -> Mapping[str, int] | None:
        """No member of this design assigns."""
        return None

    def want_rejoin(self, trigger: str) -> None:
        raise AssertionError(f"nothing makes this member rejoin because of {trigger}")

    def resubscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to other topics: the next heartbeat says so. A member without a subscription joins in a poll."""
        self.feed(events.Subscribed(frozenset(topics)))

    def subscribe_regex(self, regex: str) -> None:
        """Subscribe to the topics that match at the coordinator."""
        self.feed(events.Subscribed(frozenset(), regex))

    async def unsubscribe(self) -> None:
        """Revoke and leave, as far as the coordinator responds; polls do nothing until `resubscribe`."""
        self.feed(events.Unsubscribed())
        await self._wait_until_left()
        self._raise_failure()

    def poll(self) -> None:
        """See `MemberRunner.poll`. Callbacks that are due begin."""
        try:
            super().poll()
        finally:
            self._begin_due(in_poll=True)

    async def _wait_until_left(self) -> None:
        self._ending = True
        self._begin_due()
        try:
            await super()._wait_until_left()
        finally:
            self._ending = False

    # -- commits ------------------------------------------------------------------------------------------------------

    def _identity_for_commit(self) -> Callable[[], Identity | None]:
        """Commit under the epoch of the moment: what is owned stays owned when it grows."""
        stamp = self.member.stamp
        return lambda: self.member.identity if self.member.stamp == stamp else None

    async def _commit_due(self, effect: CommitPositions, positions: Mapping[TopicPartition, int]) -> None:
        """Commit unless the epoch has been given up meanwhile: others may own the partitions."""
        if effect.stamp == self.member.stamp:
            await self._auto_commit(effect.identity, positions, wait=effect.wait)

    def _commits_under(self, identity: Identity) -> bool:
        """See `_commit_due`: a greater epoch will do."""
        return self.member.identity is not None and self.member.member_id == identity.member_id

    def _retried(self, *, explicit: bool) -> frozenset[str]:
        """Repeat an auto-commit under a newer epoch; the application hears that its own was refused.

        As autoCommitSyncBeforeRebalanceWithRetries and commitSyncExceptionForError of CommitRequestManager.
        """
        return RETRIED if explicit else RETRIED | {STALE_EPOCH}

    # -- performing effects -------------------------------------------------------------------------------------------

    def _perform_own(self, effect: Effect) -> None:
        fetcher = self._context.fetcher
        match effect:
            case effects.SendHeartbeat() if effect.epoch < JOIN_EPOCH:
                self._spawn(self._leave(effect), LOGIC.leave_task)
            case effects.SendHeartbeat():
                self._spawn(self._heartbeat(effect), "heartbeat")
            case CommitPositions():
                # Read now: records that this poll goes on to return are not processed yet.
                commit = partial(self._commit_due, effect, fetcher.positions(self.number))
                if effect.wait:
                    self._queue(commit, is_callback=False)
                else:
                    self._spawn(commit(), "auto-commit")
            case effects.RevokePartitions():
                fetcher.stop(self.number, effect.partitions)
                self._stopped = effect.partitions
                self._unheard -= effect.partitions
                self._unpositioned -= effect.partitions
                self._queue(partial(self._revoke, effect), is_callback=bool(effect.partitions))
            case effects.LosePartitions():
                fetcher.drop(self.number, effect.partitions)
                self._stopped = self._unheard = self._unpositioned = frozenset()
                self._queue(partial(self._lose, effect), is_callback=bool(effect.partitions))
            case effects.AssignPartitions():
                self._queue(partial(self._assign, effect), is_callback=True)
            case effects.RaiseError():
                self._fail(GroupRefused(effect.api, effect.error, self._context.config.group_id))
            case _:
                raise AssertionError(f"unknown effect {effect}")

    def _queue(self, work: Work, *, is_callback: bool) -> None:
        self._due.append(_Due(is_callback, work))
        self._begin_due()

    def _begin_due(self, *, in_poll: bool = False) -> None:
        """Begin what is due next, one at a time; a callback only in a poll."""
        if self._due and not self._task_queue.busy and (in_poll or self._ending or not self._due[0].is_callback):
            self._task_queue.add(self._due.popleft().work)

    def _idle(self) -> None:
        self._begin_due()
        super()._idle()

    @property
    def _busy(self) -> bool:
        return bool(self._due) or super()._busy

    # -- heartbeats ---------------------------------------------------------------------------------------------------

    async def _heartbeat(self, effect: effects.SendHeartbeat) -> None:
        connection, sent_ns = self._link.connection, self._now()
        if connection is None:
            return  # closed before this task began; the event that closed it has the heartbeat repeated
        try:
            answer = await self._context.calls.heartbeat(connection, effect, self._targets.ids)
        except (Unavailable, ProtocolError) as failure:
            self.refused(HEARTBEAT, unanswered(failure), stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        if answer.error:
            self.refused(HEARTBEAT, answer.error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        known = None
        if answer.assignment is not None and effect.stamp == self.member.stamp:
            self._targets.take(answer.assignment)
            known = self._targets.known()
        self.feed(events.HeartbeatAnswered(effect.stamp, answer.epoch, answer.interval_ms, known))
        if self._targets.unknown and self._resolving is None:
            self._resolving = self._spawn(self._resolve(), "look up topic ids")

    async def _leave(self, effect: effects.SendHeartbeat) -> None:
        connection = self._link.connection
        if connection is None:
            return
        try:
            await self._context.calls.heartbeat(
                connection, effect, self._targets.ids, timeout_ms=self._context.config.patience_ms
            )
        except (Unavailable, ProtocolError):
            return  # the session timeout will remove the member

    async def _resolve(self) -> None:
        """Look up topics that were assigned by an unknown id, until there are none."""
        config, failures = self._context.config, 0
        try:
            while (unknown := self._targets.unknown) and self.member.identity is not None:
                with suppress(Unavailable, ProtocolError):
                    await self._context.client.refresh_ids(unknown, timeout_ms=config.request_timeout_ms)
                known = self._targets.known()
                if self._targets.unknown != unknown:
                    self.feed(events.TargetResolved(self.member.stamp, known))
                    failures = 0
                else:
                    backoff_ms = config.retry_backoff_ms << min(failures, 10)
                    await asyncio.sleep(min(backoff_ms, config.retry_backoff_max_ms) / 1000)
                    failures += 1
        finally:
            self._resolving = None

    # -- callbacks ----------------------------------------------------------------------------------------------------

    async def _revoke(self, effect: effects.RevokePartitions) -> None:
        self._log_partitions(log_lines.REVOKING, effect.partitions)
        async with self._reported(effect):
            if effect.partitions:
                await self._context.listener.on_revoked(self.number, effect.partitions)

    async def _lose(self, effect: effects.LosePartitions) -> None:
        self._log_partitions(log_lines.LOST, effect.partitions)
        async with self._reported(effect):
            if effect.partitions:
                await self._context.listener.on_lost(self.number, effect.partitions)

    async def _assign(self, effect: effects.AssignPartitions) -> None:
        self._log_partitions(log_lines.ADDING, effect.partitions)
        self._unheard |= (effect.partitions | self._stopped) & self.member.owned
        async with self._reported(effect):
            await self._context.listener.on_assigned(self.number, effect.partitions)
        self._stopped = frozenset()
        self._position(self._unheard)

    @asynccontextmanager
    async def _reported(self, effect: effects.Callback) -> AsyncIterator[None]:
        """Report that the callback has returned or raised."""
        returned = False
        try:
            async with self._context.listening:
                yield
            returned = True
        finally:
            self.feed(events.CallbackReturned(effect.number, failed=not returned))
            self._context.fetcher.drop(self.number, effect.partitions - self.member.owned)

    # -- positions ----------------------------------------------------------------------------------------------------

    def _position(self, partitions: frozenset[TopicPartition]) -> None:
        """Look up where these partitions begin, and deliver from them then."""
        self._unheard -= partitions
        self._unpositioned |= partitions
        if self._unpositioned and self._positioning is None:
            self._positioning = self._spawn(self._look_up_positions(), "look up positions")

    async def _look_up_positions(self) -> None:
        try:
            while self._unpositioned:
                found = await committed(self, lambda: self._unpositioned, self._context, self._committed)
                self._unpositioned -= frozenset(
                    found or ()
                )  # less `keys()` it would be a set, which others could change
                self._context.fetcher.begin(self.number, self.member.member_id, found or {})
        finally:
            self._positioning = None

    async def _committed(
        self, connection: BrokerConnection, partitions: frozenset[TopicPartition], *, timeout_ms: int
    ) -> tuple[str, dict[TopicPartition, int]]:
        calls, identity = self._context.calls, self.member.identity
        return await calls.committed(connection, identity, partitions, timeout_ms=timeout_ms)

    def _log_trigger(self, trigger: str) -> None:
        """Kafka's consumer of this protocol has no such line."""
