"""All groups of the server design in one partition of `__consumer_offsets`: the entrance to their machine.

apply, wake     records of the log -> the groups as they were last stored, Stable, and a look at their ids
ask, verdicts   a member's question, a member's commit
seen            what ZooKeeper has under a group's ids
decided         what the strategy has answered
topics_changed  topics came, went or grew
timer_fired, stored, not_stored, unload   as in `coordinator.groups.shard`
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.answers import DeleteGroupAnswer
from coordinator.groups.errors import Error
from coordinator.groups.outcome import GenerationStored, ServerGroupDeleted, TimerKey, TimerKind
from coordinator.groups.records import ServerKey
from coordinator.groups.server import rounds
from coordinator.groups.server.group import Asking, ServerGroup, Surroundings
from coordinator.groups.server.requests import ForgetIds, ReadAgain, WatchIds
from coordinator.groups.server.states import State, Trigger
from coordinator.protocol.server_commands import ANY_STRATEGY, Commanded
from coordinator.protocol.server_errors import ServerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from coordinator.groups.outcome import ServerContinuation, Turn
    from coordinator.groups.records import ServerChange, ServerRecord
    from coordinator.groups.server.group import Rules
    from coordinator.groups.server.requests import Await, Decide
    from coordinator.protocol.server_commands import CommitOwned


class ServerGroups:
    """One leader epoch's; after `unload` it is thrown away."""

    def __init__(self, rules: Rules, size_of: Callable[[str], int], offset_of: Callable[[str, str, int], int]) -> None:
        """`size_of(topic)` is a topic's number of partitions now, `offset_of(group, topic, partition)` the committed
        offset; 0 and NO_OFFSET where there is none.
        """
        self.groups: dict[str, ServerGroup] = {}
        self._around = Surroundings(rules, size_of, offset_of)

    def in_use(self, group_id: str) -> bool:
        """Whether this design has the group id now, so that no other may."""
        group = self.groups.get(group_id)
        return group is not None and group.in_use

    def keeps(self, group_id: str, turn: Turn) -> bool:
        """Whether a group's offsets are in use, or were until a retention ago (KIP-211)."""
        group = self.groups.get(group_id)
        return group is not None and (group.in_use or not self._is_old(group, turn))

    @staticmethod
    def _is_old(group: ServerGroup, turn: Turn) -> bool:
        return turn.now.ms - group.empty_since_ms >= turn.limits.retention_ms

    # -- hard state -------------------------------------------------------------------------------------------------

    def apply(self, change: ServerChange) -> None:
        """Take over one stored record; when all have been, `wake`."""
        key, record = change
        if record is None:
            self.groups.pop(key.group_id, None)
        else:
            self.groups[key.group_id] = ServerGroup.from_record(key.group_id, record)

    def wake(self) -> Iterator[Callable[[Turn], None]]:
        """Members go on with what they run; what has changed meanwhile shows once their ids are read."""
        for group in list(self.groups.values()):
            yield partial(self._wake_group, group)

    def _wake_group(self, group: ServerGroup, turn: Turn) -> None:
        group.empty_since_ms = turn.now.ms
        rounds.name_authority(group, turn)
        if group.state is not State.EMPTY:
            self._watch(group, turn)

    def unload(self, turn: Turn) -> None:
        """Whoever waits is told to look for the next coordinator; what members run, they go on running."""
        for group in self.groups.values():
            if group.state is State.DEAD:
                continue
            for member_id in list(group.asking):
                rounds.answer(group, member_id, Commanded(error=ServerError.NOT_COORDINATOR), turn)
            rounds.cancel_round(group, turn)
            self._forget_ids(group, turn)
            group.move(Trigger.UNLOADED, turn)

    # -- members ----------------------------------------------------------------------------------------------------

    def ask(self, request: Await, turn: Turn) -> None:
        """AwaitCommand: what the member runs is noted, and its question waits unless there is something to say."""
        asked = request.asked
        refusal = self._refusal(request)
        if refusal is not None:
            turn.reply(request.token, Commanded(error=refusal))
            return
        group = self.groups.setdefault(asked.group_id, ServerGroup(asked.group_id))
        if not group.watched:
            self._watch(group, turn)
        rounds.answer(group, asked.member_id, Commanded(), turn)  # an earlier question that nobody waits for any more
        came_back = self._hear(group, request, turn)
        known = None if group.seen is None else group.seen.get(asked.member_id)
        if known is not None and set(known) != set(asked.topics):
            turn.look(ReadAgain(group.id, asked.member_id))
        (rounds.advance if came_back else rounds.proceed)(group, self._around, turn)
        rounds.tell(group, asked.member_id, turn)
        if asked.wait_ms == 0:
            rounds.answer(group, asked.member_id, Commanded(), turn)
        elif self._is_parked(group, asked.member_id):
            turn.set_timer(TimerKey(TimerKind.AWAIT, group.id, asked.member_id), turn.now.ms + asked.wait_ms)
        self._tidy(group, turn)

    @staticmethod
    def _hear(group: ServerGroup, request: Await, turn: Turn) -> bool:
        """Note what the member runs; whether it was dropped and takes part again."""
        member_id, runs = request.asked.member_id, request.asked.runs
        group.asking[member_id] = Asking(request.token, runs, request.client_id, request.client_host)
        was_dropped = member_id in group.dropped
        group.heard(member_id, runs)
        came_back = was_dropped and member_id not in group.dropped
        if came_back:
            turn.trace("group_member_joined", group=group.id, id=member_id)
        return came_back

    def _refusal(self, request: Await) -> ServerError | None:
        asked, rules = request.asked, self._around.rules
        if asked.strategy not in (ANY_STRATEGY, rules.strategy):
            known = asked.strategy in rules.known
            return ServerError.INCONSISTENT_STRATEGY if known else ServerError.UNKNOWN_STRATEGY
        group = self.groups.get(asked.group_id)
        if group is not None and group.state is State.DEAD:
            return ServerError.COORDINATOR_NOT_AVAILABLE
        if asked.generation > (0 if group is None else group.generation):
            return ServerError.ILLEGAL_GENERATION
        return None

    @staticmethod
    def _is_parked(group: ServerGroup, member_id: str) -> bool:
        asking = group.asking.get(member_id)
        return asking is not None and asking.token is not None

    def verdicts(self, commit: CommitOwned) -> dict[tuple[str, int], Error]:
        """The partitions whose offsets are refused, and why: for the member, the generation, or the ownership."""
        group = self.groups.get(commit.group_id)
        member = None if group is None else group.members.get(commit.member_id)
        every = [(owned.topic, owned.partition) for owned in commit.offsets]
        if group is None or member is None:
            return dict.fromkeys(every, Error.UNKNOWN_MEMBER_ID)
        if commit.generation != group.generation or group.proposal is not None:
            # What has been decided already may give the partition to somebody else.
            return dict.fromkeys(every, Error.ILLEGAL_GENERATION)
        owned = set(member.partitions)
        return {at: Error.PARTITION_NOT_ASSIGNED for at in every if at not in owned}

    # -- ZooKeeper, topics ------------------------------------------------------------------------------------------

    def seen(self, group_id: str, ids: Mapping[str, tuple[str, ...]], turn: Turn) -> None:
        """The group's ids, {member id: topics, sorted}, as they have just been read."""
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
        rounds.advance(group, self._around, turn)
        for member_id in list(group.asking):
            rounds.tell(group, member_id, turn)
        self._forget_strangers(group)
        self._tidy(group, turn)

    def decided(self, asked: Decide, record: ServerRecord | None, turn: Turn) -> None:
        """The next generation of a group; None: its strategy has failed."""
        group = self.groups.get(asked.group_id)
        if group is not None and group.deciding is asked:
            rounds.decided(group, record, self._around, turn)

    def _forget_strangers(self, group: ServerGroup) -> None:
        """What those ran that are gone is of no more interest, unless they still ask."""
        for member_id in [m for m in group.asking if m not in (group.seen or {}) and m not in group.members]:
            if not self._is_parked(group, member_id):
                del group.asking[member_id]

    def topics_changed(self, turn: Turn) -> None:
        """Topics came, went or grew."""
        for group in list(self.groups.values()):
            rounds.advance(group, self._around, turn)

    def _watch(self, group: ServerGroup, turn: Turn) -> None:
        group.watched = True
        turn.look(WatchIds(group.id))

    def _forget_ids(self, group: ServerGroup, turn: Turn) -> None:
        if group.watched:
            group.watched, group.seen = False, None
            turn.look(ForgetIds(group.id))

    def _tidy(self, group: ServerGroup, turn: Turn) -> None:
        """A group without members, ids and questions is watched no longer; one that never had any is nothing at all."""
        if group.state is State.EMPTY and group.seen is not None and not group.in_use:
            self._forget_ids(group, turn)
            if group.generation == 0:
                del self.groups[group.id]

    # -- reports of the doing side ----------------------------------------------------------------------------------

    def timer_fired(self, key: TimerKey, turn: Turn) -> None:
        group = self.groups.get(key.group_id)
        if group is None or group.state is State.DEAD:
            return
        if key.kind is TimerKind.AWAIT:
            rounds.answer(group, key.member_id, Commanded(), turn)
            self._tidy(group, turn)
        else:
            rounds.round_timer_fired(group, self._around, turn)

    def stored(self, done: ServerContinuation, turn: Turn) -> None:
        group = self.groups.get(done.group_id)
        match done:
            case ServerGroupDeleted(token=token):
                self.groups.pop(done.group_id, None)
                if token is not None:
                    turn.reply(token, DeleteGroupAnswer(Error.NONE))
            case GenerationStored(member_id=None):
                if group is not None and group.state is not State.DEAD:
                    rounds.stored(group, done, self._around, turn)
                    self._forget_strangers(group)
                    self._tidy(group, turn)
            case GenerationStored():
                if group is not None and group.state is not State.DEAD:
                    rounds.stored_again(group, done, self._around, turn)

    def not_stored(self, done: ServerContinuation, error: Error, turn: Turn) -> None:
        group = self.groups.get(done.group_id)
        match done:
            case ServerGroupDeleted(token=token):
                if group is not None:  # Dead is terminal: another group takes its place, with what is still stored
                    again = ServerGroup.from_record(done.group_id, group.record)
                    again.empty_since_ms = group.empty_since_ms
                    self.groups[done.group_id] = again
                if token is not None:
                    turn.reply(token, DeleteGroupAnswer(error))
            case GenerationStored(member_id=None):
                if group is not None and group.state is not State.DEAD:
                    rounds.not_stored(group, done, error, self._around, turn)
            case GenerationStored():
                if group is not None and group.state is not State.DEAD:
                    rounds.not_stored_again(group, done, error, turn)

    def forget_old(self, holding: Collection[str], turn: Turn) -> None:
        """Bury groups that have long been Empty; `holding` are those that still have offsets."""
        for group in list(self.groups.values()):
            if group.state is State.EMPTY and group.id not in holding and not self.keeps(group.id, turn):
                self.delete(group.id, None, turn)

    # -- administrators ---------------------------------------------------------------------------------------------

    def delete(self, group_id: str, token: int | None, turn: Turn) -> None:
        """DeleteGroups of a group that is known and not in use."""
        group = self.groups[group_id]
        assert not group.in_use, f"group {group_id!r} has members"
        self._forget_ids(group, turn)
        group.move(Trigger.DELETED, turn)
        turn.write((ServerKey(group_id), None), then=ServerGroupDeleted(group_id, token))
