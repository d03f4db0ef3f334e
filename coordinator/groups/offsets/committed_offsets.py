"""The committed and pending offsets of all groups of a partition, and how both end.

Offsets end when their group or their topic is deleted, when an administrator deletes them, and when they expire
(`expiry`); an Empty group without offsets ends too. Deleting a group or a topic also deletes offsets that are on their
way to the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeGuard, cast

from coordinator.groups.answers import DeleteGroupAnswer, DeleteOffsetsAnswer, TransactionAnswer
from coordinator.groups.classic import rebalance
from coordinator.groups.classic.group import Group
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.effects import Write
from coordinator.groups.errors import Error
from coordinator.groups.offsets import expiry, offsets
from coordinator.groups.offsets.pending_offsets import PendingOffsets
from coordinator.groups.records import GroupKey, OffsetKey, PendingKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from coordinator.groups.answers import CommitAnswer
    from coordinator.groups.effects import Turn
    from coordinator.groups.offsets.offsets import Fetched
    from coordinator.groups.offsets.pending_offsets import OffsetChange
    from coordinator.groups.records import Change, OffsetRecord
    from coordinator.groups.requests import Commit, DeleteGroup, DeleteOffsets, Mark

AnyOffsetKey = OffsetKey | PendingKey


class CommittedOffsets:
    """`groups` is the classic groups' own dict. Offsets of groups for which `kept` is true do not expire."""

    def __init__(self, groups: dict[str, Group], kept: Callable[[str, Turn], bool]) -> None:
        self._kept = kept
        self.by_group: dict[str, offsets.Offsets] = {}
        self.pending = PendingOffsets()
        self._groups = groups
        #: Writes under way, by group: deleting a group has to delete their offsets too.
        self._writing: dict[str, dict[int, CommitWrite | MarkWrite]] = {}

    # -- hard state -------------------------------------------------------------------------------------------

    def apply(self, key: AnyOffsetKey, record: OffsetRecord | None) -> None:
        if record is not None and key.group_id not in self._groups:
            self._groups[key.group_id] = Group(key.group_id)  # offsets create a simple group
        if isinstance(key, OffsetKey):
            at = (key.topic, key.partition)
            if record is None:
                self.by_group.get(key.group_id, {}).pop(at, None)
            else:
                self.by_group.setdefault(key.group_id, {})[at] = record
        elif record is None:
            self.pending.remove(key)
        else:
            self.pending.add(key, record)

    def delete_stored(self, group_id: str) -> None:
        """The group's tombstones are durable."""
        self._groups.pop(group_id, None)
        self.by_group.pop(group_id, None)
        for key in self.pending.of_group(group_id):
            self.pending.remove(key)

    def undelete(self, group_id: str) -> None:
        """Deleting failed. Dead is terminal, so a new group with the old one's stored state replaces it."""
        dead = self._groups[group_id]
        self._groups[group_id] = Group(
            group_id,
            generation=dead.generation,
            protocol_type=dead.protocol_type,
            state_wall_ms=dead.state_wall_ms,
        )

    # -- writes under way -------------------------------------------------------------------------------------

    def _start(self, write: CommitWrite | MarkWrite, turn: Turn) -> None:
        for group_id in write.group_ids():
            self._writing.setdefault(group_id, {})[id(write)] = write
        turn.write(write)

    def ended(self, write: CommitWrite | MarkWrite) -> None:
        """It was stored or refused."""
        for group_id in write.group_ids():
            writes = self._writing[group_id]
            del writes[id(write)]
            if not writes:
                del self._writing[group_id]

    def _being_written(self, group_id: str) -> dict[AnyOffsetKey, None]:
        """The group's keys in writes under way, as a set."""
        writes = self._writing.get(group_id, {}).values()
        return {key: None for write in writes for key, _ in write.offset_changes() if key.group_id == group_id}

    # -- requests ---------------------------------------------------------------------------------------------

    def fetch(
        self, group_id: str, wanted: tuple[tuple[str, int], ...] | None, *, stable: bool = False
    ) -> list[Fetched]:
        """OffsetFetch of one group of either design; `wanted` None: all. `stable`: only final ones (KIP-447)."""
        unstable = self.pending.is_pending if stable else None
        return offsets.fetch(self._groups.get(group_id), self.by_group.get(group_id, {}), wanted, unstable)

    def commit(self, request: Commit, turn: Turn) -> None:
        """OffsetCommit and TxnOffsetCommit."""
        producer = request.producer
        if producer is not None and self.pending.fences(producer):
            offsets.refuse_commit(request, Error.INVALID_PRODUCER_EPOCH, turn)
            return
        accepted = offsets.commit(self._groups.get(request.group_id), request, turn)
        if accepted is not None:
            changes, answer = accepted
            fence = () if producer is None else self.pending.seen(producer)
            self._start(CommitWrite((*fence, *changes), self, request, answer), turn)

    def mark(self, request: Mark, turn: Turn) -> None:
        """A producer's transaction has ended. Its offsets must have reached the log before they are committed."""
        refusal = self.pending.mark_refusal(request)
        if refusal is None and any(
            isinstance(key, PendingKey) and key.producer_id == request.producer.id
            for group_id in self._writing
            for key in self._being_written(group_id)
        ):
            refusal = Error.CONCURRENT_TRANSACTIONS
        changes = self.pending.marked(request) if refusal is None else ()
        if not changes:
            turn.reply(request.token, TransactionAnswer(error=refusal or Error.NONE))
            return
        self._start(MarkWrite(changes, self, request), turn)

    def delete(self, request: DeleteOffsets, turn: Turn, topics: Collection[str] | None = None) -> None:
        """OffsetDelete, not of these topics (`offsets.delete`).

        Pending offsets of the partitions go too, and their transaction does not restore them.
        """
        group_id = request.group_id
        answer = offsets.delete(self._groups.get(group_id), request, topics)
        going = [(topic, partition) for topic, partition, error in answer.partitions if error is Error.NONE]
        held = self.by_group.get(group_id, {})
        keys: list[AnyOffsetKey] = [OffsetKey(group_id, *at) for at in going if at in held]
        keys += [key for key in self.pending.of_group(group_id) if (key.topic, key.partition) in going]
        if keys:
            turn.write(DeleteOffsetsWrite(tuple(map(_tombstone, keys)), self, request.token, answer))
        else:
            turn.reply(request.token, answer)

    def delete_of_topics(self, topics: Collection[str], turn: Turn, *, spared: Collection[str] = ()) -> None:
        """The topics were deleted; `spared` are groups that keep their offsets.

        As Kafka does (OffsetMetadataManager.onPartitionsDeleted, 4.1.1): pending offsets go too, and a coordinator that
        was not there at that moment does not make up for it.
        """
        keys: dict[AnyOffsetKey, None] = dict.fromkeys(
            OffsetKey(group_id, *at) for group_id, held in self.by_group.items() for at in held if at[0] in topics
        )
        keys.update(dict.fromkeys(key for key in self.pending.every() if key.topic in topics))
        for group_id in self._writing:
            keys.update(dict.fromkeys(key for key in self._being_written(group_id) if key.topic in topics))
        gone = tuple(_tombstone(key) for key in keys if key.group_id not in spared)
        if gone:
            turn.write(EndedOffsetsWrite(gone, self))

    def delete_group(self, request: DeleteGroup, turn: Turn) -> bool:
        """DeleteGroups of one group, which must be Empty, with all its offsets. False: refused."""
        group = self._groups.get(request.group_id)
        if group is None or group.state is GroupState.DEAD:
            turn.reply(request.token, DeleteGroupAnswer(Error.GROUP_ID_NOT_FOUND))
            return False
        if group.state is not GroupState.EMPTY:
            turn.reply(request.token, DeleteGroupAnswer(Error.NON_EMPTY_GROUP))
            return False
        rebalance.cancel_timers(group, turn)
        group.move(GroupTrigger.DELETED, turn)
        keys: dict[AnyOffsetKey, None] = dict.fromkeys(
            OffsetKey(group.id, *at) for at in self.by_group.get(group.id, {})
        )
        keys.update(dict.fromkeys(self.pending.of_group(group.id)))
        keys.update(self._being_written(group.id))
        changes = (*map(_tombstone, keys), (GroupKey(group.id), None))
        turn.write(DeleteGroupWrite(changes, self, request.token, group.id))
        return True

    def expire(self, turn: Turn) -> None:
        """Delete expired offsets, and Empty groups that have none left."""
        for group in self._groups.values():
            if group.state is not GroupState.DEAD and not self._kept(group.id, turn):
                self._expire_of(group, turn)

    def _expire_of(self, group: Group, turn: Turn, subscribed: Collection[str] = (), *, is_used: bool = False) -> bool:
        """Delete what has expired; whether the group ends with it. `is_used`: it has members of another design."""
        held = self.by_group.get(group.id, {})
        being_written = self._being_written(group.id)
        old = expiry.expired(group, held, wall_ms=turn.now.wall_ms, retention_ms=turn.limits.retention_ms)
        gone = [
            key
            for key in (OffsetKey(group.id, *at) for at in old if at[0] not in subscribed)
            if key not in being_written and not self.pending.is_pending(*key)
        ]
        is_last = len(gone) == len(held) and not being_written and not self.pending.of_group(group.id)
        changes = tuple(map(_tombstone, gone))
        ends = group.state is GroupState.EMPTY and is_last and not is_used
        if ends:
            rebalance.cancel_timers(group, turn)
            group.move(GroupTrigger.EXPIRED, turn)
            turn.write(ExpiredGroupWrite((*changes, (GroupKey(group.id), None)), self, group.id))
        elif gone:
            turn.write(EndedOffsetsWrite(changes, self))
        return ends

    def expire_unsubscribed(self, group_id: str, subscribed: Collection[str], turn: Turn, *, is_used: bool) -> bool:
        """Delete the expired offsets of a group of the `consumer` design; whether the group ends with it."""
        group = self._groups.get(group_id)
        if group is None:
            return not is_used and not self._being_written(group_id)
        return group.state is not GroupState.DEAD and self._expire_of(group, turn, subscribed, is_used=is_used)


