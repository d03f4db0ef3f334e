"""The groups of the `consumer` design of one partition of `__consumer_offsets`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.answers import ConsumerHeartbeatAnswer, DeleteGroupAnswer
from coordinator.groups.consumer import heartbeat, leaving, searching, timers, traces
from coordinator.groups.consumer.description import described
from coordinator.groups.consumer.draft import ConsumerWrite, Draft
from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.consumer.member import JOINING
from coordinator.groups.consumer_records import EpochKey, TargetEpochKey
from coordinator.groups.effects import TimerKind
from coordinator.groups.errors import Error
from coordinator.groups.inspection import CONSUMER_GROUP_TYPE, ListedGroup
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from coordinator.groups.consumer.description import ConsumerGroupDescription
    from coordinator.groups.consumer.draft import Conversions
    from coordinator.groups.consumer.requests import ConsumerHeartbeat, ConsumerSettings
    from coordinator.groups.consumer.topics import Topics
    from coordinator.groups.consumer_records import ConsumerKey, ConsumerRecord, RegexRecord
    from coordinator.groups.effects import TimerKey, Turn
    from coordinator.groups.requests import Leave
    from kernel.trace.words import Removal


class ConsumerGroups:
    """The consumer groups of one led partition, by group id."""

    def __init__(self, settings_of: Callable[[str], ConsumerSettings], topics: Topics) -> None:
        """`settings_of(group id)` is the broker's, with what the group has of its own; another object if it changes."""
        self.groups: dict[str, ConsumerGroup] = {}
        self.settings_of = settings_of
        self.topics = topics
        self.conversions: Conversions | None = None  #: set where there are classic groups as well

    def find(self, group_id: str) -> ConsumerGroup | None:
        """A group that exists: its first records were not refused."""
        group = self.groups.get(group_id)
        return group if group is not None and group.epoch else None

    def every(self) -> list[ConsumerGroup]:
        """All that exist, as `find`."""
        return [group for group in self.groups.values() if group.epoch]

    def in_use(self, group_id: str) -> bool:
        """Whether the group id belongs to this design now."""
        group = self.groups.get(group_id)
        return group is not None and bool(group.members)

    def apply(self, key: ConsumerKey, record: ConsumerRecord | None) -> None:
        """Take over one stored record. Records may come in any order; `wake` follows the last one."""
        if record is not None:
            self.groups.setdefault(key.group_id, ConsumerGroup(key.group_id)).apply(key, record)
        elif key.group_id in self.groups:
            self.groups[key.group_id].apply(key, None)
            if isinstance(key, EpochKey):
                del self.groups[key.group_id]

    def wake(self) -> Iterator[Callable[[Turn], None]]:
        """Every member gets a whole session, and a whole rebalance timeout if it has to give partitions up."""
        for group in list(self.groups.values()):
            yield partial(self._wake_group, group)

    def _wake_group(self, group: ConsumerGroup, turn: Turn) -> None:
        settings = self.settings_of(group.id)
        for member in group.members.values():
            timers.restart_session(group, member.id, settings.session_timeout_ms, turn)
            timers.time_revocation(group, member, turn)
        traces.trace_loaded(group, self.topics, turn)

    def unload(self, turn: Turn) -> None:
        """Another broker leads the partition. Nobody waits here but for writes, which will fail."""
        for group in self.groups.values():
            for member_id in group.members:
                timers.cancel_timers(group, member_id, turn)
            if group.epoch:
                traces.trace_ended(group, traces.MOVED, turn)

    def draft(self, group_id: str, removed: Removal = traces.LEFT) -> Draft:
        """For a request to a group that exists; `removed` is why members are removed by it."""
        return Draft(self.groups[group_id], self.settings_of(group_id), self.topics, removed, self.conversions)

    def heartbeat(self, request: ConsumerHeartbeat, turn: Turn) -> None:
        settings = self.settings_of(request.group_id)
        error = heartbeat.invalid(request, settings)
        group = self.find(request.group_id)
        if error is None and group is None and request.epoch != JOINING:
            error = Error.GROUP_ID_NOT_FOUND
        if error is not None:
            turn.reply(request.token, ConsumerHeartbeatAnswer(error))
            return
        removed: Removal = traces.LEFT if request.epoch < JOINING else traces.REPLACED
        # One that is being deleted is the same group: if that fails, everything that followed did not happen, either.
        at = group or self.groups.get(request.group_id) or ConsumerGroup(request.group_id)
        draft = Draft(at, settings, self.topics, removed, self.conversions)
        try:
            if request.epoch < JOINING:
                leaving.leave(draft, request, turn)
                return
            if group is None and self.conversions is not None:
                self.conversions.upgrade(draft, turn)
            heartbeat.heartbeat(draft, request, turn)
            self.groups[request.group_id] = draft.group
        except heartbeat.Refused as refused:
            turn.reply(request.token, ConsumerHeartbeatAnswer(refused.error, message=refused.message))

    def leave(self, request: Leave, turn: Turn) -> None:
        """LeaveGroup of a group that has members."""
        leaving.remove_named(self.draft(request.group_id), request, turn)

    def matched(self, group_id: str, found: Mapping[str, RegexRecord], turn: Turn) -> None:
        """The topics that match regular expressions of a group have been searched; nothing is found if that failed."""
        group = self.groups.get(group_id)
        if group is None:
            return
        group.is_searching = False
        if found:
            searching.take_found(self.draft(group_id), found, turn)
        else:
            group.search_failed_wall_ms = turn.now.wall_ms

    def delete(self, group_id: str, token: int | None, turn: Turn) -> None:
        """Delete a group without members. `token` None: the deletion of its offsets answers."""
        group = self.groups[group_id]
        assert not group.members, f"group {group_id!r} has members"
        draft = self.draft(group_id)
        draft.forget_unused_regexes()
        draft.put(TargetEpochKey(group_id), None)
        draft.put(EpochKey(group_id), None)
        group.batches.append(draft.batch)
        answer = DeleteGroupAnswer(Error.NONE)
        turn.write(DeletionWrite(tuple(draft.batch.changes), draft=draft, token=token, answer=answer, groups=self))

    def timer_fired(self, key: TimerKey, turn: Turn) -> None:
        group = self.groups.get(key.group_id)
        if group is None:
            return
        is_late = timers.is_late(group, key, turn)
        if is_late and key.member_id in group.members:
            leaving.remove(self.draft(group.id, traces.WHY[key.kind]), key.member_id, turn)
        elif is_late and key.kind is TimerKind.CONSUMER_SESSION:
            group.sessions.pop(key.member_id, None)  # of a static member that has been replaced

    def listed(self, states: Collection[str]) -> Iterator[ListedGroup | None]:
        """Rows of ListGroups, in one of these states (lower case; empty: any); None stands for a group in another."""
        ending = () if self.conversions is None else self.conversions.downgrading
        for group_id in (*self.groups, *ending):
            group = self.durable(group_id)
            if group is None or (states and group.state.value.lower() not in states):
                yield None
            else:
                yield ListedGroup(group_id, CONSUMER_PROTOCOL_TYPE, group.state, CONSUMER_GROUP_TYPE)

    def describe(self, group_id: str) -> ConsumerGroupDescription:
        return described(self.durable(group_id), self.settings_of(group_id), self.topics)

    def durable(self, group_id: str) -> ConsumerGroup | None:
        """A group as the log has it. Lists and descriptions show nothing else, as in Kafka: it may be taken back."""
        group = self.groups.get(group_id)
        if group is None and self.conversions is not None:
            group = self.conversions.downgrading.get(group_id)
        durable = None if group is None else group.committed()
        return durable if durable is not None and durable.epoch else None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeletionWrite(ConsumerWrite):
    """DeleteGroups of a group; until it is durable, a member may join it anew."""

    groups: ConsumerGroups

    def stored(self, turn: Turn) -> None:
        ConsumerWrite.stored(self, turn)  # `super()` knows another class, without slots
        group = self.draft.group
        if not group.epoch and not group.batches and self.groups.groups.get(group.id) is group:
            del self.groups.groups[group.id]
            traces.trace_ended(group, traces.DELETED, turn)
