"""The classic groups of one partition of `__consumer_offsets`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from coordinator.groups.answers import JoinAnswer, SyncAnswer
from coordinator.groups.classic import join, liveness, owners, rebalance
from coordinator.groups.classic.group import Group
from coordinator.groups.classic.session_timers import restart_session
from coordinator.groups.classic.states import GroupState, GroupTrigger
from coordinator.groups.effects import TimerKind, Write
from coordinator.groups.errors import Error
from coordinator.groups.records import GroupKey
from coordinator.groups.requests import UNKNOWN_MEMBER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coordinator.groups.effects import TimerKey, Turn
    from coordinator.groups.records import GroupRecord, StoredChange
    from coordinator.groups.requests import Join


class Retired(Protocol):
    """A group of another type that gives way (`groups.conversion.conversions`)."""

    def write(self, group: Group, record: StoredChange) -> Write:
        """The record of the classic group that takes its place, with its tombstones."""
        ...


class ClassicGroups:
    """By group id. Simple groups, which have offsets and never had members, are here too."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}

    def apply(self, key: GroupKey, record: GroupRecord | None) -> None:
        if record is None:
            self.groups.pop(key.group_id, None)
        else:
            self.groups[key.group_id] = Group.from_record(key.group_id, record)

    def wake(self) -> Iterator[Callable[[Turn], None]]:
        for group in list(self.groups.values()):
            yield partial(self._wake_group, group)

    @staticmethod
    def _wake_group(group: Group, turn: Turn) -> None:
        for member in group.members.values():
            restart_session(group, member, turn)
        owners.name(group, turn)
        if len(group.members) > turn.limits.members_max:
            rebalance.prepare(group, GroupTrigger.OVERSIZED, turn)

    def unload(self, turn: Turn) -> None:
        for group in self.groups.values():
            if group.state is GroupState.DEAD:
                continue
            for member in group.members.values():
                group.answer_join(member, JoinAnswer(error=Error.NOT_COORDINATOR, member_id=member.id), turn)
                if member.parked_sync is not None:
                    turn.reply(member.parked_sync, SyncAnswer(error=Error.NOT_COORDINATOR))
                    member.parked_sync = None
            rebalance.cancel_timers(group, turn)
            group.move(GroupTrigger.UNLOADED, turn)

    def join(self, request: Join, turn: Turn, retired: Retired | None = None) -> None:
        """JoinGroup with a session timeout in range; a member without an id creates the group.

        `retired` is a group of another type that gives way to it.
        """
        group = self.groups.get(request.group_id)
        if group is None:
            if request.member_id != UNKNOWN_MEMBER:
                join.refuse(request, Error.UNKNOWN_MEMBER_ID, turn)
                return
            group = self.groups[request.group_id] = Group(request.group_id)
            # Stored at once, so that the group exists for a successor as well.
            created = (GroupKey(group.id), group.record({}, turn.now.wall_ms))
            turn.write(Write((created,)) if retired is None else retired.write(group, created))
        join.join(group, request, turn)

    def timer_fired(self, key: TimerKey, turn: Turn) -> None:
        group = self.groups.get(key.group_id)
        if group is None or group.state is GroupState.DEAD:
            return
        if key.kind is TimerKind.SESSION:
            liveness.session_timer_fired(group, key.member_id, turn)
        elif key.kind is TimerKind.JOIN:
            rebalance.join_timer_fired(group, turn)
        else:
            rebalance.sync_timer_fired(group, turn)