# -- what follows each write --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class CommitWrite(Write):
    """A commit; `answer` is sent when it is durable."""

    offsets: CommittedOffsets = field(repr=False)
    request: Commit
    answer: CommitAnswer

    is_from_client: ClassVar[bool] = True

    def offset_changes(self) -> Sequence[OffsetChange]:
        if self.request.producer is None:  # the changes are offsets only
            return cast("tuple[OffsetChange, ...]", self.changes)
        return _offsets_of(self.changes)

    def group_ids(self) -> Iterable[str]:
        return (self.request.group_id,)

    def stored(self, turn: Turn) -> None:
        held = self.offsets
        held.ended(self)
        changes = self.offset_changes()
        for key, record in changes:
            held.apply(key, record)
        if self.request.producer is None:
            held.pending.overtaken(changes)
        else:
            held.pending.learn_fences(self.changes)
        offsets.answer_commit(self.request, self.answer, turn)

    def not_stored(self, error: Error, turn: Turn) -> None:
        self.offsets.ended(self)
        offsets.refuse_commit(self.request, error, turn)

    def __str__(self) -> str:
        return f"a commit of group {self.request.group_id!r}"


@dataclass(frozen=True, slots=True, eq=False)
class MarkWrite(Write):
    """The end of a producer's transaction in this partition."""

    offsets: CommittedOffsets = field(repr=False)
    request: Mark

    def offset_changes(self) -> Sequence[OffsetChange]:
        return _offsets_of(self.changes)

    def group_ids(self) -> Iterable[str]:
        return {key.group_id for key, _ in self.offset_changes()}

    def stored(self, turn: Turn) -> None:
        held = self.offsets
        held.ended(self)
        changes = self.offset_changes()
        for key, record in changes:
            if isinstance(key, PendingKey):
                held.pending.remove(key, committed=self.request.commits)
            else:
                held.apply(key, record)
        held.pending.learn_fences(self.changes)
        offsets.trace_committed(self.request, changes, turn)
        turn.reply(self.request.token, TransactionAnswer())

    def not_stored(self, error: Error, turn: Turn) -> None:
        self.offsets.ended(self)
        turn.reply(self.request.token, TransactionAnswer(error=error))


