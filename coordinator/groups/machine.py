"""One partition of `__consumer_offsets` as one machine: classic groups, groups of the `server` and `consumer` designs,
their offsets and transactions.

A group id belongs to one of these at a time: the one that has members. Classic groups and those of the `consumer`
design become each other as their members migrate (`conversion`). Members of the `server` design and the others exclude
each other: they get INCONSISTENT_GROUP_PROTOCOL. Commits without a member get UNKNOWN_MEMBER_ID, Kafka's answer for a
group with members.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, cast

from coordinator.groups.answers import ConsumerHeartbeatAnswer, DeleteGroupAnswer, DeleteOffsetsAnswer
from coordinator.groups.classic import join, liveness, sync
from coordinator.groups.classic.groups import ClassicGroups
from coordinator.groups.classic.states import GroupState
from coordinator.groups.consumer.fencing import COMMITS_WITH_EPOCHS, commit_refusal, transactional_commit_refusal
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.requests import ConsumerHeartbeat, ConsumerSettings
from coordinator.groups.consumer.topics import NO_TOPICS
from coordinator.groups.consumer_records import CONSUMER_KEYS
from coordinator.groups.conversion.conversions import Conversions
from coordinator.groups.effects import CONSUMER_TIMERS, TimerKey, TimerKind, Turn
from coordinator.groups.errors import Error
from coordinator.groups.inspection import (
    CONSUMER_GROUP_TYPE,
    GROUP_TYPE,
    GroupDescription,
    ListedGroup,
    MemberDescription,
    describe,
    listed,
)
from coordinator.groups.mixed import requests as mixed
from coordinator.groups.offsets import offsets
from coordinator.groups.offsets.committed_offsets import CommittedOffsets
from coordinator.groups.offsets.transactions import Transactions
from coordinator.groups.records import GroupKey, OffsetRecord, ProducerKey, ServerKey, TransactionKey
from coordinator.groups.requests import (
    UNKNOWN_MEMBER,
    AddGroup,
    AddPartitions,
    Commit,
    DeleteGroup,
    DeleteOffsets,
    EndTransaction,
    Heartbeat,
    InitProducer,
    Join,
    Leave,
    Mark,
    OffsetToCommit,
    Sync,
)
from coordinator.groups.server.groups import ServerGroups
from coordinator.groups.server.requests import Await, OwnedCommit
from coordinator.protocol.consumer_protocol import encode_assignment
from coordinator.protocol.server.commands import SERVER_PROTOCOL_TYPE, CommandAnswer
from coordinator.protocol.server.errors import ServerError
from kernel.values import NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from coordinator.groups.classic.group import Group
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer_records import ConsumerRecord
    from coordinator.groups.effects import Effects, Moment
    from coordinator.groups.limits import Limits
    from coordinator.groups.records import (
        GroupRecord,
        ProducerRecord,
        ServerChange,
        StoredChange,
        TransactionRecord,
    )
    from coordinator.groups.requests import Request, TransactionRequest
    from coordinator.groups.server.group import AssignmentSettings, ServerGroup

    Event = Callable[[Turn], None]
    RarerRequest = TransactionRequest | Mark | Leave | DeleteGroup | DeleteOffsets | Await | OwnedCommit

_RETENTION = TimerKey(TimerKind.RETENTION, "")


class Machine:
    """For one leader epoch; thrown away after `unload`. Each event is one call that returns all its effects.

    `handle` takes requests, `timer_fired` the timers, and `step` every other event: a method that takes a turn, of a
    write (`stored`) or of one of the parts.
    """

    def __init__(
        self,
        limits: Limits,
        settings: AssignmentSettings,
        size_of: Callable[[str], int],
        consumer: ConsumerGroups | None = None,
    ) -> None:
        """`size_of(topic)` is the topic's current number of partitions, 0 if it does not exist."""
        self.limits = limits
        self.consumer = consumer or ConsumerGroups(lambda _: ConsumerSettings(), NO_TOPICS)
        self.server = ServerGroups(settings, size_of, self._offset_of)
        self.classic = ClassicGroups()
        self.offsets = CommittedOffsets(self.classic.groups, self._keeps_offsets)
        self.transactions = Transactions()
        self.conversions = Conversions(self.classic.groups, self.consumer.groups)
        self.consumer.conversions = self.conversions

    def _offset_of(self, group_id: str, topic: str, partition: int) -> int:
        ((_, _, found),) = self.offsets.fetch(group_id, ((topic, partition),))
        return found.offset if isinstance(found, OffsetRecord) else NO_OFFSET

    def _keeps_offsets(self, group_id: str, turn: Turn) -> bool:
        return self.server.keeps(group_id, turn) or self.consumer.find(group_id) is not None

    def step(self, event: Event, now: Moment) -> Effects:
        turn = Turn(now, self.limits)
        event(turn)
        return turn.effects()

    # -- hard state -------------------------------------------------------------------------------------------------

    def apply(self, change: StoredChange) -> None:
        """Take over one stored record. Records may come in any order; `wake` follows the last one."""
        key, value = change
        if isinstance(key, GroupKey):
            self.classic.apply(key, cast("GroupRecord | None", value))
        elif isinstance(key, TransactionKey):
            self.transactions.apply(key, cast("TransactionRecord | None", value))
        elif isinstance(key, ProducerKey):
            self.offsets.pending.know(key, cast("ProducerRecord | None", value))
        elif isinstance(key, ServerKey):
            self.server.apply(cast("ServerChange", change))
        elif isinstance(key, CONSUMER_KEYS):
            self.consumer.apply(key, cast("ConsumerRecord | None", value))
        else:
            self.offsets.apply(key, cast("OffsetRecord | None", value))

    def wake(self) -> Iterator[Event]:
        """What follows once all records are applied: events, each of which may be a separate step.

        Every member's session restarts. Transactions come last: they have markers for the groups.
        """
        self.offsets.pending.settle(self.offsets.by_group)
        yield self._expire_later
        yield self.conversions.tidy
        yield from self.classic.wake()
        yield self.transactions.load
        yield from self.server.wake()
        yield from self.consumer.wake()

    def unload(self, now: Moment) -> Effects:
        """Another broker leads the partition. Waiting requests get NOT_COORDINATOR, timers are cancelled."""
        turn = Turn(now, self.limits)
        self.classic.unload(turn)
        self.transactions.unload(turn)
        turn.cancel_timer(_RETENTION)
        self.server.unload(turn)
        self.consumer.unload(turn)
        return turn.effects()

    # -- requests ---------------------------------------------------------------------------------------------------

    def handle(self, request: Request | Await | OwnedCommit | ConsumerHeartbeat, now: Moment) -> Effects:
        """One request. Its group id is valid, and this machine is responsible for it."""
        turn = Turn(now, self.limits)
        match request:
            case Heartbeat():  # the most frequent requests come first
                group = self.classic.groups.get(request.group_id)
                if self._is_consumers(group, request.group_id):
                    mixed.heartbeat(self.consumer, request, turn)
                else:
                    liveness.heartbeat(group, request, turn)
            case ConsumerHeartbeat():
                self._consumer_heartbeat(request, turn)
            case Sync():
                group = self.classic.groups.get(request.group_id)
                if self._is_consumers(group, request.group_id):
                    mixed.sync(self.consumer, request, turn)
                else:
                    sync.sync(group, request, turn)
            case Join():
                self._join(request, turn)
            case Commit():
                if self.server.in_use(request.group_id):
                    offsets.refuse_commit(request, Error.UNKNOWN_MEMBER_ID, turn)
                elif (found := self.consumer.find(request.group_id)) is not None:
                    self._commit_of_member(found, request, turn)
                else:
                    self.offsets.commit(request, turn)
            case _:
                self._handle_rarer(request, turn)
        return turn.effects()

    def _handle_rarer(self, request: RarerRequest, turn: Turn) -> None:
        match request:
            case Mark():
                self.offsets.mark(request, turn)
            case InitProducer() | AddGroup() | AddPartitions() | EndTransaction():
                self.transactions.handle(request, turn)
            case Await():
                group_id = request.asked.group_id
                if self._has_classic_members(group_id) or self.consumer.in_use(group_id):
                    turn.reply(request.token, CommandAnswer(error=ServerError.INCONSISTENT_GROUP_PROTOCOL))
                else:
                    self.server.ask(request, turn)
            case OwnedCommit():
                self.offsets.commit(self._judged(request), turn)
            case Leave():
                self._leave(request, turn)
            case DeleteGroup():
                self._delete_group(request, turn)
            case DeleteOffsets():
                if self.server.in_use(request.group_id):
                    turn.reply(request.token, DeleteOffsetsAnswer(error=Error.NON_EMPTY_GROUP))
                else:
                    of_consumers = self.consumer.find(request.group_id)
                    self.offsets.delete(request, turn, None if of_consumers is None else of_consumers.subscribed())

    def _consumer_heartbeat(self, request: ConsumerHeartbeat, turn: Turn) -> None:
        if self.server.in_use(request.group_id):
            turn.reply(request.token, ConsumerHeartbeatAnswer(Error.GROUP_ID_NOT_FOUND))
        else:
            self.consumer.heartbeat(request, turn)

    def _has_classic_members(self, group_id: str) -> bool:
        """Whether members that joined by JoinGroup have the group id."""
        group = self.classic.groups.get(group_id)
        return group is not None and group.state is not GroupState.DEAD and bool(group.members or group.pending)

    def _is_consumers(self, group: Group | None, group_id: str) -> bool:
        """Whether the id belongs to a group of the `consumer` design, which leaves at most offsets to a classic one."""
        return (group is None or not group.members) and self.consumer.find(group_id) is not None

    def _join(self, request: Join, turn: Turn) -> None:
        group_id = request.group_id
        if self.server.in_use(group_id):
            join.refuse(request, Error.INCONSISTENT_GROUP_PROTOCOL, turn)
        elif join.session_is_out_of_range(request, turn):
            join.refuse(request, Error.INVALID_SESSION_TIMEOUT, turn)
        elif self.consumer.in_use(group_id):
            mixed.join(self.consumer, request, turn)
        elif self.conversions.is_settling(group_id):
            join.refuse(request, Error.COORDINATOR_NOT_AVAILABLE, turn)  # the client tries again
        else:
            retired = self.conversions.retire(group_id, turn) if request.member_id == UNKNOWN_MEMBER else None
            self.classic.join(request, turn, retired)

    def _leave(self, request: Leave, turn: Turn) -> None:
        if self.consumer.in_use(request.group_id):
            self.consumer.leave(request, turn)
        else:
            liveness.leave(self.classic.groups.get(request.group_id), request, turn)

    def _commit_of_member(self, group: ConsumerGroup, request: Commit, turn: Turn) -> None:
        """In a group of the `consumer` design, or without a member in one that has none."""
        if request.producer is not None:
            refusal = transactional_commit_refusal(group, request.member_id, request.generation)
        else:
            version = COMMITS_WITH_EPOCHS if request.absent_group_is_named else 0
            refusal = commit_refusal(group, request.member_id, request.generation, version)
        if refusal is None:
            self.offsets.commit(dataclasses.replace(request, verdicts=request.verdicts or {}), turn)
        else:
            offsets.refuse_commit(request, refusal, turn)

    def _judged(self, request: OwnedCommit) -> Commit:
        commit = request.commit
        if self._has_classic_members(commit.group_id):
            every = ((owned.topic, owned.partition) for owned in commit.offsets)
            verdicts = dict.fromkeys(every, Error.INCONSISTENT_GROUP_PROTOCOL)
        else:
            verdicts = self.server.verdicts(commit)
        return Commit(
            token=request.token,
            group_id=commit.group_id,
            member_id=commit.member_id,
            generation=commit.generation,
            offsets=tuple(OffsetToCommit(o.topic, o.partition, o.offset, -1, o.metadata) for o in commit.offsets),
            verdicts=verdicts,
        )

    def _delete_group(self, request: DeleteGroup, turn: Turn) -> None:
        """Delete the group with its offsets. Those of a server group belong to a classic group of the same id."""
        group_id = request.group_id
        if self.consumer.find(group_id) is not None:
            self._delete_consumer_group(request, turn)
        elif group_id not in self.server.groups:
            self.offsets.delete_group(request, turn)
        elif self.server.in_use(group_id):
            turn.reply(request.token, DeleteGroupAnswer(Error.NON_EMPTY_GROUP))
        elif group_id not in self.classic.groups:
            self.server.delete(group_id, request.token, turn)
        elif self.offsets.delete_group(request, turn):
            self.server.delete(group_id, None, turn)  # the deletion of the offsets answers

    def _delete_consumer_group(self, request: DeleteGroup, turn: Turn) -> None:
        if self.consumer.in_use(request.group_id):
            turn.reply(request.token, DeleteGroupAnswer(Error.NON_EMPTY_GROUP))
        elif request.group_id not in self.classic.groups:
            self.consumer.delete(request.group_id, request.token, turn)
        elif self.offsets.delete_group(request, turn):
            self.consumer.delete(request.group_id, None, turn)  # the deletion of the offsets answers

    # -- timers ----------------------------------------------------------------------------------

    def timer_fired(self, key: TimerKey, now: Moment) -> Effects:
        """A timer that was set and not cancelled is due."""
        turn = Turn(now, self.limits)
        if key.kind is TimerKind.RETENTION:
            self.offsets.expire(turn)
            for group in self.consumer.every():
                topics, is_used = group.subscribed(), bool(group.members)
                if self.offsets.expire_unsubscribed(group.id, topics, turn, is_used=is_used):
                    self.consumer.delete(group.id, None, turn)
            self._expire_later(turn)
            self.server.forget_old(self.classic.groups, turn)
        elif key.kind is TimerKind.TRANSACTION:
            self.transactions.timer_fired(key.group_id, turn)
        elif key.kind is TimerKind.AWAIT or key.kind is TimerKind.ROUND:
            self.server.timer_fired(key, turn)
        elif key.kind in CONSUMER_TIMERS:
            self.consumer.timer_fired(key, turn)
        else:
            self.classic.timer_fired(key, turn)
        return turn.effects()

    def _expire_later(self, turn: Turn) -> None:
        turn.set_timer(_RETENTION, turn.now.ms + self.limits.retention_check_ms)

    # -- inspection -------------------------------------------------------------------------------------------------

    def knows(self, group_id: str) -> bool:
        """As a group that DescribeGroups describes."""
        if self.consumer.durable(group_id) is not None:
            return False
        return group_id in self.classic.groups or group_id in self.server.groups

    def describe(self, group_id: str) -> GroupDescription:
        if self.consumer.durable(group_id) is not None:
            return describe(None)  # ConsumerGroupDescribe is for those
        group = self.server.groups.get(group_id)
        if group is None or self._has_classic_members(group_id):
            return describe(self.conversions.upgrading.get(group_id) or self.classic.groups.get(group_id))
        return _description(group)

    def list(self, states: Collection[str] = (), types: Collection[str] = ()) -> Iterator[ListedGroup | None]:
        """Every group once; those of the server design under Kafka's group type `classic`. None stands for a group in
        another state.

        Rows are made one at a time, so that a broker with many groups can serve others between them.
        """
        kinds = {kind.lower() for kind in types} or {GROUP_TYPE, CONSUMER_GROUP_TYPE}
        if CONSUMER_GROUP_TYPE in kinds:
            yield from self.consumer.listed({state.lower() for state in states})
        if GROUP_TYPE not in kinds:
            return
        served = {group.id: group for group in self.server.groups.values() if not self._has_classic_members(group.id)}
        for row in listed((self.classic.groups | self.conversions.upgrading).values(), states):
            hidden = row is None or row.group_id in served or self.consumer.durable(row.group_id) is not None
            yield None if hidden else row
        wanted = {state.lower() for state in states}
        for group in served.values():
            is_wanted = not wanted or group.state.value.lower() in wanted
            yield ListedGroup(group.id, SERVER_PROTOCOL_TYPE, GroupState(group.state.value)) if is_wanted else None


def _description(group: ServerGroup) -> GroupDescription:
    """As DescribeGroups shows a classic group, without subscriptions, which are in ZooKeeper."""
    return GroupDescription(
        state=GroupState(group.state.value),
        protocol_type=SERVER_PROTOCOL_TYPE,
        protocol_name=group.record.strategy,
        members=tuple(
            MemberDescription(
                member.member_id,
                None,
                last.client_id if (last := group.last_awaits.get(member.member_id)) else "",
                last.client_host if last else "",
                b"",
                encode_assignment(member.partitions),
            )
            for member in group.record.members
        ),
    )
