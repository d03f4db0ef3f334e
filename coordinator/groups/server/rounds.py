"""The rounds of a group of the server design: each moves the group to its next generation.

    advance   does whatever can be done now; called after every possible reason for a round
    proceed   the same without checking for a reason; called after other events
    begin     commands all members that run the generation to stop
    decide    all have stopped or are dropped: asks the strategy for the next generation
    decided   stores its answer, or asks again if the group has changed
    GenerationWrite.stored   commands all members to start
    command   answers one member's waiting AwaitCommand, if there is a command for it

A start is fenced by the storage: it follows the write of its generation or, for a member that asks later, another
write of the same record. A coordinator that was replaced without noticing can command members to stop, which is
harmless, but never to start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator.groups.authority import trace_cleared, trace_named
from coordinator.groups.effects import Decide, TimerKey, TimerKind, Write
from coordinator.groups.records import ServerKey, ServerMember, ServerRecord
from coordinator.groups.server.group import reason_for_a_round, sizes_of
from coordinator.groups.server.states import ServerGroupState, ServerGroupTrigger
from coordinator.protocol.server.commands import NO_GENERATION, Command, CommandAnswer, StartedPartition
from coordinator.protocol.server.errors import ServerError
from kernel.assignors.subscription import MemberSubscription

if TYPE_CHECKING:
    from coordinator.groups.effects import Turn
    from coordinator.groups.errors import Error
    from coordinator.groups.server.group import AssignmentSettings, GroupContext, ServerGroup
    from kernel.trace.words import Removal


def advance(group: ServerGroup, context: GroupContext, turn: Turn) -> None:
    """Begin, decide, and end rounds where possible."""
    if group.state in (ServerGroupState.EMPTY, ServerGroupState.STARTING, ServerGroupState.STABLE):
        trigger = reason_for_a_round(group, context)
        if trigger is not None:
            _begin(group, trigger, context, turn)
    if group.deciding is not None and not group.eligible:
        group.deciding = None  # a generation without members needs no strategy
    proceed(group, context, turn)


def proceed(group: ServerGroup, context: GroupContext, turn: Turn) -> None:
    """As `advance`, after an event that cannot be a reason for a round, such as most requests."""
    if group.is_stopping and not group.retrying and group.has_stopped:
        _decide(group, context, turn)
    elif group.state is ServerGroupState.STARTING and group.has_started:
        turn.cancel_timer(_round_timer(group))
        group.move(ServerGroupTrigger.ALL_STARTED, turn)


def _begin(group: ServerGroup, trigger: ServerGroupTrigger, context: GroupContext, turn: Turn) -> None:
    group.move(trigger, turn)
    turn.set_timer(_round_timer(group), turn.now.ms + context.settings.rebalance_timeout_ms)
    for member_id in list(group.last_awaits):
        command(group, member_id, context, turn)


def round_timer_fired(group: ServerGroup, context: GroupContext, turn: Turn) -> None:
    """The rebalance timeout has passed: drop late members. Or a retry is due."""
    if group.is_stopping:
        group.retrying = False
        _drop(group, "not stopped in time", turn)
    elif group.state is ServerGroupState.STARTING:
        _drop(group, "not started in time", turn)
    advance(group, context, turn)


def _drop(group: ServerGroup, why: Removal, turn: Turn) -> None:
    """Drop late members. Their ids still exist, so they rejoin once they acknowledge a stop."""
    for member_id in group.late:
        group.dropped.add(member_id)
        turn.trace("group_member_left", group=group.id, id=member_id, reason=why)


# -- the next generation --------------------------------------------------------------------------------------------


def _decide(group: ServerGroup, context: GroupContext, turn: Turn) -> None:
    """Ask the strategy for the next generation; one without members needs no strategy.

    A group has one decision at a time; changes in the meantime are detected when it returns.
    """
    turn.cancel_timer(_round_timer(group))
    asked = _question(group, context)
    if asked.subscriptions:
        group.deciding = asked
        turn.decide(asked)
    else:
        _propose(group, next_generation(asked, context.settings), context, turn)


def _question(group: ServerGroup, context: GroupContext) -> Decide:
    had = group.members
    subscriptions = {
        member_id: MemberSubscription(
            topics=topics,
            owned=had[member_id].partitions if member_id in had else (),
            generation=group.generation if member_id in had else NO_GENERATION,
        )
        for member_id, topics in group.eligible.items()
    }
    sizes = sizes_of(group.eligible, context.size_of)
    return Decide(group.id, group.generation + 1, sizes, subscriptions)


def next_generation(asked: Decide, settings: AssignmentSettings) -> ServerRecord:
    """Run the strategy. Raises what it raises, and may take long."""
    assigned = settings.assign(dict(asked.sizes), asked.subscriptions) if asked.subscriptions else {}
    members = tuple(
        ServerMember(member_id, said.topics, tuple(sorted(assigned[member_id])))
        for member_id, said in sorted(asked.subscriptions.items())
    )
    return ServerRecord(asked.generation, settings.strategy, asked.sizes, members)


def decided(group: ServerGroup, record: ServerRecord | None, context: GroupContext, turn: Turn) -> None:
    """The strategy has answered, or failed (None), for a group that waits for it.

    A plugged-in strategy may fail for this group. Waiting members get an error; the retry may find a changed group.
    """
    asked, group.deciding = group.deciding, None
    if asked != _question(group, context):
        turn.set_timer(_round_timer(group), turn.now.ms + context.settings.rebalance_timeout_ms)
        proceed(group, context, turn)
    elif record is None:
        _fail(group, ServerError.UNKNOWN_SERVER_ERROR, context, turn)
    else:
        _propose(group, record, context, turn)


def _propose(group: ServerGroup, record: ServerRecord, context: GroupContext, turn: Turn) -> None:
    group.proposal = record
    turn.write(GenerationWrite(((ServerKey(group.id), record),), group, record, context))


@dataclass(frozen=True, slots=True, eq=False)
class GenerationWrite(Write):
    """A new generation: it is in force once it is durable."""

    group: ServerGroup
    record: ServerRecord
    context: GroupContext = field(repr=False)

    def stored(self, turn: Turn) -> None:
        group = self.group
        if group.state is ServerGroupState.DEAD:
            return
        if group.proposal is self.record:
            _begin_generation(group, self.record, self.context, turn)
        group.forget_strangers()
        self.context.tidy(group, turn)

    def not_stored(self, error: Error, turn: Turn) -> None:
        """No member knows that generation. NOT_COORDINATOR ends this machine; other errors may be temporary."""
        if self.group.state is not ServerGroupState.DEAD and self.group.proposal is self.record:
            self.group.proposal = None
            _fail(self.group, ServerError(error), self.context, turn)


def _begin_generation(group: ServerGroup, record: ServerRecord, context: GroupContext, turn: Turn) -> None:
    trace_cleared(group.id, group.generation, group.owners(), "generation ended", turn)
    group.proposal = None
    group.take(record)
    if not group.record.members:
        group.move(ServerGroupTrigger.ALL_GONE, turn)
        group.empty_since_ms = turn.now.ms
        advance(group, context, turn)
        return
    group.move(ServerGroupTrigger.ASSIGNMENT_STORED, turn)
    trace_named(group.id, group.generation, group.owners(), turn)
    if reason_for_a_round(group, context) is None:  # otherwise members would have to stop at once
        turn.set_timer(_round_timer(group), turn.now.ms + context.settings.rebalance_timeout_ms)
        for member_id in group.members:
            if is_waiting_to_start(group, member_id):
                start(group, member_id, context, turn)
        for member_id in list(group.last_awaits):
            command(group, member_id, context, turn)
    advance(group, context, turn)


def _fail(group: ServerGroup, error: ServerError, context: GroupContext, turn: Turn) -> None:
    group.retrying = True
    turn.set_timer(_round_timer(group), turn.now.ms + context.settings.retry_ms)
    for member_id in list(group.last_awaits):
        answer(group, member_id, CommandAnswer(error=error), turn)


# -- commands -------------------------------------------------------------------------------------------------------


def command(group: ServerGroup, member_id: str, context: GroupContext, turn: Turn) -> None:
    """Answer a member's waiting AwaitCommand if there is a command for it."""
    last = group.last_awaits.get(member_id)
    if last is None or last.token is None or group.seen is None:
        return
    assigned = group.state in (ServerGroupState.STARTING, ServerGroupState.STABLE) and member_id in group.members
    seen = group.is_eligible(member_id)
    if last.runs == NO_GENERATION:
        if assigned and seen:
            _start_after_write(group, member_id, context, turn)
    elif not (assigned and seen and last.runs == group.generation):
        answer(group, member_id, CommandAnswer(command=Command.STOP, generation=last.runs), turn)


