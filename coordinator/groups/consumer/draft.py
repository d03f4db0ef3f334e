"""Records that a request decides: applied at once, answered when they are durable, undone if they cannot be stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, cast

from coordinator.groups.answers import refusal_like
from coordinator.groups.consumer.group import Batch, current_record
from coordinator.groups.consumer.timers import restart_session, session_timeout_ms
from coordinator.groups.consumer.topics import metadata_hash
from coordinator.groups.consumer.traces import LEFT, events_of
from coordinator.groups.consumer_records import (
    ClientKey,
    CurrentKey,
    EpochKey,
    EpochRecord,
    RegexKey,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
)
from coordinator.groups.effects import Write
from coordinator.groups.errors import Error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from coordinator.groups.answers import Answer
    from coordinator.groups.consumer.conversion import Conversion
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.member import ConsumerMember
    from coordinator.groups.consumer.requests import ConsumerSettings
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.consumer_records import ConsumerChange, ConsumerKey, ConsumerRecord, CurrentRecord
    from coordinator.groups.effects import TraceEvent, Turn
    from coordinator.groups.records import StoredChange
    from kernel.trace.words import Removal


class Conversions(Protocol):
    """Between groups of this design and classic ones (`groups.conversion.conversions`)."""

    @property
    def downgrading(self) -> Mapping[str, ConsumerGroup]:
        """Groups that end when the records of their classic form are durable."""

    def upgrade(self, draft: Draft, turn: Turn) -> None: ...

    def may_downgrade(
        self, group: ConsumerGroup, leaving: Collection[str], settings: ConsumerSettings, turn: Turn
    ) -> bool: ...

    def downgrade(self, draft: Draft, leaving: Collection[str], turn: Turn, *, rebalances: bool = True) -> None: ...


def undo(group: ConsumerGroup, batch: Batch) -> None:
    """Take records back, the latest first."""
    for key, value in reversed(batch.before):
        group.apply(key, value)
    batch.is_undone = True


@dataclass(slots=True)
class Draft:
    """The records of one request, and what they replaced."""

    group: ConsumerGroup
    settings: ConsumerSettings
    topics: Topics
    removed: Removal = LEFT  #: why the members are removed that it removes
    conversions: Conversions | None = None  #: between types of groups; None where there is only this one
    batch: Batch = field(default_factory=Batch)
    then: Callable[[Turn], None] | None = None  #: when the records are durable

    def put(self, key: ConsumerKey, value: ConsumerRecord | None) -> None:
        self.batch.before.append(cast("ConsumerChange", (key, self.group.stored(key))))
        self.batch.changes.append(cast("ConsumerChange", (key, value)))
        self.group.apply(key, value)

    def undo(self) -> None:
        undo(self.group, self.batch)
        self.group.look_again()

    def topics_hash(self) -> int:
        """Of the topics that the group subscribes to now."""
        return metadata_hash(self.group.subscribed(), self.topics)

    def bump(self) -> None:
        """The group needs a new target, of the topics that it subscribes to now."""
        self.put(EpochKey(self.group.id), EpochRecord(self.group.epoch + 1, self.topics_hash()))
        self.group.seen_hash = None

    def finish_target(self) -> None:
        """The group's target is that of its present epoch."""
        self.put(TargetEpochKey(self.group.id), TargetEpochRecord(self.group.epoch))

    def remove(self, member_id: str) -> None:
        """Kafka's order of tombstones: the partitions become free first."""
        self.put(CurrentKey(self.group.id, member_id), None)
        self.put(TargetKey(self.group.id, member_id), None)
        self.put(ClientKey(self.group.id, member_id), None)

    def forget_unused_regexes(self) -> None:
        for regex in sorted(self.group.regexes.keys() - self.group.regex_uses.keys()):
            self.put(RegexKey(self.group.id, regex), None)

    def place(self, member: ConsumerMember) -> None:
        """Record where a member is now."""
        key = CurrentKey(self.group.id, member.id)
        self.batch.before.append((key, cast("CurrentRecord | None", self.group.stored(key))))
        self.batch.changes.append((key, current_record(member)))
        self.group.place(member)

    def convert(self, conversion: Conversion) -> None:
        """The group changes its type with these records."""
        self.batch.conversion = conversion

    def store(self, token: int | None, answer: Answer | None, turn: Turn) -> None:
        """Write the records and answer once they, and all before them, are durable."""
        if self.batch.changes or (self.group.batches and token is not None):
            events: tuple[TraceEvent, ...] = ()
            if turn.limits.traced and self.batch.changes:
                events = events_of(self.group, self.batch, self.removed, self.topics, turn)
            self.group.batches.append(self.batch)
            turn.write(ConsumerWrite(self._changes(turn), draft=self, token=token, answer=answer, events=events))
            return
        if self.then is not None:
            self.then(turn)
        if token is not None:
            assert answer is not None, "a request has an answer"
            turn.reply(token, answer)

    def _changes(self, turn: Turn) -> tuple[StoredChange, ...]:
        conversion = self.batch.conversion
        if conversion is None:
            return tuple(self.batch.changes)
        conversion.take_effect(turn)
        return (*conversion.before, *self.batch.changes, *conversion.after)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ConsumerWrite(Write):
    """The records of one request. `token` is None if nobody waits for them."""

    draft: Draft
    token: int | None
    answer: Answer | None
    events: tuple[TraceEvent, ...] = ()

    def stored(self, turn: Turn) -> None:
        group, batch = self.draft.group, self.draft.batch
        group.batches.remove(batch)
        if batch.is_undone:  # an earlier write failed; what was handed out then has put the log right
            self._refuse(Error.COORDINATOR_NOT_AVAILABLE, turn)
            return
        if batch.conversion is not None:
            batch.conversion.trace_ended(turn)
        for event in self.events:
            turn.trace(event.kind, cause=event.cause, **event.fields)
        if batch.conversion is not None:
            batch.conversion.landed(turn)
        if self.draft.then is not None:
            self.draft.then(turn)
        if self.token is not None:
            assert self.answer is not None, "a request has an answer"
            turn.reply(self.token, self.answer)

    def not_stored(self, error: Error, turn: Turn) -> None:
        """Take the records back, and before them whatever was decided from them.

        That is on its way to the log, and may reach it: the records that it replaces are written behind it.
        """
        group, batch = self.draft.group, self.draft.batch
        at = group.batches.index(batch)
        undone = [later for later in group.batches[at:] if not later.is_undone]
        for later in reversed(undone):
            undo(group, later)
            if later.conversion is not None:
                later.conversion.revert(error, turn)
        keys = dict.fromkeys(key for later in undone if later is not batch for key, _ in later.changes)
        if keys:
            turn.write(Write(tuple(cast("StoredChange", (key, group.stored(key))) for key in keys)))
        group.batches.remove(batch)
        group.standing = None
        group.look_again()
        for member_id in [member for member in group.members if member not in group.sessions]:  # it stays after all
            timeout_ms = session_timeout_ms(group.members[member_id], self.draft.settings)
            restart_session(group, member_id, timeout_ms, turn)
        self._refuse(error, turn)

    def _refuse(self, error: Error, turn: Turn) -> None:
        if self.token is not None:
            assert self.answer is not None, "a request has an answer"
            turn.reply(self.token, refusal_like(self.answer, error))
