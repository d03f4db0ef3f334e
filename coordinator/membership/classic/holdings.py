"""What happens to a member's partitions: given up while a commit is still good, or lost, in whole or in part.

An eager member gives up everything before it joins. A cooperative one (KIP-429) keeps what it has through a
rebalance: before the join it gives up what it does not subscribe to any more, after the sync what the new assignment
takes away, and goes on delivering the rest. `Member.releasing` is what a revocation under way covers; whatever else
is owned may meanwhile be lost at once.

A parked Join or Sync has no time limit but its own: should the coordinator fall silent then, what is kept is delivered
until the request is given up, though the group may have handed it on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.membership.classic.member import NO_GENERATION, Member
from coordinator.membership.effects import CommitPositions, Effect, Emit, Lose, Revoke

if TYPE_CHECKING:
    from kernel.values import TopicPartition

Step = tuple[Member, tuple[Effect, ...]]

NOTHING: frozenset[TopicPartition] = frozenset()


def to_release_before_join(member: Member) -> frozenset[TopicPartition]:
    """What Kafka calls onJoinPrepare gives up."""
    if not member.settings.cooperative:
        return member.owned
    return frozenset(tp for tp in member.owned if tp.topic not in (member.topics or ()))


def release(member: Member, partitions: frozenset[TopicPartition], *, commit: bool = True) -> Step:
    """Commit everything that was handed out, then revoke these; `Stopped` says that it is done."""
    releasing = replace(member, releasing=partitions)
    if not commit or not member.settings.auto_commit or member.identity is None:
        return releasing, (Revoke(partitions),)
    return releasing, (CommitPositions(member.stamp, member.identity, wait=True), Revoke(partitions))


def released(member: Member) -> Step:
    """The revocation is done. If the identity went meanwhile, others had the partitions already."""
    without = replace(member, owned=member.owned - member.releasing, releasing=NOTHING)
    if not member.releasing:
        return without, ()
    kind = "partitions_lost" if member.identity is None else "partitions_revoked"
    return without, (tell_gone(member, kind, member.releasing),)


def lose_all(before: Member, after: Member) -> Step:
    """Whatever `before` owned is somebody else's by now; `before` is who it was."""
    without = replace(after, owned=NOTHING, releasing=NOTHING)
    if not before.owned:
        return without, ()
    return without, (Lose(before.owned), tell_gone(before, "partitions_lost", before.owned))


def lose_kept(before: Member, after: Member) -> Step:
    """A revocation is under way and stays so: what it does not cover is lost."""
    kept = before.owned - before.releasing
    without = replace(after, owned=before.releasing)
    if not kept:
        return without, ()
    return without, (Lose(kept), tell_gone(before, "partitions_lost", kept))


def tell_gone(member: Member, kind: str, gone: frozenset[TopicPartition]) -> Emit:
    generation = None if member.generation == NO_GENERATION else member.generation
    fields = {"partitions": listed(gone), "all": listed(member.owned - gone), "generation": generation}
    return Emit(kind, member.member_id, member.cause, fields)


def tell_taken(member: Member, added: frozenset[TopicPartition]) -> Emit:
    fields = {"partitions": listed(added), "all": listed(member.owned), "generation": member.generation}
    return Emit("partitions_assigned", member.member_id, member.cause, fields)


def listed(partitions: frozenset[TopicPartition]) -> list[dict[str, object]]:
    """As the trace has partitions."""
    return [{"topic": tp.topic, "partition": tp.partition} for tp in sorted(partitions)]
