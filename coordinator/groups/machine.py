"""One partition of `__consumer_offsets` as one machine: the classic groups' shard and the server design's groups.

Both kinds have their offsets in the shard. A group id belongs to one design at a time: whichever has members. What
the other one's members ask for is refused with INCONSISTENT_GROUP_PROTOCOL, and commits of nobody in particular with
UNKNOWN_MEMBER_ID, as Kafka refuses them for a group with members.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.answers import DeleteGroupAnswer, DeleteOffsetsAnswer, JoinAnswer
from coordinator.groups.classic.states import State
from coordinator.groups.errors import Error
from coordinator.groups.inspection import GROUP_TYPE, GroupDescription, ListedGroup, MemberDescription
from coordinator.groups.offsets import offsets
from coordinator.groups.outcome import (
    GenerationStored,
    Outcome,
    ServerGroupDeleted,
    TimerKind,
    Turn,
)
from coordinator.groups.records import OffsetRecord, ServerKey
from coordinator.groups.requests import Commit, DeleteGroup, DeleteOffsets, Join, OffsetToCommit, Sync
from coordinator.groups.server.groups import ServerGroups
from coordinator.groups.server.requests import Await, OwnedCommit
from coordinator.groups.shard import Shard
from coordinator.protocol.consumer_protocol import encode_assignment
from coordinator.protocol.server_commands import Commanded
from coordinator.protocol.server_errors import ServerError
from kernel.values import NO_OFFSET

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from coordinator.groups.offsets.committed_offsets import Holdings
    from coordinator.groups.offsets.offsets import Fetched
    from coordinator.groups.offsets.transactions import Transactions
    from coordinator.groups.outcome import Continuation, Limits, Marker, Moment, TimerKey
    from coordinator.groups.records import ServerRecord, StoredChange
    from coordinator.groups.requests import Request
    from coordinator.groups.server.group import Rules, ServerGroup
    from coordinator.groups.server.requests import Decide

#: What DescribeGroups and ListGroups call the design.
SERVER_PROTOCOL_TYPE = "server"


class Machine:
    """For one leader epoch. Every event is one call, as of `Shard`, which returns everything that follows from it."""

    def __init__(self, limits: Limits, rules: Rules, size_of: Callable[[str], int]) -> None:
        """`size_of(topic)` is the number of a topic's partitions now, 0 where there is none."""
        self._limits = limits
        self.served = ServerGroups(rules, size_of, self._offset_of)
        self.classic = Shard(limits, kept=self.served.keeps)

    @property
    def transactions(self) -> Transactions:
        return self.classic.transactions

    @property
    def holdings(self) -> Holdings:
        return self.classic.holdings

    def _offset_of(self, group_id: str, topic: str, partition: int) -> int:
        ((_, _, found),) = self.classic.fetch_offsets(group_id, ((topic, partition),))
        return found.offset if isinstance(found, OffsetRecord) else NO_OFFSET

    # -- hard state -------------------------------------------------------------------------------------------------

    def load(self, changes: Iterable[StoredChange], now: Moment) -> Outcome:
        """Everything that is stored, in any order, at once."""
        for change in changes:
            self.apply(change)
        turn = Turn(now, self._limits)
        for step in self._wake():
            step(turn)
        return turn.outcome()

    def apply(self, change: StoredChange) -> None:
        """Take over one stored record, as the first part of loading in pieces."""
        if isinstance(change[0], ServerKey):
            self.served.apply(change)
        else:
            self.classic.apply(change)

    def wake(self) -> Iterator[Callable[[Moment], Outcome]]:
        """The second part, when all records have been applied: events, each to be put when its turn comes."""
        for step in self._wake():
            yield partial(self._taken, step)

    def _wake(self) -> Iterator[Callable[[Turn], None]]:
        yield from self.classic.wake()
        yield from self.served.wake()

    def _taken(self, step: Callable[[Turn], None], now: Moment) -> Outcome:
        turn = Turn(now, self._limits)
        step(turn)
        return turn.outcome()

    def unload(self, now: Moment) -> Outcome:
        turn = Turn(now, self._limits)
        self.served.unload(turn)
        return merged(self.classic.unload(now), turn.outcome())

    # -- requests ---------------------------------------------------------------------------------------------------

    def handle(self, request: Request | Await | OwnedCommit, now: Moment) -> Outcome:
        """One request; its group id has been found good, and this machine is the one for it."""
        match request:
            case Sync():  # what thousands ask at once comes first, with Join if the other design has no such group
                return self.classic.handle(request, now)
            case Join() if not self.served.in_use(request.group_id):
                return self.classic.handle(request, now)
            case Await():
                turn = Turn(now, self._limits)
                if self._is_classic(request.asked.group_id):
                    turn.reply(request.token, Commanded(error=ServerError.INCONSISTENT_GROUP_PROTOCOL))
                else:
                    self.served.ask(request, turn)
                return turn.outcome()
            case OwnedCommit():
                return self.classic.handle(self._judged(request), now)
            case DeleteGroup() if request.group_id in self.served.groups:
                return self._delete_group(request, now)
            case Join() | Commit() | DeleteOffsets() if self.served.in_use(request.group_id):
                turn = Turn(now, self._limits)
                self._refuse(request, turn)
                return turn.outcome()
        return self.classic.handle(request, now)

    def _is_classic(self, group_id: str) -> bool:
        """Whether JoinGroup's members have the group id."""
        group = self.classic.groups.get(group_id)
        return group is not None and group.state is not State.DEAD and bool(group.members or group.pending)

    def _judged(self, request: OwnedCommit) -> Commit:
        commit = request.commit
        if self._is_classic(commit.group_id):
            every = ((owned.topic, owned.partition) for owned in commit.offsets)
            verdicts = dict.fromkeys(every, Error.INCONSISTENT_GROUP_PROTOCOL)
        else:
            verdicts = self.served.verdicts(commit)
        return Commit(
            token=request.token,
            group_id=commit.group_id,
            member_id=commit.member_id,
            generation=commit.generation,
            offsets=tuple(OffsetToCommit(o.topic, o.partition, o.offset, -1, o.metadata) for o in commit.offsets),
            verdicts=verdicts,
        )

    @staticmethod
    def _refuse(request: Join | Commit | DeleteOffsets, turn: Turn) -> None:
        match request:
            case Join():
                error = Error.INCONSISTENT_GROUP_PROTOCOL
                turn.reply(request.token, JoinAnswer(error=error, member_id=request.member_id))
            case Commit():
                offsets.refuse_commit(request, Error.UNKNOWN_MEMBER_ID, turn)
            case DeleteOffsets():
                turn.reply(request.token, DeleteOffsetsAnswer(error=Error.NON_EMPTY_GROUP))

    def _delete_group(self, request: DeleteGroup, now: Moment) -> Outcome:
        """With all that it holds: the classic shard has the offsets, under a group of its own if there are any."""
        turn = Turn(now, self._limits)
        if self.served.in_use(request.group_id):
            turn.reply(request.token, DeleteGroupAnswer(Error.NON_EMPTY_GROUP))
            return turn.outcome()
        if request.group_id not in self.classic.groups:
            self.served.delete(request.group_id, request.token, turn)
            return turn.outcome()
        outcome = self.classic.handle(request, now)
        if not outcome.replies:  # it is on its way, and will answer
            self.served.delete(request.group_id, None, turn)
        return merged(outcome, turn.outcome())

    # -- ZooKeeper, topics ------------------------------------------------------------------------------------------

    def seen(self, group_id: str, ids: Mapping[str, tuple[str, ...]], now: Moment) -> Outcome:
        """What `WatchIds` asked for: {member id: topics}."""
        turn = Turn(now, self._limits)
        self.served.seen(group_id, ids, turn)
        return turn.outcome()

    def topics_changed(self, now: Moment) -> Outcome:
        """Topics came, went or grew: what `size_of` says is not what it was."""
        turn = Turn(now, self._limits)
        self.served.topics_changed(turn)
        return turn.outcome()

    def decided(self, asked: Decide, record: ServerRecord | None, now: Moment) -> Outcome:
        """What `Decide` asked for; None: the strategy has failed."""
        turn = Turn(now, self._limits)
        self.served.decided(asked, record, turn)
        return turn.outcome()

    # -- reports of the doing side ----------------------------------------------------------------------------------

    def timer_fired(self, key: TimerKey, now: Moment) -> Outcome:
        turn = Turn(now, self._limits)
        if key.kind is TimerKind.RETENTION:
            self.served.forget_old(self.classic.groups, turn)
            return merged(self.classic.timer_fired(key, now), turn.outcome())
        if key.kind not in (TimerKind.AWAIT, TimerKind.ROUND):
            return self.classic.timer_fired(key, now)
        self.served.timer_fired(key, turn)
        return turn.outcome()

    def stored(self, done: Continuation, now: Moment) -> Outcome:
        if not isinstance(done, GenerationStored | ServerGroupDeleted):
            return self.classic.stored(done, now)
        turn = Turn(now, self._limits)
        self.served.stored(done, turn)
        return turn.outcome()

    def not_stored(self, done: Continuation, error: Error, now: Moment) -> Outcome:
        if not isinstance(done, GenerationStored | ServerGroupDeleted):
            return self.classic.not_stored(done, error, now)
        turn = Turn(now, self._limits)
        self.served.not_stored(done, error, turn)
        return turn.outcome()

    def marked(self, marker: Marker, now: Moment) -> Outcome:
        return self.classic.marked(marker, now)

    # -- looking ----------------------------------------------------------------------------------------------------

    def fetch_offsets(
        self, group_id: str, wanted: tuple[tuple[str, int], ...] | None, *, stable: bool = False
    ) -> list[Fetched]:
        """As `Shard.fetch_offsets`, of groups of both designs."""
        return self.classic.fetch_offsets(group_id, wanted, stable=stable)

    def knows(self, group_id: str) -> bool:
        return group_id in self.classic.groups or group_id in self.served.groups

    def describe(self, group_id: str) -> GroupDescription:
        group = self.served.groups.get(group_id)
        if group is None or self._is_classic(group_id):
            return self.classic.describe(group_id)
        return _description(group)

    def list(self, states: Collection[str] = (), types: Collection[str] = ()) -> Iterator[ListedGroup]:
        """Every group once; those of the server design under Kafka's group type `classic`.

        Rows are made one at a time, so that a broker with many groups can serve others between them.
        """
        if types and GROUP_TYPE not in {kind.lower() for kind in types}:
            return
        served = {group.id: group for group in self.served.groups.values() if not self._is_classic(group.id)}
        yield from (row for row in self.classic.list(states) if row.group_id not in served)
        wanted = {state.lower() for state in states}
        for group in served.values():
            if not wanted or group.state.value.lower() in wanted:
                yield ListedGroup(group.id, SERVER_PROTOCOL_TYPE, State(group.state.value))


def _description(group: ServerGroup) -> GroupDescription:
    """As DescribeGroups shows a classic group; subscriptions are in ZooKeeper and are not repeated here."""
    return GroupDescription(
        state=State(group.state.value),
        protocol_type=SERVER_PROTOCOL_TYPE,
        protocol_name=group.record.strategy,
        members=tuple(
            MemberDescription(
                member.member_id,
                None,
                asking.client_id if (asking := group.asking.get(member.member_id)) else "",
                asking.client_host if asking else "",
                b"",
                encode_assignment(member.partitions),
            )
            for member in group.record.members
        ),
    )


def merged(first: Outcome, second: Outcome) -> Outcome:
    """What follows from both, in this order."""
    return Outcome(
        first.timers + second.timers,
        first.events + second.events,
        first.replies + second.replies,
        first.abandoned + second.abandoned,
        first.writes + second.writes,
        first.markers + second.markers,
        first.looks + second.looks,
        first.decisions + second.decisions,
    )
