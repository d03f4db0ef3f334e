"""One partition of `__consumer_offsets` as a state machine: its groups, their offsets, and the one entrance.

    load       items of the log in any order -> the groups as they were last stored (in pieces: apply, then wake)
    handle     a request -> Outcome
    timer_fired, stored, not_stored   what the doing side reports -> Outcome
    unload     the partition is led elsewhere: everybody who waits is told NOT_COORDINATOR

A shard is for one leader epoch; after `unload` it is thrown away.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from coordinator.groups import authority
from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.classic import join, liveness, rebalance, sync
from coordinator.groups.classic import static_replacement as replacement
from coordinator.groups.classic.group import Group
from coordinator.groups.classic.session_timers import expect_heartbeat
from coordinator.groups.classic.states import State, Trigger
from coordinator.groups.errors import Error
from coordinator.groups.inspection import GroupDescription, ListedGroup, describe, listed
from coordinator.groups.offsets import offsets
from coordinator.groups.offsets.committed_offsets import Holdings
from coordinator.groups.offsets.transactions import Transactions
from coordinator.groups.outcome import (
    AssignmentStored,
    Outcome,
    ReplacementStored,
    TimerKey,
    TimerKind,
    TransactionStored,
    Turn,
)
from coordinator.groups.records import GroupKey, ProducerKey, TransactionKey
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
    Request,
    Sync,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from coordinator.groups.offsets.offsets import Fetched, Offsets
    from coordinator.groups.outcome import ClassicContinuation, Limits, Marker, Moment
    from coordinator.groups.records import Change, GroupRecord, OffsetRecord, ProducerRecord, TransactionRecord

_RETENTION = TimerKey(TimerKind.RETENTION, "")


class Shard:
    """The groups of one partition. Every event is one call, which returns everything that follows from it."""

    def __init__(self, limits: Limits, kept: Callable[[str, Turn], bool] = lambda _, __: False) -> None:
        """`kept(group_id, turn)`: another design looks after this group's members, so that its offsets are in use."""
        self.limits = limits
        self.groups: dict[str, Group] = {}
        self.holdings = Holdings(self.groups, kept)
        self.transactions = Transactions()

    @property
    def offsets(self) -> dict[str, Offsets]:
        """What is committed, by group."""
        return self.holdings.offsets

    # -- hard state -------------------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Take over one stored record; the same code when it has just become durable and on load."""
        key, value = change
        if isinstance(key, GroupKey):
            self._apply_group(key, cast("GroupRecord | None", value))
        elif isinstance(key, TransactionKey):
            self.transactions.apply(key, cast("TransactionRecord | None", value))
        elif isinstance(key, ProducerKey):
            self.holdings.pending.know(key, cast("ProducerRecord | None", value))
        else:
            self.holdings.apply(key, cast("OffsetRecord | None", value))

    def _apply_group(self, key: GroupKey, record: GroupRecord | None) -> None:
        if record is None:
            self.groups.pop(key.group_id, None)
            return
        self.groups[key.group_id] = Group.from_record(key.group_id, record)

    def load(self, changes: Iterable[Change], now: Moment) -> Outcome:
        """Take over everything that is stored, at once. Into a fresh shard only."""
        assert not self.groups, "a shard is loaded once"
        for change in changes:
            self.apply(change)
        turn = Turn(now, self.limits)
        for step in self.wake():
            step(turn)
        return turn.outcome()

    def wake(self) -> Iterator[Callable[[Turn], None]]:
        """What follows when everything that is stored has been applied, in steps that may be turns of their own.

        Each member's session starts anew. Transactions come last: they have something to tell the groups.
        """
        self.holdings.pending.settle(self.offsets)
        yield self._look_for_old_offsets_later
        for group in list(self.groups.values()):
            yield partial(self._wake_group, group)
        yield self.transactions.load

    def _wake_group(self, group: Group, turn: Turn) -> None:
        for member in group.members.values():
            expect_heartbeat(group, member, turn)
        authority.name(group, turn)
        if len(group.members) > self.limits.members_max:
            rebalance.prepare(group, Trigger.OVERSIZED, turn)

    def unload(self, now: Moment) -> Outcome:
        """The partition is led elsewhere. Requests that wait are answered NOT_COORDINATOR, timers cancelled."""
        turn = Turn(now, self.limits)
        for group in self.groups.values():
            if group.state is State.DEAD:
                continue
            for member in group.members.values():
                group.answer_join(member, JoinAnswer(error=Error.NOT_COORDINATOR, member_id=member.id), turn)
                if member.parked_sync is not None:
                    turn.reply(member.parked_sync, SyncAnswer(error=Error.NOT_COORDINATOR))
                    member.parked_sync = None
            rebalance.cancel_timers(group, turn)
            group.move(Trigger.UNLOADED, turn)
        self.transactions.unload(turn)
        turn.cancel_timer(_RETENTION)
        return turn.outcome()

    # -- requests ---------------------------------------------------------------------------------------------

    def handle(self, request: Request, now: Moment) -> Outcome:
        """One request; its group id has been found good, and this shard is the one for it."""
        turn = Turn(now, self.limits)
        match request:
            case Heartbeat():  # most of what is asked; then come Join and Sync
                liveness.heartbeat(self.groups.get(request.group_id), request, turn)
            case Join():
                self._join(self.groups.get(request.group_id), request, turn)
            case Sync():
                sync.sync(self.groups.get(request.group_id), request, turn)
            case InitProducer() | AddGroup() | AddPartitions() | EndTransaction():
                self.transactions.handle(request, turn)
            case Mark():
                self.holdings.mark(request, turn)
            case _:
                self._handle_group(request, turn)
        return turn.outcome()

    def _handle_group(self, request: Leave | Commit | DeleteGroup | DeleteOffsets, turn: Turn) -> None:
        group = self.groups.get(request.group_id)
        match request:
            case Commit():
                self.holdings.commit(group, request, turn)
            case Leave():
                liveness.leave(group, request, turn)
            case DeleteGroup():
                self.holdings.delete_group(group, request, turn)
            case DeleteOffsets():
                pending = self.holdings.pending.of_group(request.group_id)
                offsets.delete(group, self.offsets.get(request.group_id, {}), pending, request, turn)

    def _join(self, group: Group | None, request: Join, turn: Turn) -> None:
        limits = self.limits
        if not limits.session_timeout_ms_min <= request.session_timeout_ms <= limits.session_timeout_ms_max:
            join.refuse(request, Error.INVALID_SESSION_TIMEOUT, turn)
            return
        if group is None:
            if request.member_id != UNKNOWN_MEMBER:
                join.refuse(request, Error.UNKNOWN_MEMBER_ID, turn)
                return
            group = self.groups[request.group_id] = Group(request.group_id)
            # The group exists from its first JoinGroup on, also for a coordinator that takes over now.
            turn.write((GroupKey(group.id), group.record({}, turn.now.wall_ms)))
        join.join(group, request, turn)

    def _look_for_old_offsets_later(self, turn: Turn) -> None:
        turn.set_timer(_RETENTION, turn.now.ms + self.limits.retention_check_ms)

    # -- reports of the doing side ----------------------------------------------------------------------------

    def timer_fired(self, key: TimerKey, now: Moment) -> Outcome:
        """A timer that was set and not cancelled is due."""
        turn = Turn(now, self.limits)
        if key.kind is TimerKind.RETENTION:
            self.holdings.expire(turn)
            self._look_for_old_offsets_later(turn)
            return turn.outcome()
        if key.kind is TimerKind.TRANSACTION:
            self.transactions.timer_fired(key.group_id, turn)
            return turn.outcome()
        group = self.groups.get(key.group_id)
        if group is not None and group.state is not State.DEAD:
            if key.kind is TimerKind.SESSION:
                liveness.session_timer_fired(group, key.member_id, turn)
            elif key.kind is TimerKind.JOIN:
                rebalance.join_timer_fired(group, turn)
            else:
                rebalance.sync_timer_fired(group, turn)
        return turn.outcome()

    def stored(self, done: ClassicContinuation, now: Moment) -> Outcome:
        """A write is durable."""
        turn = Turn(now, self.limits)
        match done:
            case AssignmentStored(group_id=group_id):
                if (group := self.groups.get(group_id)) is not None:
                    sync.stored(group, done, turn)
            case ReplacementStored():
                if (group := self.groups.get(done.request.group_id)) is not None:
                    replacement.stored(group, done, turn)
            case TransactionStored():
                self.transactions.stored(done, turn)
            case _:
                self.holdings.stored(done, turn)
        return turn.outcome()

    def not_stored(self, done: ClassicContinuation, error: Error, now: Moment) -> Outcome:
        """A write was refused (NOT_COORDINATOR: somebody leads at a higher epoch) or failed: nothing of it counts."""
        turn = Turn(now, self.limits)
        match done:
            case AssignmentStored(group_id=group_id):
                if (group := self.groups.get(group_id)) is not None:
                    sync.not_stored(group, done, error, turn)
            case ReplacementStored():
                if (group := self.groups.get(done.request.group_id)) is not None:
                    replacement.not_stored(group, done, error, turn)
            case TransactionStored():
                self.transactions.not_stored(done, error, turn)
            case _:
                self.holdings.not_stored(done, error, turn)
        return turn.outcome()

    def marked(self, marker: Marker, now: Moment) -> Outcome:
        """A marker has been delivered to all its partitions."""
        turn = Turn(now, self.limits)
        self.transactions.marked(marker, turn)
        return turn.outcome()

    # -- looking ----------------------------------------------------------------------------------------------

    def fetch_offsets(
        self, group_id: str, wanted: tuple[tuple[str, int], ...] | None, *, stable: bool = False
    ) -> list[Fetched]:
        """OffsetFetch of one group; `wanted` None: everything committed; `stable`: not what may change (KIP-447)."""
        unstable = self.holdings.pending.is_pending if stable else None
        return offsets.fetch(self.groups.get(group_id), self.offsets.get(group_id, {}), wanted, unstable)

    def describe(self, group_id: str) -> GroupDescription:
        return describe(self.groups.get(group_id))

    def list(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> Iterator[ListedGroup]:
        return listed(self.groups.values(), states, types)
