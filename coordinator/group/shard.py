"""One partition of `__consumer_offsets` as a state machine: its groups, their offsets, and the one entrance.

    load       items of the log in any order -> the groups as they were last stored
    handle     a request -> Outcome
    timer_fired, stored, not_stored   what the doing side reports -> Outcome
    unload     the partition is led elsewhere: everybody who waits is told NOT_COORDINATOR

A shard is for one leader epoch; after `unload` it is thrown away.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from coordinator.group import authority, join, liveness, offsets, rebalance, replacement, sync
from coordinator.group.answers import DeleteGroupAnswer, JoinAnswer, SyncAnswer
from coordinator.group.errors import Error
from coordinator.group.group import Group
from coordinator.group.inspection import GroupDescription, ListedGroup, describe, listed
from coordinator.group.outcome import (
    AssignmentStored,
    GroupDeleted,
    OffsetsDeleted,
    OffsetsStored,
    Outcome,
    ReplacementStored,
    TimerKind,
    Turn,
)
from coordinator.group.records import GroupKey, GroupRecord, OffsetKey, OffsetRecord
from coordinator.group.requests import (
    UNKNOWN_MEMBER,
    Commit,
    DeleteGroup,
    DeleteOffsets,
    Heartbeat,
    Join,
    Leave,
    Request,
    Sync,
)
from coordinator.group.states import State, Trigger
from coordinator.group.vigils import expect_heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable

    from coordinator.group.outcome import Continuation, Limits, Moment, TimerKey
    from coordinator.group.records import Change


class Shard:
    """The groups of one partition. Every event is one call, which returns everything that follows from it."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, offsets.Offsets] = {}
        #: Offsets on their way to the log, by group: deleting the group has to bury them too.
        self._in_flight: dict[str, Counter[OffsetKey]] = {}

    # -- hard state -------------------------------------------------------------------------------------------

    def apply(self, change: Change) -> None:
        """Take over one stored record; the same code when it has just become durable and on load."""
        key, value = change
        if isinstance(key, GroupKey):
            self._apply_group(key, value)
        else:
            self._apply_offset(key, value)

    def _apply_group(self, key: GroupKey, record: GroupRecord | OffsetRecord | None) -> None:
        if record is None:
            self.groups.pop(key.group_id, None)
            return
        assert isinstance(record, GroupRecord), f"a group's key with {record!r}"
        self.groups[key.group_id] = Group.from_record(key.group_id, record)

    def _apply_offset(self, key: OffsetKey, record: GroupRecord | OffsetRecord | None) -> None:
        at = (key.topic, key.partition)
        if record is None:
            self.offsets.get(key.group_id, {}).pop(at, None)
            return
        assert isinstance(record, OffsetRecord), f"an offset's key with {record!r}"
        self.groups.setdefault(key.group_id, Group(key.group_id))  # a simple group is made by its offsets
        self.offsets.setdefault(key.group_id, {})[at] = record

    def load(self, changes: Iterable[Change], now: Moment) -> Outcome:
        """Take over everything that is stored; each member's session starts anew. Into a fresh shard only."""
        assert not self.groups, "a shard is loaded once"
        for change in changes:
            self.apply(change)
        turn = Turn(now, self.limits)
        for group in self.groups.values():
            for member in group.members.values():
                expect_heartbeat(group, member, turn)
            authority.name(group, turn)
            if len(group.members) > self.limits.members_max:
                rebalance.prepare(group, Trigger.OVERSIZED, turn)
        return turn.outcome()

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
        return turn.outcome()

    # -- requests ---------------------------------------------------------------------------------------------

    def handle(self, request: Request, now: Moment) -> Outcome:
        """One request; its group id has been found good, and this shard is the one for it."""
        turn = Turn(now, self.limits)
        group = self.groups.get(request.group_id)
        match request:
            case Heartbeat():
                liveness.heartbeat(group, request, turn)
            case Commit():
                self._commit(group, request, turn)
            case Join():
                self._join(group, request, turn)
            case Sync():
                sync.sync(group, request, turn)
            case Leave():
                liveness.leave(group, request, turn)
            case DeleteGroup():
                self._delete_group(group, request, turn)
            case DeleteOffsets():
                offsets.delete(group, self.offsets.get(request.group_id, {}), request, turn)
        return turn.outcome()

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

    def _commit(self, group: Group | None, request: Commit, turn: Turn) -> None:
        done = offsets.commit(group, request, turn)
        if done is not None:
            self._in_flight.setdefault(request.group_id, Counter()).update(done.keys())

    def _landed(self, done: OffsetsStored) -> None:
        flying = self._in_flight[done.request.group_id]
        flying.subtract(done.keys())
        if not +flying:
            del self._in_flight[done.request.group_id]

    def _delete_group(self, group: Group | None, request: DeleteGroup, turn: Turn) -> None:
        if group is None or group.state is State.DEAD:
            turn.reply(request.token, DeleteGroupAnswer(Error.GROUP_ID_NOT_FOUND))
            return
        if group.state is not State.EMPTY:
            turn.reply(request.token, DeleteGroupAnswer(Error.NON_EMPTY_GROUP))
            return
        rebalance.cancel_timers(group, turn)
        group.move(Trigger.DELETED, turn)
        keys = dict.fromkeys(OffsetKey(group.id, *at) for at in self.offsets.get(group.id, {}))
        keys.update(dict.fromkeys(self._in_flight.get(group.id, ())))
        tombstones: list[Change] = [(key, None) for key in keys]
        turn.write(*tombstones, (GroupKey(group.id), None), then=GroupDeleted(request.token, group.id))

    # -- reports of the doing side ----------------------------------------------------------------------------

    def timer_fired(self, key: TimerKey, now: Moment) -> Outcome:
        """A timer that was set and not cancelled is due."""
        turn = Turn(now, self.limits)
        group = self.groups.get(key.group_id)
        if group is not None and group.state is not State.DEAD:
            if key.kind is TimerKind.SESSION:
                liveness.session_timer_fired(group, key.member_id, turn)
            elif key.kind is TimerKind.JOIN:
                rebalance.join_timer_fired(group, turn)
            else:
                rebalance.sync_timer_fired(group, turn)
        return turn.outcome()

    def stored(self, done: Continuation, now: Moment) -> Outcome:
        """A write is durable."""
        turn = Turn(now, self.limits)
        match done:
            case OffsetsStored():
                self._landed(done)
                for change in done.changes:
                    self.apply(change)
                offsets.stored(done, turn)
            case AssignmentStored(group_id=group_id):
                if (group := self.groups.get(group_id)) is not None:
                    sync.stored(group, done, turn)
            case ReplacementStored():
                if (group := self.groups.get(done.request.group_id)) is not None:
                    replacement.stored(group, done, turn)
            case GroupDeleted(token=token, group_id=group_id):
                self.groups.pop(group_id, None)
                self.offsets.pop(group_id, None)
                turn.reply(token, DeleteGroupAnswer(Error.NONE))
            case OffsetsDeleted(token=token, answer=answer):
                for key, _ in done.changes:
                    self.apply((key, None))
                turn.reply(token, answer)
        return turn.outcome()

    def not_stored(self, done: Continuation, error: Error, now: Moment) -> Outcome:
        """A write was refused (NOT_COORDINATOR: somebody leads at a higher epoch) or failed: nothing of it counts."""
        turn = Turn(now, self.limits)
        match done:
            case OffsetsStored(request=request):
                self._landed(done)
                offsets.refuse_commit(request, error, turn)
            case AssignmentStored(group_id=group_id):
                if (group := self.groups.get(group_id)) is not None:
                    sync.not_stored(group, done, error, turn)
            case ReplacementStored():
                if (group := self.groups.get(done.request.group_id)) is not None:
                    replacement.not_stored(group, done, error, turn)
            case GroupDeleted(token=token, group_id=group_id):
                self._revive(group_id)
                turn.reply(token, DeleteGroupAnswer(error))
            case OffsetsDeleted(token=token, answer=answer):
                turn.reply(token, type(answer)(error=error))
        return turn.outcome()

    def _revive(self, group_id: str) -> None:
        """Deleting failed: Dead is terminal, so a new group takes the place, with what was stored of the old one."""
        dead = self.groups[group_id]
        self.groups[group_id] = Group(
            group_id,
            generation=dead.generation,
            protocol_type=dead.protocol_type,
            state_wall_ms=dead.state_wall_ms,
        )

    # -- looking ----------------------------------------------------------------------------------------------

    def fetch_offsets(
        self, group_id: str, wanted: tuple[tuple[str, int], ...] | None
    ) -> list[tuple[str, int, OffsetRecord | None]]:
        """OffsetFetch of one group; `wanted` None: everything committed."""
        return offsets.fetch(self.groups.get(group_id), self.offsets.get(group_id, {}), wanted)

    def describe(self, group_id: str) -> GroupDescription:
        return describe(self.groups.get(group_id))

    def list(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        return listed(self.groups.values(), states, types)
