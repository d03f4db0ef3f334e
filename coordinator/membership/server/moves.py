"""The moves that a member's actions are made of: register, ask, lose, give up.

A move takes the member as it is and returns what it becomes, with effects where there are any; names that begin
with `tell` return trace events only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.membership.effects import CommitPositions, Effect, Emit, FindCoordinator, Lose
from coordinator.membership.server.effects import AwaitCommand, CallOff, Register, Revoke
from coordinator.membership.server.member import ASKING, NO_GENERATION, NS_PER_MS, Member, State, Timers
from coordinator.membership.tracing import emit, enter

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.values import TopicPartition

Step = tuple[Member, tuple[Effect, ...]]


# -- asking -------------------------------------------------------------------------------------------------------


def ask(member: Member) -> Step:
    """Go on: await the next command, or look for the coordinator first. One question at a time."""
    if member.coordinator is None:
        return find(member)
    if member.asking or member.state not in ASKING:
        return member, ()
    asking = replace(member, asking=True, timers=replace(member.timers, retry_ns=None))
    return asking, (AwaitCommand(asking.stamp, asking.member_id, asking.generation, asking.stopped),)


def find(member: Member) -> Step:
    if member.finding:
        return member, ()
    return replace(member, finding=True, timers=replace(member.timers, retry_ns=None)), (FindCoordinator(),)


def later(member: Member, now: int) -> Member:
    """What is to be done next is done after the backoff."""
    return replace(member, timers=replace(member.timers, retry_ns=now + member.settings.retry_backoff_ms * NS_PER_MS))


def called_off(member: Member) -> Step:
    """An answer that is still awaited would be of an earlier life."""
    return replace(member, asking=False), ((CallOff(),) if member.asking else ())


# -- the registration ---------------------------------------------------------------------------------------------


def register(member: Member) -> Step:
    """Into ZooKeeper first: the coordinator knows nobody whose id does not stand there."""
    registering = replace(member, state=State.REGISTERING, registered=False, stamp=member.stamp + 1, timers=Timers())
    begun, told = begin_rebalance(registering)
    return begun, (*told, Register(begun.stamp, begun.session))


def unregistered(member: Member) -> Member:
    """Without a session in which it could be registered, or without certainty of one."""
    return replace(member, state=State.UNREGISTERED, registered=False, stamp=member.stamp + 1, timers=Timers())


def without_generation(member: Member) -> Member:
    """As somebody who has never been told to start anything."""
    return replace(member, generation=NO_GENERATION, stopped=NO_GENERATION, stamp=member.stamp + 1)


# -- a rebalance, as the trace sees it -----------------------------------------------------------------------------


def begin_rebalance(member: Member) -> Step:
    """Unless one is under way: from now on it waits to be told what to start."""
    if member.attempt:
        return member, ()
    begun = replace(member, attempt=1)
    return begun, (
        emit(begun, "rebalance_started", trigger=begun.trigger),
        emit(begun, "attempt_started", attempt=1),
        enter(begun, "join"),
    )


def next_attempt(member: Member, outcome: str, error: str) -> Step:
    if not member.attempt:
        return begin_rebalance(member)
    again = replace(member, attempt=member.attempt + 1)
    return again, (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(again, "attempt_started", attempt=again.attempt),
        enter(again, "join"),
    )


def end_rebalance(member: Member, outcome: str, error: str) -> Step:
    """It comes to nothing."""
    if not member.attempt:
        return member, ()
    return replace(member, attempt=0), (
        emit(member, "attempt_ended", attempt=member.attempt, outcome=outcome, error=error),
        emit(member, "rebalance_ended", outcome="superseded"),
    )


# -- what is owned --------------------------------------------------------------------------------------------------


def give_up(member: Member) -> tuple[Effect, ...]:
    """In the order that the group relies on: commit, then tell the application, and only then say so."""
    revoke = Revoke(member.owned)
    if not member.settings.auto_commit or member.identity is None:
        return (revoke,)
    return CommitPositions(member.stamp, member.identity, wait=True), revoke


def lose(member: Member, trigger: str) -> Step:
    """What is owned may be somebody else's by now; a rebalance that is under way goes on."""
    lost = replace(member, owned=frozenset(), trigger=trigger)
    gone: tuple[Effect, ...] = (Lose(member.owned), tell_gone(member, "partitions_lost")) if member.owned else ()
    return lost, (*gone, emit(member, "rebalance_triggered", trigger=trigger))


def tell_gone(member: Member, kind: str) -> Emit:
    """Of the generation that gave it, which the member may have given up already."""
    fields = {"partitions": partitions_field(member.owned), "all": [], "generation": member.owned_since}
    return Emit(kind, member.member_id, f"generation:{member.owned_since}", fields)


def partitions_field(partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    return [{"topic": tp.topic, "partition": tp.partition} for tp in sorted(partitions)]
