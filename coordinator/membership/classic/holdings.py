"""How a member gives up partitions: revoked while a commit still succeeds, or lost; all of them or some.

An eager member revokes everything before it joins. A cooperative one (KIP-429) keeps what it has through a rebalance:
before the join it revokes what it no longer subscribes to, after the sync what the new assignment takes away, and it
keeps delivering the rest. `Member.releasing` is what is being revoked; the rest may be lost at once meanwhile.

A parked JoinGroup or SyncGroup is limited only by its own request timeout: if the coordinator goes silent, the member
delivers what it kept until the request times out, though the group may have reassigned it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.membership.classic.member import NO_GENERATION, Member
from coordinator.membership.effects import CommitPositions, Effect, Emit, Lose, Revoke
from kernel.values import partitions_field, replaced

if TYPE_CHECKING:
    from kernel.values import TopicPartition

Step = tuple[Member, tuple[Effect, ...]]

NOTHING: frozenset[TopicPartition] = frozenset()


def to_release_before_join(member: Member) -> frozenset[TopicPartition]:
    """Return what must be revoked before a join (Kafka's onJoinPrepare)."""
    if not member.settings.cooperative:
        return member.owned
    return frozenset(tp for tp in member.owned if tp.topic not in (member.topics or ()))


def release(member: Member, partitions: frozenset[TopicPartition], *, commit: bool = True) -> Step:
    """Commit everything delivered so far, then revoke these; `Stopped` reports that it is done."""
    releasing = replaced(member, releasing=partitions)
    if not commit or not member.settings.auto_commit or member.identity is None:
        return releasing, (Revoke(partitions),)
    return releasing, (CommitPositions(member.stamp, member.identity, wait=True), Revoke(partitions))


def released(member: Member) -> Step:
    """Finish a revocation. If the identity was lost meanwhile, the partitions count as lost, not revoked."""
    without = replaced(member, owned=member.owned - member.releasing, releasing=NOTHING)
    if not member.releasing:
        return without, ()
    kind = "partitions_lost" if member.identity is None else "partitions_revoked"
    return without, (emit_removed(member, kind, member.releasing),)


def lose_all(before: Member, after: Member) -> Step:
    """Lose whatever `before` owned, since others may own it by now; traced under the identity of `before`."""
    without = replaced(after, owned=NOTHING, releasing=NOTHING)
    if not before.owned:
        return without, ()
    return without, (Lose(before.owned), emit_removed(before, "partitions_lost", before.owned))


def lose_kept(before: Member, after: Member) -> Step:
    """Lose whatever the running revocation does not cover; the revocation continues."""
    kept = before.owned - before.releasing
    without = replaced(after, owned=before.releasing)
    if not kept:
        return without, ()
    return without, (Lose(kept), emit_removed(before, "partitions_lost", kept))


def emit_removed(member: Member, kind: str, gone: frozenset[TopicPartition]) -> Emit:
    """Traced under the id with which the member had them, also when that is already forgotten."""
    generation = None if member.generation == NO_GENERATION else member.generation
    fields = {
        "partitions": partitions_field(gone),
        "all": partitions_field(member.owned - gone),
        "generation": generation,
    }
    return Emit(kind, member.member_id or member.traced_id, member.cause, fields)


def emit_assigned(member: Member, added: frozenset[TopicPartition]) -> Emit:
    fields = {
        "partitions": partitions_field(added),
        "all": partitions_field(member.owned),
        "generation": member.generation,
    }
    return Emit("partitions_assigned", member.member_id, member.cause, fields)
