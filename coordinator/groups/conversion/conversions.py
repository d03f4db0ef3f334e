"""Lets conversions take effect: a group id is moved from one kind of groups to the other with the records that say so.

    upgrade      before a member joins by ConsumerGroupHeartbeat: its request's draft begins with the records of the
                 whole group
    downgrade    instead of removing or replacing a member: the draft ends with the records of a classic group
    retire       before a member joins by JoinGroup: an Empty group of the `consumer` design gives way

If the records cannot be stored, the former group is restored, except for its parked requests, which have been answered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, cast

from coordinator.groups.answers import JoinAnswer
from coordinator.groups.classic import owners, rebalance
from coordinator.groups.classic.group import Group
from coordinator.groups.classic.session_timers import restart_session
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.consumer.heartbeat import Refused
from coordinator.groups.consumer.timers import cancel_timers
from coordinator.groups.consumer.timers import restart_session as restart_consumer_session
from coordinator.groups.consumer.traces import RETIRED, trace_ended
from coordinator.groups.conversion.downgrade import downgraded, tombstones
from coordinator.groups.conversion.upgrade import upgraded
from coordinator.groups.effects import Write
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey
from coordinator.groups.requests import size_of
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, MalformedMetadata

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinator.groups.consumer.draft import Draft
    from coordinator.groups.consumer.group import ConsumerGroup
    from coordinator.groups.consumer.requests import ConsumerSettings
    from coordinator.groups.effects import Turn
    from coordinator.groups.records import StoredChange


class MigrationPolicy(Enum):
    """Which ways groups may be converted: group.consumer.migration.policy, in lower case."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"  #: classic to consumer
    DOWNGRADE = "downgrade"  #: consumer to classic
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


class Conversions:
    """Between the classic groups and those of the `consumer` design; both are their owners' own dicts."""

    def __init__(self, classic: dict[str, Group], consumer: dict[str, ConsumerGroup]) -> None:
        self.classic = classic
        self.consumer = consumer
        # Former groups, while the records of their conversion are on their way to the log.
        self.upgrading: dict[str, Group] = {}
        self.downgrading: dict[str, ConsumerGroup] = {}

    # -- classic to consumer ----------------------------------------------------------------------------------------

    def upgrade(self, draft: Draft, turn: Turn) -> None:
        """Begin the draft of a member that joins with the group that has the id now, if any. Raises `Refused`.

        As in Kafka, requests that are parked get REBALANCE_IN_PROGRESS even if the group cannot be converted.
        """
        group = self.classic.get(draft.group.id)
        if group is None or group.state is GroupState.DEAD:
            return
        if group.id in self.downgrading:  # one conversion at a time: the client tries again
            raise Refused(Error.COORDINATOR_NOT_AVAILABLE)
        if group.state is not GroupState.EMPTY:
            self._check_upgrade(group, draft.settings)
            self._answer_parked(group, Error.REBALANCE_IN_PROGRESS, turn)
            if group.members and group.protocol_name is None:  # Kafka fails before the first generation
                raise Refused(Error.UNKNOWN_SERVER_ERROR)
            _put_members(draft, group)
        draft.convert(Upgrade(self, group, draft))

    @staticmethod
    def _check_upgrade(group: Group, settings: ConsumerSettings) -> None:
        is_fit = group.protocol_type == CONSUMER_PROTOCOL_TYPE and len(group.members) <= settings.members_max
        if not is_fit or not MigrationPolicy(settings.migration_policy).allows_upgrade:
            raise Refused(Error.GROUP_ID_NOT_FOUND)

    @staticmethod
    def _answer_parked(group: Group, error: Error, turn: Turn) -> None:
        for member in group.members.values():
            group.answer_join(member, JoinAnswer(error=error, member_id=member.id), turn)
        rebalance.answer_parked_syncs(group, error, turn)

    # -- consumer to classic ----------------------------------------------------------------------------------------

    def may_downgrade(
        self, group: ConsumerGroup, leaving: Collection[str], settings: ConsumerSettings, turn: Turn
    ) -> bool:
        """Whether only members of the classic protocol stay, and a classic group may take them."""
        staying = len(group.members) - len(leaving)
        return (
            0 < staying <= turn.limits.members_max
            and all(m.classic is not None for m in group.members.values() if m.id not in leaving)
            and MigrationPolicy(settings.migration_policy).allows_downgrade
            and _bytes(group, leaving) <= turn.limits.group_bytes_max  # not in Kafka, whose record is then refused
        )

    def downgrade(self, draft: Draft, leaving: Collection[str], turn: Turn, *, rebalances: bool = True) -> None:
        """End the draft with the classic group; `rebalances`: it begins a new generation at once."""
        classic = downgraded(draft.group, leaving, draft.topics, turn.now.wall_ms)
        conversion = Downgrade(self, draft.group, classic, rebalances)
        for member_id in draft.group.members:
            cancel_timers(draft.group, member_id, turn)
        for key in tombstones(draft.group):
            draft.put(key, None)
        draft.convert(conversion)

    def is_settling(self, group_id: str) -> bool:
        """Whether an Empty group of the `consumer` design may still get its last members back."""
        group = self.consumer.get(group_id)
        return group is not None and not group.members and bool(group.batches)

    def retire(self, group_id: str, turn: Turn) -> Retirement | None:
        """Take an Empty group of the `consumer` design, if there is one, out of the way of a classic one."""
        group = self.consumer.get(group_id)
        if group is None or not group.epoch or group.members:
            return None
        offsets = self.classic.pop(group_id, None)
        return Retirement(self, group, offsets, self._retired(group, turn))

    def _retired(self, group: ConsumerGroup, turn: Turn) -> tuple[StoredChange, ...]:
        del self.consumer[group.id]
        trace_ended(group, RETIRED, turn)
        return tuple(cast("StoredChange", (key, None)) for key in tombstones(group))

    def tidy(self, turn: Turn) -> None:
        """Once all records are applied: the tombstones of a group that gave way may be missing."""
        for group in list(self.consumer.values()):
            classic = self.classic.get(group.id)
            if classic is not None and classic.members and not group.members:
                turn.write(Write(self._retired(group, turn)))