def _start_after_write(group: ServerGroup, member_id: str, context: GroupContext, turn: Turn) -> None:
    if member_id not in group.resending:
        group.resending.add(member_id)
        change = (ServerKey(group.id), group.record)
        turn.write(StartWrite((change,), group, group.record, member_id, context))


@dataclass(frozen=True, slots=True, eq=False)
class StartWrite(Write):
    """The stored generation once more: if that succeeds, this broker still leads, and the member may start."""

    group: ServerGroup
    record: ServerRecord
    member_id: str
    context: GroupContext = field(repr=False)

    def stored(self, turn: Turn) -> None:
        group = self.group
        if group.state is ServerGroupState.DEAD:
            return
        group.resending.discard(self.member_id)
        in_force = group.record == self.record and group.state in (ServerGroupState.STARTING, ServerGroupState.STABLE)
        if in_force and is_waiting_to_start(group, self.member_id):
            start(group, self.member_id, self.context, turn)

    def not_stored(self, error: Error, turn: Turn) -> None:
        if self.group.state is ServerGroupState.DEAD:
            return
        self.group.resending.discard(self.member_id)
        answer(self.group, self.member_id, CommandAnswer(error=ServerError(error)), turn)


def is_waiting_to_start(group: ServerGroup, member_id: str) -> bool:
    last = group.last_awaits.get(member_id)
    parked = last is not None and last.token is not None and last.runs == NO_GENERATION
    return parked and member_id in group.members and group.is_eligible(member_id)


