"""What the groups of a partition hold besides members: committed and pending offsets, and how both come to an end.

A group's offsets end when it is deleted, when an administrator deletes them, and when they are too old (`expiry`);
an Empty group without any ends too. Whatever is buried takes along what is on its way to the log at that moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from coordinator.groups.answers import DeleteGroupAnswer, DeleteOffsetsAnswer, TransactionAnswer
from coordinator.groups.classic import rebalance
from coordinator.groups.classic.group import Group
from coordinator.groups.classic.states import State, Trigger
from coordinator.groups.errors import Error
from coordinator.groups.offsets import expiry, offsets
from coordinator.groups.offsets.pending_offsets import Pending
from coordinator.groups.outcome import GroupDeleted, Marked, OffsetsDeleted, OffsetsExpired, OffsetsStored
from coordinator.groups.records import GroupKey, OffsetKey, PendingKey, ProducerKey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinator.groups.outcome import Turn
    from coordinator.groups.records import Change, OffsetRecord, ProducerRecord
    from coordinator.groups.requests import Commit, DeleteGroup, Mark

Held = OffsetKey | PendingKey
HoldingsStored = OffsetsStored | OffsetsDeleted | OffsetsExpired | GroupDeleted | Marked


class Holdings:
    """Of all groups of one partition; `groups` is the shard's. `kept` are those whose offsets grow not too old."""

    def __init__(self, groups: dict[str, Group], kept: Callable[[str, Turn], bool] = lambda _, __: False) -> None:
        self._kept = kept
        self.offsets: dict[str, offsets.Offsets] = {}
        self.pending = Pending()
        self._groups = groups
        #: Offsets on their way to the log, by group: deleting the group has to bury them too.
        self._in_flight: dict[str, dict[int, OffsetsStored | Marked]] = {}

    # -- hard state -------------------------------------------------------------------------------------------

    def apply(self, key: Held, record: OffsetRecord | None) -> None:
        if record is not None and key.group_id not in self._groups:
            self._groups[key.group_id] = Group(key.group_id)  # a simple group is made by its offsets
        if isinstance(key, OffsetKey):
            at = (key.topic, key.partition)
            if record is None:
                self.offsets.get(key.group_id, {}).pop(at, None)
            else:
                self.offsets.setdefault(key.group_id, {})[at] = record
        elif record is None:
            self.pending.remove(key)
        else:
            self.pending.add(key, record)

    def _taken_off(self, write: OffsetsStored | Marked) -> None:
        for group_id in write.group_ids():
            self._in_flight.setdefault(group_id, {})[id(write)] = write

    def _landed(self, write: OffsetsStored | Marked) -> None:
        for group_id in write.group_ids():
            flying = self._in_flight[group_id]
            del flying[id(write)]
            if not flying:
                del self._in_flight[group_id]

    def _flying(self, group_id: str) -> dict[Held, None]:
        """What is on its way to the log for one group, as a set."""
        writes = self._in_flight.get(group_id, {}).values()
        return {key: None for write in writes for key, _ in write.offsets() if key.group_id == group_id}

    # -- requests ---------------------------------------------------------------------------------------------

    def commit(self, group: Group | None, request: Commit, turn: Turn) -> None:
        """OffsetCommit and TxnOffsetCommit."""
        producer = request.producer
        if producer is not None and self.pending.fences(producer):
            offsets.refuse_commit(request, Error.INVALID_PRODUCER_EPOCH, turn)
            return
        done = offsets.commit(group, request, turn, () if producer is None else self.pending.seen(producer))
        if done is not None:
            self._taken_off(done)

    def mark(self, request: Mark, turn: Turn) -> None:
        """The transaction of a producer has ended. What of it is on its way to the log is waited for."""
        refusal = self.pending.mark_refusal(request)
        if refusal is None and any(
            isinstance(key, PendingKey) and key.producer_id == request.producer.id
            for group_id in self._in_flight
            for key in self._flying(group_id)
        ):
            refusal = Error.CONCURRENT_TRANSACTIONS
        changes = self.pending.marked(request) if refusal is None else ()
        if not changes:
            turn.reply(request.token, TransactionAnswer(error=refusal or Error.NONE))
            return
        done = Marked(request, changes)
        self._taken_off(done)
        turn.write(*changes, then=done)

    def delete_group(self, group: Group | None, request: DeleteGroup, turn: Turn) -> None:
        """DeleteGroups of one group: only an Empty one, with all that it holds."""
        if group is None or group.state is State.DEAD:
            turn.reply(request.token, DeleteGroupAnswer(Error.GROUP_ID_NOT_FOUND))
            return
        if group.state is not State.EMPTY:
            turn.reply(request.token, DeleteGroupAnswer(Error.NON_EMPTY_GROUP))
            return
        rebalance.cancel_timers(group, turn)
        group.move(Trigger.DELETED, turn)
        keys: dict[Held, None] = dict.fromkeys(OffsetKey(group.id, *at) for at in self.offsets.get(group.id, {}))
        keys.update(dict.fromkeys(self.pending.of_group(group.id)))
        keys.update(self._flying(group.id))
        tombstones: list[Change] = [_tombstone(key) for key in keys]
        turn.write(*tombstones, (GroupKey(group.id), None), then=GroupDeleted(request.token, group.id))

    def expire(self, turn: Turn) -> None:
        """Bury what is too old, and groups that are Empty with nothing left."""
        for group in self._groups.values():
            if group.state is not State.DEAD and not self._kept(group.id, turn):
                self._expire_of(group, turn)

    def _expire_of(self, group: Group, turn: Turn) -> None:
        held = self.offsets.get(group.id, {})
        flying = self._flying(group.id)
        old = expiry.expired(group, held, wall_ms=turn.now.wall_ms, retention_ms=turn.limits.retention_ms)
        gone: list[tuple[OffsetKey, None]] = [
            (key, None)
            for key in (OffsetKey(group.id, *at) for at in old)
            if key not in flying and not self.pending.is_pending(*key)
        ]
        is_last = len(gone) == len(held) and not flying and not self.pending.of_group(group.id)
        if group.state is State.EMPTY and is_last:
            rebalance.cancel_timers(group, turn)
            group.move(Trigger.EXPIRED, turn)
            turn.write(*gone, (GroupKey(group.id), None), then=OffsetsExpired(group.id, tuple(gone), True))
        elif gone:
            turn.write(*gone, then=OffsetsExpired(group.id, tuple(gone), False))

    # -- reports of the doing side ----------------------------------------------------------------------------

    def stored(self, done: HoldingsStored, turn: Turn) -> None:
        match done:
            case OffsetsStored():
                self._committed(done, turn)
            case GroupDeleted(token=token, group_id=group_id):
                self._bury(group_id)
                turn.reply(token, DeleteGroupAnswer(Error.NONE))
            case OffsetsDeleted(token=token, answer=answer):
                for key, _ in done.changes:
                    self.apply(key, None)
                turn.reply(token, answer)
            case OffsetsExpired():
                for key, _ in done.changes:
                    self.apply(key, None)
                if done.ends_group:
                    self._bury(done.group_id)
            case Marked():
                self._marked(done, turn)

    def _committed(self, done: OffsetsStored, turn: Turn) -> None:
        self._landed(done)
        for key, record in done.offsets():
            self.apply(key, record)
        if done.request.producer is None:
            self.pending.overtaken(done.offsets())
        else:
            self._learn_fences(done.changes)
        offsets.stored(done, turn)

    def _learn_fences(self, changes: Iterable[Change]) -> None:
        for key, fence in changes:
            if isinstance(key, ProducerKey):
                self.pending.know(key, cast("ProducerRecord", fence))

    def _marked(self, done: Marked, turn: Turn) -> None:
        self._landed(done)
        for key, record in done.offsets():
            if isinstance(key, PendingKey):
                self.pending.remove(key, committed=done.request.commits)
            else:
                self.apply(key, record)
        self._learn_fences(done.changes)
        offsets.trace_committed(done.request, done.changes, turn)
        turn.reply(done.request.token, TransactionAnswer())

    def not_stored(self, done: HoldingsStored, error: Error, turn: Turn) -> None:
        match done:
            case OffsetsStored(request=commit):
                self._landed(done)
                offsets.refuse_commit(commit, error, turn)
            case GroupDeleted(token=token, group_id=group_id):
                self._revive(group_id)
                turn.reply(token, DeleteGroupAnswer(error))
            case OffsetsDeleted(token=token):
                turn.reply(token, DeleteOffsetsAnswer(error=error))
            case OffsetsExpired(group_id=group_id, ends_group=ends_group):
                if ends_group:
                    self._revive(group_id)
            case Marked(request=mark):
                self._landed(done)
                turn.reply(mark.token, TransactionAnswer(error=error))

    def _bury(self, group_id: str) -> None:
        """Nothing of the group is stored any more."""
        self._groups.pop(group_id, None)
        self.offsets.pop(group_id, None)
        for key in self.pending.of_group(group_id):
            self.pending.remove(key)

    def _revive(self, group_id: str) -> None:
        """Burying failed: Dead is terminal, so a new group takes the place, with what was stored of the old one."""
        dead = self._groups[group_id]
        self._groups[group_id] = Group(
            group_id,
            generation=dead.generation,
            protocol_type=dead.protocol_type,
            state_wall_ms=dead.state_wall_ms,
        )


def _tombstone(key: Held) -> Change:
    return cast("Change", (key, None))