@dataclass(slots=True, eq=False)
class Upgrade:
    """A classic group that becomes one of the `consumer` design."""

    conversions: Conversions
    former: Group
    draft: Draft
    before: tuple[StoredChange, ...] = ()
    after: tuple[StoredChange, ...] = ()
    kept: frozenset[str] = frozenset()
    ends_group: bool = False
    _ended: Group | None = None

    def __post_init__(self) -> None:
        self.before = ((GroupKey(self.former.id), None),)
        self.kept = frozenset(self.former.members)

    def take_effect(self, turn: Turn) -> None:
        ended, self.former = self.former, replace(self.former)
        self._ended = ended
        self.conversions.upgrading[ended.id] = self.former
        _end(ended, turn)
        self.conversions.classic[ended.id] = Group(ended.id)  # for the offsets
        for member in self.draft.group.members.values():
            if member.classic is not None:
                restart_consumer_session(self.draft.group, member.id, member.classic.session_timeout_ms, turn)

    def revert(self, error: Error, turn: Turn) -> None:
        group = self.former
        self.conversions.upgrading.pop(group.id, None)
        self.conversions.classic[group.id] = group
        rebalance.resume_timers(group, turn)
        former = self.draft.group
        self.conversions.consumer.pop(group.id, None)
        for member_id in list(former.sessions):
            cancel_timers(former, member_id, turn)

    def trace_ended(self, turn: Turn) -> None:
        if self._ended is not None:
            owners.clear(self._ended, self._ended.generation, "became a consumer group", turn)

    def landed(self, turn: Turn) -> None:
        self.conversions.upgrading.pop(self.former.id, None)


