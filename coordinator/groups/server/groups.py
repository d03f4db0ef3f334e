"""All groups of the server design in one partition of `__consumer_offsets`.

apply, wake     load groups as they were last stored, Stable, and watch their ids
ask, verdicts   a member's AwaitCommand, a member's CommitOwned
seen            a group's ids in ZooKeeper
decided         the strategy's answer
topics_changed  topics were created, deleted or grew
timer_fired, unload   as in `coordinator.groups.machine`
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.answers import DeleteGroupAnswer
from coordinator.groups.authority import trace_named
from coordinator.groups.effects import ForgetIds, ReadAgain, TimerKey, TimerKind, WatchIds, Write
from coordinator.groups.errors import Error
from coordinator.groups.records import ServerKey
from coordinator.groups.server import rounds
from coordinator.groups.server.group import GroupContext, LastAwait, ServerGroup
from coordinator.groups.server.states import ServerGroupState, ServerGroupTrigger
from coordinator.protocol.server.commands import ANY_STRATEGY, CommandAnswer
from coordinator.protocol.server.errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from coordinator.groups.effects import Decide, Turn
    from coordinator.groups.records import ServerChange, ServerRecord
    from coordinator.groups.server.group import AssignmentSettings
    from coordinator.groups.server.requests import Await
    from coordinator.protocol.server.commands import CommitOwned


class ServerGroups:
    """For one leader epoch; thrown away after `unload`."""

    def __init__(
        self, settings: AssignmentSettings, size_of: Callable[[str], int], offset_of: Callable[[str, str, int], int]
    ) -> None:
        """`size_of(topic)` is the topic's current number of partitions, or 0; `offset_of(group, topic, partition)` the
        committed offset, or NO_OFFSET.
        """
        self.groups: dict[str, ServerGroup] = {}
        self._context = GroupContext(settings, size_of, offset_of, self._tidy)

    def in_use(self, group_id: str) -> bool:
        """Whether the group id belongs to this design now."""
        group = self.groups.get(group_id)
        return group is not None and group.in_use

    def keeps(self, group_id: str, turn: Turn) -> bool:
        """Whether a group's offsets are in use, or were within the retention time (KIP-211)."""
        group = self.groups.get(group_id)
        return group is not None and (group.in_use or not self._is_old(group, turn))

    @staticmethod
    def _is_old(group: ServerGroup, turn: Turn) -> bool:
        return turn.now.ms - group.empty_since_ms >= turn.limits.retention_ms

    # -- hard state -------------------------------------------------------------------------------------------------

    def apply(self, change: ServerChange) -> None:
        """Take over one stored record; `wake` follows the last one."""
        key, record = change
        if record is None:
            self.groups.pop(key.group_id, None)
        else:
            self.groups[key.group_id] = ServerGroup.from_record(key.group_id, record)

    def wake(self) -> Iterator[Callable[[Turn], None]]:
        """Members keep running; reading their ids shows what has changed."""
        for group in list(self.groups.values()):
            yield partial(self._wake_group, group)

    def _wake_group(self, group: ServerGroup, turn: Turn) -> None:
        group.empty_since_ms = turn.now.ms
        trace_named(group.id, group.generation, group.owners(), turn)
        if group.state is not ServerGroupState.EMPTY:
            self._watch(group, turn)

    def unload(self, turn: Turn) -> None:
        """Waiting members get NOT_COORDINATOR; all keep running."""
        for group in self.groups.values():
            if group.state is ServerGroupState.DEAD:
                continue
            for member_id in list(group.last_awaits):
                rounds.answer(group, member_id, CommandAnswer(error=ServerError.NOT_COORDINATOR), turn)
            rounds.cancel_round(group, turn)
            self._forget_ids(group, turn)
            group.move(ServerGroupTrigger.UNLOADED, turn)

    # -- members ----------------------------------------------------------------------------------------------------

    def ask(self, request: Await, turn: Turn) -> None:
        """AwaitCommand: note what the member runs; the request waits until there is a command for it."""
        asked = request.asked
        refusal = self._refusal(request)
        if refusal is not None:
            turn.reply(request.token, CommandAnswer(error=refusal))
            return
        group = self.groups.setdefault(asked.group_id, ServerGroup(asked.group_id))
        if not group.watched:
            self._watch(group, turn)
        rounds.answer(group, asked.member_id, CommandAnswer(), turn)  # the client has given up an earlier request
        returned = self._note_running(group, request, turn)
        known = None if group.seen is None else group.seen.get(asked.member_id)
        if known is not None and set(known) != set(asked.topics):
            turn.watch(ReadAgain(group.id, asked.member_id))
        (rounds.advance if returned else rounds.proceed)(group, self._context, turn)
        rounds.command(group, asked.member_id, self._context, turn)
        if asked.wait_ms == 0:
            rounds.answer(group, asked.member_id, CommandAnswer(), turn)
        elif group.is_waiting(asked.member_id):
            turn.set_timer(TimerKey(TimerKind.AWAIT, group.id, asked.member_id), turn.now.ms + asked.wait_ms)
        self._tidy(group, turn)

    @staticmethod
    def _note_running(group: ServerGroup, request: Await, turn: Turn) -> bool:
        """Note what the member runs. True if it was dropped and now takes part again."""
        member_id, runs = request.asked.member_id, request.asked.runs
        group.last_awaits[member_id] = LastAwait(request.token, runs, request.client_id, request.client_host)
        was_dropped = member_id in group.dropped
        group.note_running(member_id, runs)
        returned = was_dropped and member_id not in group.dropped
        if returned:
            turn.trace("group_member_joined", group=group.id, id=member_id)
        return returned

    def _refusal(self, request: Await) -> ServerError | None:
        asked, settings = request.asked, self._context.settings
        if asked.strategy not in (ANY_STRATEGY, settings.strategy):
            known = asked.strategy in settings.known
            return ServerError.INCONSISTENT_STRATEGY if known else ServerError.UNKNOWN_STRATEGY
        group = self.groups.get(asked.group_id)
        if group is not None and group.state is ServerGroupState.DEAD:
            return ServerError.COORDINATOR_NOT_AVAILABLE
        if asked.generation > (0 if group is None else group.generation):
            return ServerError.ILLEGAL_GENERATION
        return None

    def verdicts(self, commit: CommitOwned) -> dict[tuple[str, int], Error]:
        """The partitions whose offsets are refused, with the errors: by member, generation, or ownership."""
        group = self.groups.get(commit.group_id)
        member = None if group is None else group.members.get(commit.member_id)
        every = [(owned.topic, owned.partition) for owned in commit.offsets]
        if group is None or member is None:
            return dict.fromkeys(every, Error.UNKNOWN_MEMBER_ID)
        if commit.generation != group.generation or group.proposal is not None:
            # The next generation may give the partition to another member.
            return dict.fromkeys(every, Error.ILLEGAL_GENERATION)
        owned = set(member.partitions)
        return {at: Error.PARTITION_NOT_ASSIGNED for at in every if at not in owned}

    # -- ZooKeeper, topics ------------------------------------------------------------------------------------------

    def seen(self, group_id: str, ids: Mapping[str, tuple[str, ...]], turn: Turn) -> None:
        """The group's ids as just read: {member id: sorted topics}."""
        group = self.groups.get(group_id)
        if group is None or not group.watched:
            return
        before = set(group.members) if group.seen is None else set(group.seen)
        for member_id in sorted(ids.keys() - before):
            turn.trace("group_member_joined", group=group.id, id=member_id)
        for member_id in sorted(before - ids.keys()):
            if member_id not in group.dropped:
                turn.trace("group_member_left", group=group.id, id=member_id, reason="id gone")
        group.seen = dict(ids)
        group.dropped.intersection_update(ids)
        rounds.advance(group, self._context, turn)
        for member_id in list(group.last_awaits):
            rounds.command(group, member_id, self._context, turn)
        group.forget_strangers()
        self._tidy(group, turn)

    def decided(self, asked: Decide, record: ServerRecord | None, turn: Turn) -> None:
        """The strategy's answer for a group; None: it failed."""
        group = self.groups.get(asked.group_id)
        if group is not None and group.deciding is asked:
            rounds.decided(group, record, self._context, turn)

    def topics_changed(self, turn: Turn) -> None:
        """Topics were created, deleted or grew."""
        for group in list(self.groups.values()):
            rounds.advance(group, self._context, turn)

    def _watch(self, group: ServerGroup, turn: Turn) -> None:
        group.watched = True
        turn.watch(WatchIds(group.id))

    def _forget_ids(self, group: ServerGroup, turn: Turn) -> None:
        if group.watched:
            group.watched, group.seen = False, None
            turn.watch(ForgetIds(group.id))

    def _tidy(self, group: ServerGroup, turn: Turn) -> None:
        """Stop watching a group without members, ids and requests; forget one that never had a generation."""
        if group.state is ServerGroupState.EMPTY and group.seen is not None and not group.in_use:
            self._forget_ids(group, turn)
            if group.generation == 0:
                del self.groups[group.id]

    # -- timers ------------------------------------------------------------------------------------------------------

    def timer_fired(self, key: TimerKey, turn: Turn) -> None:
        group = self.groups.get(key.group_id)
        if group is None or group.state is ServerGroupState.DEAD:
            return
        if key.kind is TimerKind.AWAIT:
            rounds.answer(group, key.member_id, CommandAnswer(), turn)
            self._tidy(group, turn)
        else:
            rounds.round_timer_fired(group, self._context, turn)

    def forget_old(self, holding: Collection[str], turn: Turn) -> None:
        """Delete groups that have been Empty for the retention time; `holding` are those that still have offsets."""
        for group in list(self.groups.values()):
            if group.state is ServerGroupState.EMPTY and group.id not in holding and not self.keeps(group.id, turn):
                self.delete(group.id, None, turn)

    # -- administrators ---------------------------------------------------------------------------------------------

    def delete(self, group_id: str, token: int | None, turn: Turn) -> None:
        """Delete a group that exists and is not in use. One that is being deleted is no longer found."""
        group = self.groups[group_id]
        if group.state is ServerGroupState.DEAD:
            if token is not None:
                turn.reply(token, DeleteGroupAnswer(Error.GROUP_ID_NOT_FOUND))
            return
        assert not group.in_use, f"group {group_id!r} has members"
        self._forget_ids(group, turn)
        group.move(ServerGroupTrigger.DELETED, turn)
        turn.write(DeletionWrite(((ServerKey(group_id), None),), self, group, token))

    def delete_stored(self, group_id: str) -> None:
        self.groups.pop(group_id, None)

    def undelete(self, dead: ServerGroup) -> None:
        """Deleting failed. Dead is terminal, so a new group with the same stored state replaces it."""
        group = ServerGroup.from_record(dead.id, dead.record)
        group.empty_since_ms = dead.empty_since_ms
        self.groups[dead.id] = group


@dataclass(frozen=True, slots=True, eq=False)
class DeletionWrite(Write):
    """DeleteGroups of a group; `token` None: the deletion of its offsets answers, or nobody waits."""

    groups: ServerGroups = field(repr=False)
    group: ServerGroup
    token: int | None

    def stored(self, turn: Turn) -> None:
        self.groups.delete_stored(self.group.id)
        if self.token is not None:
            turn.reply(self.token, DeleteGroupAnswer(Error.NONE))

    def not_stored(self, error: Error, turn: Turn) -> None:
        self.groups.undelete(self.group)
        if self.token is not None:
            turn.reply(self.token, DeleteGroupAnswer(error))