def start(group: ServerGroup, member_id: str, context: GroupContext, turn: Turn) -> None:
    """Command the member to start. It may run the generation from now on, even if the answer gets lost."""
    group.running.add(member_id)
    partitions = tuple(
        StartedPartition(topic, partition, context.offset_of(group.id, topic, partition))
        for topic, partition in group.members[member_id].partitions
    )
    commanded = CommandAnswer(command=Command.START, generation=group.generation, partitions=partitions)
    answer(group, member_id, commanded, turn)


def answer(group: ServerGroup, member_id: str, commanded: CommandAnswer, turn: Turn) -> None:
    """Answer the member's waiting AwaitCommand, if any."""
    last = group.last_awaits.get(member_id)
    if last is None or last.token is None:
        return
    turn.reply(last.token, commanded)
    last.token = None
    turn.cancel_timer(TimerKey(TimerKind.AWAIT, group.id, member_id))
    if member_id not in (group.seen or {}) and member_id not in group.members:
        del group.last_awaits[member_id]  # unknown; it may ask again


def _round_timer(group: ServerGroup) -> TimerKey:
    return TimerKey(TimerKind.ROUND, group.id)


def cancel_round(group: ServerGroup, turn: Turn) -> None:
    turn.cancel_timer(_round_timer(group))