@dataclass(slots=True, eq=False)
class Downgrade:
    """A group of the `consumer` design that becomes a classic one."""

    conversions: Conversions
    former: ConsumerGroup
    group: Group
    rebalances: bool = True
    before: tuple[StoredChange, ...] = ()
    after: tuple[StoredChange, ...] = ()
    kept: frozenset[str] = frozenset()
    ends_group: bool = True
    _generation: int = 0
    _replaced: Group | None = None  #: what kept the offsets

    def __post_init__(self) -> None:
        assignments = {member.id: member.assignment for member in self.group.members.values()}
        self.after = ((GroupKey(self.group.id), self.group.record(assignments, self.group.state_wall_ms)),)
        self._generation = self.group.generation
        self.kept = frozenset(self.group.members)

    def take_effect(self, turn: Turn) -> None:
        conversions, group_id = self.conversions, self.former.id
        conversions.downgrading[group_id] = self.former
        conversions.consumer.pop(group_id, None)
        self._replaced = conversions.classic.get(group_id)
        conversions.classic[group_id] = self.group
        for member in self.group.members.values():
            restart_session(self.group, member, turn)
        if self.rebalances:
            rebalance.prepare(self.group, GroupTrigger.DOWNGRADED, turn)

    def revert(self, error: Error, turn: Turn) -> None:
        conversions, group_id = self.conversions, self.former.id
        conversions.downgrading.pop(group_id, None)
        conversions.consumer[group_id] = self.former
        conversions.classic.pop(group_id, None)
        if self._replaced is not None:
            conversions.classic[group_id] = self._replaced
        _refuse_parked(self.group, error, turn)
        _end(self.group, turn)
        turn.write(Write(((GroupKey(group_id), None),)))  # what it has decided since may still be stored

    def trace_ended(self, turn: Turn) -> None: ...

    def landed(self, turn: Turn) -> None:
        self.conversions.downgrading.pop(self.former.id, None)
        if self.group.generation == self._generation:  # no rebalance has ended since
            owners.name(self.group, turn)


@dataclass(frozen=True, slots=True, eq=False)
class Retirement:
    """An Empty group of the `consumer` design that gives way to a classic one."""

    conversions: Conversions
    former: ConsumerGroup
    keeper: Group | None  #: what kept the offsets
    tombstones: tuple[StoredChange, ...]

    def write(self, group: Group, record: StoredChange) -> Write:
        """Store the classic group in its place."""
        return RetirementWrite((*self.tombstones, record), self, group)

    def revert(self, group: Group, error: Error, turn: Turn) -> None:
        """The former group is back, as the log has it, unless its successor has been converted since."""
        conversions, group_id = self.conversions, group.id
        if conversions.classic.get(group_id) is not group:
            return
        conversions.consumer[group_id] = self.former
        if group.state is GroupState.DEAD:  # whoever deletes it has yet to hear of the write
            return
        del conversions.classic[group_id]
        if self.keeper is not None:
            conversions.classic[group_id] = self.keeper
        self.former.standing = None
        _refuse_parked(group, error, turn)
        _end(group, turn)
        turn.write(Write(((GroupKey(group_id), None),)))  # what it has decided since may still be stored


@dataclass(frozen=True, slots=True, eq=False)
class RetirementWrite(Write):
    """A classic group that takes the place of one of the `consumer` design. Nobody waits for it, as in Kafka."""

    retirement: Retirement
    group: Group

    def not_stored(self, error: Error, turn: Turn) -> None:
        self.retirement.revert(self.group, error, turn)


def _put_members(draft: Draft, group: Group) -> None:
    """Raises `Refused`."""
    try:
        changes = upgraded(group, draft.topics)
    except MalformedMetadata:
        raise Refused(Error.GROUP_ID_NOT_FOUND) from None
    for key, value in changes:
        draft.put(key, value)
    assigned = sum(len(numbers) for member in draft.group.members.values() for numbers in member.assigned.values())
    if assigned != len(draft.group.owners):  # the leader has assigned a partition twice
        raise Refused(Error.UNKNOWN_SERVER_ERROR)


def _bytes(group: ConsumerGroup, leaving: Collection[str]) -> int:
    """The size of the classic group (`Group.size`)."""
    return sum(
        size_of(member.client_id, member.client_host, member.instance_id, member.classic.protocols)
        for member in group.members.values()
        if member.classic is not None and member.id not in leaving
    )


def _refuse_parked(group: Group, error: Error, turn: Turn) -> None:
    for member in group.members.values():
        group.answer_join(member, JoinAnswer(error=error, member_id=""), turn)
    rebalance.answer_parked_syncs(group, error, turn)


def _end(group: Group, turn: Turn) -> None:
    """The id belongs to a group of the `consumer` design from now on."""
    rebalance.cancel_timers(group, turn)
    if group.protocol_type is not None:  # a group that only has offsets has never been traced
        group.move(GroupTrigger.CONVERTED, turn)