@dataclass(frozen=True, slots=True, eq=False)
class DeleteOffsetsWrite(Write):
    """OffsetDelete. Every change is the tombstone of an offset."""

    offsets: CommittedOffsets = field(repr=False)
    token: int
    answer: DeleteOffsetsAnswer

    def stored(self, turn: Turn) -> None:
        for key, _ in _offsets_of(self.changes):
            self.offsets.apply(key, None)
        turn.reply(self.token, self.answer)

    def not_stored(self, error: Error, turn: Turn) -> None:
        turn.reply(self.token, DeleteOffsetsAnswer(error=error))


@dataclass(frozen=True, slots=True, eq=False)
class DeleteGroupWrite(Write):
    """DeleteGroups of one group."""

    offsets: CommittedOffsets = field(repr=False)
    token: int
    group_id: str

    def stored(self, turn: Turn) -> None:
        self.offsets.delete_stored(self.group_id)
        turn.reply(self.token, DeleteGroupAnswer(Error.NONE))

    def not_stored(self, error: Error, turn: Turn) -> None:
        self.offsets.undelete(self.group_id)
        turn.reply(self.token, DeleteGroupAnswer(error))


@dataclass(frozen=True, slots=True, eq=False)
class EndedOffsetsWrite(Write):
    """Offsets that have expired, or whose topics were deleted. If this write fails, they stay; the next search finds
    the expired ones again.
    """

    offsets: CommittedOffsets = field(repr=False)

    def stored(self, turn: Turn) -> None:
        for key, _ in _offsets_of(self.changes):
            self.offsets.apply(key, None)


@dataclass(frozen=True, slots=True, eq=False)
class ExpiredGroupWrite(Write):
    """A group with its last offsets, which have expired."""

    offsets: CommittedOffsets = field(repr=False)
    group_id: str

    def stored(self, turn: Turn) -> None:
        self.offsets.delete_stored(self.group_id)

    def not_stored(self, error: Error, turn: Turn) -> None:
        self.offsets.undelete(self.group_id)


def _offsets_of(changes: Iterable[object]) -> Sequence[OffsetChange]:
    """Without a producer's fence, which is stored with its offsets."""
    return [change for change in changes if _is_of_offset(change)]


def _is_of_offset(change: object) -> TypeGuard[OffsetChange]:
    return isinstance(change, tuple) and isinstance(change[0], OffsetKey | PendingKey)


def _tombstone(key: AnyOffsetKey) -> Change:
    return cast("Change", (key, None))
