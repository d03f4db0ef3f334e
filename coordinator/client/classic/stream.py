"""One classic member: its requests, and its callbacks and positions inside polls.

`member_runner` has the mechanism, `membership.classic.table` decides. Queued tasks begin inside a poll and may outlast
it, so a poll never exceeds its timeout; meanwhile the member makes no decision that concerns the application, and
delivers the partitions that it keeps.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from coordinator.client import log_lines
from coordinator.client.classic.group_leader import GroupLeader
from coordinator.client.errors import unanswered
from coordinator.client.join_metadata import JoinMetadata, instance_of
from coordinator.client.link import ClassicContext, CoordinatorLink
from coordinator.client.member_runner import MemberLogic, MemberRunner
from coordinator.client.positions import committed
from coordinator.membership.classic import effects, events
from coordinator.membership.classic.member import Member, MemberState, deadline
from coordinator.membership.classic.moves import BETWEEN_JOIN_AND_SYNC
from coordinator.membership.classic.reactions import reaction
from coordinator.membership.classic.table import step
from coordinator.membership.effects import CommitPositions, Effect, Lose, Revoke
from coordinator.membership.events import Refused, Resumed, Stopped
from coordinator.protocol.consumer_protocol import MalformedMetadata, decode_assignment, subscription_of
from kernel.errors import Unavailable
from kernel.wire.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel.values import TopicPartition

log = logging.getLogger(__name__)

#: The state machine of a classic member, which also leaves when it unsubscribes.
LOGIC = MemberLogic(
    step=step,
    deadline=deadline,
    reaction=reaction,
    leaving=frozenset({MemberState.CLOSING, MemberState.UNSUBSCRIBING}),
    commit="OffsetCommit",
    leave_task="leave",
)

#: States whose queued tasks belong to the rebalance; polls count meanwhile, for max.poll.interval.ms.
BUSY_IN_POLLS = frozenset({MemberState.STOPPING, MemberState.RELEASING, MemberState.RESUMING})
#: The next poll joins.
ABOUT_TO_JOIN = frozenset({MemberState.UNJOINED, MemberState.REJOIN_NEEDED})
#: Done with a rebalance, or nearly; before, the leader may not have assigned yet.
SETTLED = frozenset({MemberState.ASSIGNED, MemberState.RESUMING, MemberState.STABLE, MemberState.REJOIN_NEEDED})


class GroupStream(MemberRunner[Member, CoordinatorLink, ClassicContext]):
    """See the module. `number` is the stream's; `topics` what it subscribes to."""

    def __init__(self, number: int, topics: tuple[str, ...], context: ClassicContext) -> None:
        instance_id = instance_of(context.config.group_instance_id, number)
        context = replace(context, calls=replace(context.calls, instance_id=instance_id))
        settings = replace(context.config.member, instance_id=instance_id)
        member = Member(settings=settings, topics=frozenset(topics))
        super().__init__(number, member, LOGIC, CoordinatorLink(context, number), context)
        self._link.log_prefix = log_lines.prefix(context.config.client_id, context.config.group_id, instance_id)
        self._join_metadata = JoinMetadata(context.config.partition_assignment_strategy)
        self.group_leader = GroupLeader(context)

    # -- what the consumer calls --------------------------------------------------------------------------------------

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(self.member.topics or ()))

    @property
    def about_to_join(self) -> bool:
        return self.member.state in ABOUT_TO_JOIN

    @property
    def settled(self) -> bool:
        return self.member.state in SETTLED

    @property
    def assigned_sizes(self) -> Mapping[str, int] | None:
        """How many partitions each of the group's topics had when this member, as leader, assigned them."""
        return self.group_leader.assigned_sizes

    def resubscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to other topics from the next poll on; a member without a subscription joins then."""
        self.feed(events.SubscriptionChanged(frozenset(topics)))

    def want_rejoin(self, trigger: str) -> None:
        """Rejoin in the next poll, for this reason (see `RejoinWanted`); no effect if a rejoin is due already."""
        self.feed(events.RejoinWanted(trigger))

    async def unsubscribe(self) -> None:
        """Revoke and leave, as far as the coordinator responds; polls do nothing until `resubscribe`."""
        self.feed(events.Unsubscribed())
        await self._wait_until_left()
        self._raise_failure()

    def _takes_polls(self) -> bool:
        return not self._task_queue.busy or self.member.state in BUSY_IN_POLLS

    def _blocks_commits(self) -> bool:
        return self.member.state in BETWEEN_JOIN_AND_SYNC

    # -- performing effects -------------------------------------------------------------------------------------------

    def _perform_own(self, effect: Effect) -> None:
        match effect:
            case Lose():
                self._context.fetcher.drop(self.number, effect.partitions)
                self._task_queue.add(partial(self._notify_lost, effect.partitions))
            case CommitPositions():
                # Read now: records that this poll goes on to return are not processed yet.
                positions = self._context.fetcher.positions(self.number)
                if effect.wait:
                    self._task_queue.add(partial(self._auto_commit, effect.identity, positions, wait=True))
                else:
                    self._spawn(self._auto_commit(effect.identity, positions, wait=False), "auto-commit")
            case Revoke():
                self._context.fetcher.stop(self.number, effect.partitions)
                self._task_queue.add(partial(self._revoke, effect))
            case effects.Assign():
                member = self.member
                self._join_metadata = self._join_metadata.after(member.protocol, member.owned, member.generation)
                self._task_queue.add(partial(self._assign, effect))
            case _:
                self._request(effect)

    def _request(self, effect: Effect) -> None:
        match effect:
            case effects.SendJoin():
                self._spawn(self._join(effect), "join")
            case effects.RunAssignor():
                self._spawn(self._decide(effect), "decide")
            case effects.SendSync():
                self._spawn(self._sync(effect), "sync")
            case effects.SendHeartbeat():
                self._spawn(self._heartbeat(effect), "heartbeat")
            case effects.SendLeave():
                self._log(log_lines.LEAVING, effect.member_id, self._coordinator, self._why_it_leaves())
                parked = any(task.get_name() in ("join", "sync") for task in self._tasks)
                self._spawn(self._link.leave(effect.member_id, bypass_parked=parked), "leave")
            case _:
                raise AssertionError(f"unknown effect {effect}")

    # -- requests -----------------------------------------------------------------------------------------------------

    async def _join(self, effect: effects.SendJoin) -> None:
        connection, sent_ns = self._link.connection, self._now()
        assert connection is not None, self.member
        self._log(log_lines.JOINING)
        protocols = self._join_metadata.protocols(self.topics, self.member.generation, self.member.owned)
        try:
            answer = await self._context.calls.join(connection, effect.member_id, protocols)
        except (Unavailable, ProtocolError) as error:
            self.refused("JoinGroup", unanswered(error), stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        if answer.error == "MEMBER_ID_REQUIRED":
            self._log(log_lines.WANTS_TO_JOIN, log_lines.GIVEN_AN_ID % answer.member_id)
            self.feed(events.MemberIdGiven(effect.stamp, answer.member_id))
        elif answer.error:
            self._log(log_lines.JOIN_FAILED, answer.error)
            self.refused("JoinGroup", answer.error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
        else:
            self.leader = answer.leader
            self._log(log_lines.JOIN_ANSWERED, answer, level=logging.DEBUG)
            joined = log_lines.generation(answer.generation, answer.member_id, answer.protocol)
            self._log(log_lines.JOINED, joined)
            self.feed(answer.as_event(effect.stamp))

    async def _decide(self, effect: effects.RunAssignor) -> None:
        if log.isEnabledFor(logging.DEBUG):
            topics = {member.member_id: subscription_of(member.metadata).topics for member in effect.members}
            self._log(log_lines.ASSIGNING, effect.protocol, log_lines.subscriptions(topics), level=logging.DEBUG)
        generation = self.member.generation
        assignments = await self.group_leader.decide(
            effect, generation, wanted=lambda: self.member.stamp == effect.stamp
        )
        if log.isEnabledFor(logging.INFO):
            decided = {member: decode_assignment(data).partitions for member, data in assignments.items()}
            self._log(log_lines.ASSIGNED, generation, log_lines.assignments(decided))
        self.feed(events.Decided(effect.stamp, assignments))

    async def _sync(self, effect: effects.SendSync) -> None:
        connection, sent_ns = self._link.connection, self._now()
        if connection is None:
            return  # the event that closed it moves the member on
        joined = log_lines.generation(effect.identity.generation, effect.identity.member_id, effect.protocol)
        is_leader = self.leader == effect.identity.member_id
        line = log_lines.SENDING_LEADERS_SYNC if is_leader else log_lines.SENDING_FOLLOWERS_SYNC
        self._log(line, self._coordinator, joined, len(effect.assignments), level=logging.DEBUG)
        try:
            error, data = await self._context.calls.sync(
                connection, effect.identity, effect.protocol, effect.assignments
            )
        except (Unavailable, ProtocolError) as failure:
            self.refused("SyncGroup", unanswered(failure), stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        if error:
            self.refused("SyncGroup", error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        try:
            synced = self.group_leader.received(effect, data)
        except MalformedMetadata as malformed:
            self.feed(Refused(stamp=effect.stamp, api="SyncGroup", error=f"assignment: {malformed}", sent_ns=sent_ns))
            return
        self._log(log_lines.SYNCED, joined)
        self.feed(synced)

    async def _heartbeat(self, effect: effects.SendHeartbeat) -> None:
        connection, sent_ns = self._link.connection, self._now()
        if connection is None:
            return  # closed before this task began
        try:
            error = await self._context.calls.heartbeat(connection, effect.identity)
        except (Unavailable, ProtocolError) as failure:
            self.refused("Heartbeat", unanswered(failure), stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
            return
        if error:
            self.refused("Heartbeat", error, stamp=effect.stamp, sent_ns=sent_ns, connection=connection)
        else:
            self.feed(events.HeartbeatAnswered(effect.stamp, sent_ns))

    # -- queued tasks -------------------------------------------------------------------------------------------------

    async def _revoke(self, effect: Revoke) -> None:
        try:
            if effect.partitions:
                self._log_partitions(log_lines.REVOKING, effect.partitions)
                async with self._context.listening:
                    await self._context.listener.on_revoked(self.number, effect.partitions)
        finally:
            self._context.fetcher.drop(self.number, effect.partitions)
            self.feed(Stopped())

    async def _assign(self, effect: effects.Assign) -> None:
        member = self.member
        self._log(log_lines.JOIN_COMPLETE, member.generation, member.member_id, level=logging.DEBUG)
        if log.isEnabledFor(logging.INFO):
            self._log(log_lines.NOTIFYING, log_lines.assignment(member.owned))
        self._log_partitions(log_lines.ADDING, effect.partitions)
        try:
            async with self._context.listening:
                await self._context.listener.on_assigned(self.number, effect.partitions)
        finally:
            positions = await committed(
                self, partial(self._resuming, effect), self._context, self._context.calls.committed
            )
            if positions is not None:
                self._log_positions(positions)
                self._context.fetcher.begin(self.number, self.member.member_id, positions)
                self.feed(Resumed(effect.stamp))

    def _resuming(self, effect: effects.Assign) -> frozenset[TopicPartition] | None:
        """Return the partitions whose positions are needed, as long as the member takes them over."""
        ours = self.member.stamp == effect.stamp and self.member.state is MemberState.RESUMING
        return effect.partitions if ours else None

    # -- log lines ----------------------------------------------------------------------------------------------------

    @property
    def _coordinator(self) -> str:
        connection = self._link.connection
        return "null" if connection is None else log_lines.node(connection.host, connection.port, connection.node_id)

    def _why_it_leaves(self) -> str:
        """In Kafka's words, except for a failed member."""
        if self.member.state is MemberState.FAILED:
            return "an assignment that it cannot read"
        if self.member.topics is None:
            return "the consumer unsubscribed from all topics"
        if self.member.state is MemberState.LEFT:
            return "the consumer is being closed"
        return "consumer poll timeout has expired."

    def _log_positions(self, positions: Mapping[TopicPartition, int | None]) -> None:
        if log.isEnabledFor(logging.INFO):
            for tp, offset in sorted(positions.items()):
                if offset is None:
                    self._log(log_lines.NO_OFFSET_FOUND, tp)
                else:
                    self._log(log_lines.OFFSET_FOUND, tp, offset)
