"""The rounds of a group of the server design, from the reason to begin one until everybody has started.

    advance   does whatever can be done now; called after everything that may be a reason for a round
    proceed   the same without looking for a reason; called after the other things
    begin     everybody who runs the generation is told to stop
    decide    nobody runs it any more, or is given up: the strategy is asked for the next one
    decided   its answer is stored, unless the group has changed meanwhile: then it is asked again
    stored    it is durable: everybody is told to start
    tell      what one member's parked question is answered with, if with anything

A start is given behind the storage's fence: together with the write that stores its generation, and later, when a
member asks for it (again), after the same record has been written once more. A coordinator that was replaced without
noticing can tell members to stop, which does no harm, but never to start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.groups.outcome import GenerationStored, TimerKey, TimerKind
from coordinator.groups.records import ServerKey, ServerMember, ServerRecord
from coordinator.groups.server.group import reason_for_a_round, sizes_of
from coordinator.groups.server.requests import Decide
from coordinator.groups.server.states import State, Trigger
from coordinator.protocol.server_commands import NO_GENERATION, Command, Commanded, StartedPartition
from coordinator.protocol.server_errors import ServerError
from kernel.assignors.subscription import MemberSubscription

if TYPE_CHECKING:
    from coordinator.groups.errors import Error
    from coordinator.groups.outcome import Turn
    from coordinator.groups.server.group import Rules, ServerGroup, Surroundings


def advance(group: ServerGroup, around: Surroundings, turn: Turn) -> None:
    """Begin, decide, and end rounds as far as it is time to."""
    if group.state in (State.EMPTY, State.STARTING, State.STABLE):
        trigger = reason_for_a_round(group, around)
        if trigger is not None:
            _begin(group, trigger, around, turn)
    if group.deciding is not None and not group.eligible:
        group.deciding = None  # the strategy has nothing to say to that
    proceed(group, around, turn)


def proceed(group: ServerGroup, around: Surroundings, turn: Turn) -> None:
    """As `advance`, after something that is no reason for a round: most questions."""
    if group.is_stopping and not group.retrying and group.has_stopped:
        _decide(group, around, turn)
    elif group.state is State.STARTING and group.has_started:
        turn.cancel_timer(_round_timer(group))
        group.move(Trigger.ALL_STARTED, turn)


def _begin(group: ServerGroup, trigger: Trigger, around: Surroundings, turn: Turn) -> None:
    group.move(trigger, turn)
    turn.set_timer(_round_timer(group), turn.now.ms + around.rules.rebalance_timeout_ms)
    for member_id in list(group.asking):
        tell(group, member_id, turn)


def round_timer_fired(group: ServerGroup, around: Surroundings, turn: Turn) -> None:
    """The rebalance timeout is over: who was not heard of is dropped. Or storing is tried again."""
    if group.is_stopping:
        group.retrying = False
        _drop(group, "not stopped in time", turn)
    elif group.state is State.STARTING:
        _drop(group, "not started in time", turn)
    advance(group, around, turn)


def _drop(group: ServerGroup, why: str, turn: Turn) -> None:
    """Their ids stand still: they are taken in again once they have acknowledged a stop."""
    for member_id in group.late:
        group.dropped.add(member_id)
        turn.trace("group_member_left", group=group.id, id=member_id, reason=why)


# -- the next generation --------------------------------------------------------------------------------------------


def _decide(group: ServerGroup, around: Surroundings, turn: Turn) -> None:
    """Ask for the next generation; one without members needs no strategy.

    A group has one decision made at a time: what changes meanwhile is seen when it has been made.
    """
    turn.cancel_timer(_round_timer(group))
    asked = _question(group, around)
    if asked.subscriptions:
        group.deciding = asked
        turn.decide(asked)
    else:
        _propose(group, next_generation(asked, around.rules), turn)


def _question(group: ServerGroup, around: Surroundings) -> Decide:
    had = group.members
    subscriptions = {
        member_id: MemberSubscription(
            topics=topics,
            owned=had[member_id].partitions if member_id in had else (),
            generation=group.generation if member_id in had else NO_GENERATION,
        )
        for member_id, topics in group.eligible.items()
    }
    sizes = sizes_of(group.eligible, around.size_of)
    return Decide(group.id, group.generation + 1, sizes, subscriptions)


def next_generation(asked: Decide, rules: Rules) -> ServerRecord:
    """What the strategy answers. Raises what it raises, and takes as long as it takes."""
    assigned = rules.assign(dict(asked.sizes), asked.subscriptions) if asked.subscriptions else {}
    members = tuple(
        ServerMember(member_id, said.topics, tuple(sorted(assigned[member_id])))
        for member_id, said in sorted(asked.subscriptions.items())
    )
    return ServerRecord(asked.generation, rules.strategy, asked.sizes, members)


def decided(group: ServerGroup, record: ServerRecord | None, around: Surroundings, turn: Turn) -> None:
    """The strategy has answered, or failed (None), and the group waits for it.

    A strategy that somebody plugged in may have no answer for this group. Whoever waits is told; next time the group
    may be another.
    """
    asked, group.deciding = group.deciding, None
    if asked != _question(group, around):
        turn.set_timer(_round_timer(group), turn.now.ms + around.rules.rebalance_timeout_ms)
        proceed(group, around, turn)
    elif record is None:
        _fail(group, ServerError.UNKNOWN_SERVER_ERROR, around, turn)
    else:
        _propose(group, record, turn)


def _propose(group: ServerGroup, record: ServerRecord, turn: Turn) -> None:
    group.proposal = record
    turn.write((ServerKey(group.id), record), then=GenerationStored(group.id, record))


def stored(group: ServerGroup, done: GenerationStored, around: Surroundings, turn: Turn) -> None:
    """A generation is durable: it counts from now on."""
    if group.proposal is not done.record:
        return
    _clear_authority(group, "generation ended", turn)
    group.proposal = None
    group.take(done.record)
    if not group.record.members:
        group.move(Trigger.ALL_GONE, turn)
        group.empty_since_ms = turn.now.ms
        advance(group, around, turn)
        return
    group.move(Trigger.ASSIGNMENT_STORED, turn)
    name_authority(group, turn)
    if reason_for_a_round(group, around) is None:  # or they would have to stop at once
        turn.set_timer(_round_timer(group), turn.now.ms + around.rules.rebalance_timeout_ms)
        for member_id in group.members:
            if is_waiting_to_start(group, member_id):
                start(group, member_id, around, turn)
        for member_id in list(group.asking):
            tell(group, member_id, turn)
    advance(group, around, turn)


def not_stored(group: ServerGroup, done: GenerationStored, error: Error, around: Surroundings, turn: Turn) -> None:
    """Nobody was told of that generation. NOT_COORDINATOR ends this machine; anything else may pass."""
    if group.proposal is done.record:
        group.proposal = None
        _fail(group, ServerError(error), around, turn)


def _fail(group: ServerGroup, error: ServerError, around: Surroundings, turn: Turn) -> None:
    group.retrying = True
    turn.set_timer(_round_timer(group), turn.now.ms + around.rules.retry_ms)
    for member_id in list(group.asking):
        answer(group, member_id, Commanded(error=error), turn)


# -- commands -------------------------------------------------------------------------------------------------------


def tell(group: ServerGroup, member_id: str, turn: Turn) -> None:
    """Answer a parked question if there is something to say."""
    asking = group.asking.get(member_id)
    if asking is None or asking.token is None or group.seen is None:
        return
    assigned = group.state in (State.STARTING, State.STABLE) and member_id in group.members
    seen = group.is_eligible(member_id)
    if asking.runs == NO_GENERATION:
        if assigned and seen:
            _start_behind_the_fence(group, member_id, turn)
    elif not (assigned and seen and asking.runs == group.generation):
        answer(group, member_id, Commanded(command=Command.STOP, generation=asking.runs), turn)


def _start_behind_the_fence(group: ServerGroup, member_id: str, turn: Turn) -> None:
    if member_id not in group.resending:
        group.resending.add(member_id)
        turn.write((ServerKey(group.id), group.record), then=GenerationStored(group.id, group.record, member_id))


def stored_again(group: ServerGroup, done: GenerationStored, around: Surroundings, turn: Turn) -> None:
    """This broker leads still: the member may start, if that is what it still waits for."""
    assert done.member_id is not None, "the first storing is told to `stored`"
    group.resending.discard(done.member_id)
    in_force = group.record == done.record and group.state in (State.STARTING, State.STABLE)
    if in_force and is_waiting_to_start(group, done.member_id):
        start(group, done.member_id, around, turn)


def not_stored_again(group: ServerGroup, done: GenerationStored, error: Error, turn: Turn) -> None:
    assert done.member_id is not None, "the first storing is told to `not_stored`"
    group.resending.discard(done.member_id)
    answer(group, done.member_id, Commanded(error=ServerError(error)), turn)


def is_waiting_to_start(group: ServerGroup, member_id: str) -> bool:
    asking = group.asking.get(member_id)
    parked = asking is not None and asking.token is not None and asking.runs == NO_GENERATION
    return parked and member_id in group.members and group.is_eligible(member_id)


def start(group: ServerGroup, member_id: str, around: Surroundings, turn: Turn) -> None:
    """From now on it may run the generation, whether the answer arrives or not."""
    group.running.add(member_id)
    partitions = tuple(
        StartedPartition(topic, partition, around.offset_of(group.id, topic, partition))
        for topic, partition in group.members[member_id].partitions
    )
    told = Commanded(command=Command.START, generation=group.generation, partitions=partitions)
    answer(group, member_id, told, turn)


def answer(group: ServerGroup, member_id: str, told: Commanded, turn: Turn) -> None:
    """To the question that is parked, if one is."""
    asking = group.asking.get(member_id)
    if asking is None or asking.token is None:
        return
    turn.reply(asking.token, told)
    asking.token = None
    turn.cancel_timer(TimerKey(TimerKind.AWAIT, group.id, member_id))
    if member_id not in (group.seen or {}) and member_id not in group.members:
        del group.asking[member_id]  # nobody we know; it may come again


# -- what the authority says, for the trace -------------------------------------------------------------------------


def name_authority(group: ServerGroup, turn: Turn) -> None:
    """The stored assignment is in force."""
    for member in group.record.members:
        for topic, partition in member.partitions:
            turn.trace(
                "authority_named",
                cause=f"generation:{group.generation}",
                group=group.id,
                topic=topic,
                partition=partition,
                owner=member.member_id,
                epoch=group.generation,
            )


def _clear_authority(group: ServerGroup, why: str, turn: Turn) -> None:
    for member in group.record.members:
        for topic, partition in member.partitions:
            turn.trace(
                "authority_cleared",
                cause=f"generation:{group.generation}",
                group=group.id,
                topic=topic,
                partition=partition,
                owner=member.member_id,
                epoch=group.generation,
                reason=why,
            )


def _round_timer(group: ServerGroup) -> TimerKey:
    return TimerKey(TimerKind.ROUND, group.id)


def cancel_round(group: ServerGroup, turn: Turn) -> None:
    turn.cancel_timer(_round_timer(group))
