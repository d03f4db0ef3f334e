"""What the trace says of a group: its states, its members with their epochs, and who owns which partition.

A partition belongs to the member that has it until that member has given it up. A batch of records is one step; what
it changes is traced once it is durable. A new epoch is `Assigning` even if the same step computes its target, so that
every rebalance has a beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from coordinator.groups.authority import Owner, trace_cleared, trace_named
from coordinator.groups.consumer.states import ConsumerGroupState
from coordinator.groups.consumer_records import ClientKey, CurrentKey, CurrentRecord, EpochKey, TargetEpochKey
from coordinator.groups.effects import TimerKind, Turn
from coordinator.groups.partitions import NONE, each, together, without

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.consumer.group import Batch, ConsumerGroup
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.consumer_records import ConsumerKey, ConsumerRecord
    from coordinator.groups.effects import TraceEvent
    from coordinator.groups.partitions import Partitions
    from kernel.trace.words import Removal

    Records = Mapping[ConsumerKey, ConsumerRecord | None]

#: Why members are removed.
LEFT: Final = "leave"
SILENT: Final = "session"
REPLACED: Final = "fenced"
SLOW: Final = "not revoked in time"
NOT_REJOINED: Final = "not rejoined"
NOT_SYNCED: Final = "not synced"
#: The same as the reason of a new epoch.
_REMOVED: Mapping[Removal, str] = {
    LEFT: "member left",
    SILENT: "session expired",
    REPLACED: "static member replaced",
    SLOW: "partitions not revoked in time",
    NOT_REJOINED: "member did not rejoin in time",
    NOT_SYNCED: "member did not sync in time",
}
#: The same by the timer that has fired.
WHY: Mapping[TimerKind, Removal] = {
    TimerKind.CONSUMER_SESSION: SILENT,
    TimerKind.REVOCATION: SLOW,
    TimerKind.REJOIN: NOT_REJOINED,
    TimerKind.RESYNC: NOT_SYNCED,
}
_REVOKED: Final = "revoked"
DELETED, MOVED, RETIRED = "deleted", "coordinator moved", "became a classic group"


def events_of(
    group: ConsumerGroup, batch: Batch, removed: Removal, topics: Topics, turn: Turn
) -> tuple[TraceEvent, ...]:
    """Of a batch that the group has applied; `removed` is why the members are removed that it removes."""
    later = Turn(turn.now, turn.limits)
    was: Records = dict(reversed(batch.before))
    now: Records = dict(batch.changes)
    clients = [key for key in now if isinstance(key, ClientKey)]
    conversion = batch.conversion
    kept = frozenset[str]() if conversion is None else conversion.kept
    ends = conversion is not None and conversion.ends_group
    before = {key.member_id for key in clients if was[key] is not None or (not ends and key.member_id in kept)}
    after = {key.member_id for key in clients if now[key] is not None or (ends and key.member_id in kept)}
    left = [key.member_id for key in clients if key.member_id in before - after]
    joined = [key.member_id for key in clients if key.member_id in after - before]
    for member_id in left:
        later.trace("group_member_left", group=group.id, id=member_id, reason=removed)
    for member_id in joined:
        later.trace("group_member_joined", group=group.id, id=member_id)
    if ends:  # the classic group says in which state it is
        _trace_members(group, was, now, removed, topics, later)
        group.standing = None
        return later.effects().events
    if EpochKey(group.id) in now:
        if joined or left:
            reason = "member joined" if joined else _REMOVED[removed]
        else:
            reason = "subscription changed" if clients else "topics changed"
        _change(group, ConsumerGroupState.ASSIGNING if group.members else ConsumerGroupState.EMPTY, reason, later)
    _trace_members(group, was, now, removed, topics, later)
    if group.standing != (state := group.state, group.epoch):
        reached = "target computed" if TargetEpochKey(group.id) in now else "static member away"
        _change(group, state, "every member has its target" if state is ConsumerGroupState.STABLE else reached, later)
    return later.effects().events


def trace_loaded(group: ConsumerGroup, topics: Topics, turn: Turn) -> None:
    """Another broker coordinates the group now: it names the owners again."""
    if turn.limits.traced:
        group.standing = group.state, group.epoch
        for member in group.members.values():
            held = together(member.assigned, member.revoking)
            trace_named(group.id, member.epoch, _owners(group, member.id, held, topics), turn)


def trace_ended(group: ConsumerGroup, reason: str, turn: Turn) -> None:
    """The group is deleted, or another broker coordinates it."""
    if turn.limits.traced:
        _change(group, ConsumerGroupState.DEAD, reason, turn)


def _trace_members(
    group: ConsumerGroup, was: Records, now: Records, removed: Removal, topics: Topics, turn: Turn
) -> None:
    """Partitions are given up first, then taken."""
    moves = [
        (key.member_id, cast("CurrentRecord | None", was[key]), cast("CurrentRecord | None", now[key]))
        for key in now
        if isinstance(key, CurrentKey)
    ]
    for member_id, before, after in moves:
        if before is not None and (lost := without(_held(before), _held(after))):
            owners = _owners(group, member_id, lost, topics)
            ended = before.epoch if before.epoch >= 0 else group.epoch  # of a member that is away
            trace_cleared(group.id, group.epoch, owners, removed if after is None else _REVOKED, turn, ended=ended)
    for member_id, before, after in moves:
        if after is not None:
            taken = without(_held(after), _held(before))
            trace_named(group.id, after.epoch, _owners(group, member_id, taken, topics), turn)
            if before is None or before.epoch != after.epoch:
                turn.trace("group_member_advanced", group=group.id, id=member_id, epoch=after.epoch)


def _held(record: CurrentRecord | None) -> Partitions:
    return NONE if record is None else together(record.assigned, record.revoking)


def _owners(group: ConsumerGroup, member_id: str, held: Partitions, topics: Topics) -> list[Owner]:
    """Named with the last name that a deleted topic had."""
    for topic in held:
        if (name := topics.name_of(topic)) is not None:
            group.topic_names[topic] = name
    names = group.topic_names
    return sorted(Owner(names[topic], number, member_id) for topic, number in each(held) if topic in names)


def _change(group: ConsumerGroup, state: ConsumerGroupState, reason: str, turn: Turn) -> None:
    epoch = group.epoch or (0 if group.standing is None else group.standing[1])  # a deleted group has none
    group.standing = state, epoch
    turn.trace(
        "group_changed",
        cause=f"generation:{epoch}",
        group=group.id,
        state=state.value,
        generation=epoch,
        members=len(group.members),
        reason=reason,
    )
