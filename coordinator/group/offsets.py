"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete.

A commit is checked for member and generation, never for ownership: the coordinator does not know what a member's
assignment means. A commit that is accepted shows only once it is durable. Fetching asks nobody for membership.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.group.answers import CommitAnswer, DeleteOffsetsAnswer, PartitionError
from coordinator.group.errors import Error
from coordinator.group.outcome import OffsetsDeleted, OffsetsStored
from coordinator.group.records import OffsetKey, OffsetRecord
from coordinator.group.states import State
from coordinator.group.vigils import expect_heartbeat
from coordinator.protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.group.group import Group
    from coordinator.group.outcome import Turn
    from coordinator.group.requests import Commit, DeleteOffsets

Offsets = dict[tuple[str, int], OffsetRecord]  #: of one group, by topic and partition


def commit(group: Group | None, request: Commit, turn: Turn) -> OffsetsStored | None:
    """One OffsetCommit; returns what is on its way to the log now, None when nothing is.

    `group` None with a generation < 0 is a simple group about to be made by its offsets.
    """
    refusal = commit_refusal(group, request)
    if refusal is not None:
        refuse_commit(request, refusal, turn)
        return None
    if group is not None and group.state in {State.STABLE, State.PREPARING}:
        member = group.members.get(request.member_id)
        if member is not None:
            expect_heartbeat(group, member, turn)
    limit = turn.limits.offset_metadata_bytes_max
    errors = tuple(
        PartitionError(
            o.topic,
            o.partition,
            Error.OFFSET_METADATA_TOO_LARGE if len(o.metadata.encode()) > limit else Error.NONE,
        )
        for o in request.offsets
    )
    changes = tuple(
        (
            OffsetKey(request.group_id, o.topic, o.partition),
            OffsetRecord(o.offset, o.leader_epoch, o.metadata, turn.now.wall_ms),
        )
        for o, outcome in zip(request.offsets, errors, strict=True)
        if outcome.error is Error.NONE
    )
    answer = CommitAnswer(errors)
    if not changes:
        _tell(request, answer, turn)
        return None
    done = OffsetsStored(request, changes, answer)
    turn.write(*changes, then=done)
    return done


def commit_refusal(group: Group | None, request: Commit) -> Error | None:
    """Why a commit is refused as a whole, in Kafka's order of checks."""
    anonymous = request.generation < 0
    if group is None:
        if anonymous:
            return None
        return Error.GROUP_ID_NOT_FOUND if request.absent_group_is_named else Error.ILLEGAL_GENERATION
    if group.state is State.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    if anonymous and group.state is State.EMPTY:
        return None  # a consumer without group management, or an administrator: ids are not even looked at
    if anonymous and not request.member_id and request.instance_id is None:
        return Error.UNKNOWN_MEMBER_ID
    refusal = group.refusal_at(request.generation, request.member_id, request.instance_id)
    if refusal is not None:
        return refusal
    return Error.REBALANCE_IN_PROGRESS if group.state is State.COMPLETING else None


def refuse_commit(request: Commit, error: Error, turn: Turn) -> None:
    """Every partition is told the same error."""
    answer = CommitAnswer(tuple(PartitionError(o.topic, o.partition, error) for o in request.offsets))
    _tell(request, answer, turn)


def stored(done: OffsetsStored, turn: Turn) -> None:
    """The commit is durable (the shard has applied it): say so."""
    _tell(done.request, done.answer, turn)


def _tell(request: Commit, answer: CommitAnswer, turn: Turn) -> None:
    """Answer a commit, and trace what was written and what was refused."""
    turn.reply(request.token, answer)
    for o, (_, _, error) in zip(request.offsets, answer.partitions, strict=True):
        refused = {} if error is Error.NONE else {"error": error.name}
        turn.trace(
            "offset_refused" if refused else "offset_written",
            cause=f"generation:{request.generation}",
            group=request.group_id,
            topic=o.topic,
            partition=o.partition,
            offset=o.offset,
            by=_sender(request),
            epoch=request.generation,
            **refused,
        )


def _sender(request: Commit) -> str:
    return request.member_id or request.client_id


def fetch(
    group: Group | None, offsets: Mapping[tuple[str, int], OffsetRecord], wanted: tuple[tuple[str, int], ...] | None
) -> list[tuple[str, int, OffsetRecord | None]]:
    """Committed offsets of `wanted` (topic, partition), None where there is none; `wanted` None: all there are."""
    if group is None or group.state is State.DEAD:
        offsets = {}
    if wanted is None:
        return [(topic, partition, record) for (topic, partition), record in offsets.items()]
    return [(topic, partition, offsets.get((topic, partition))) for topic, partition in wanted]


def delete(
    group: Group | None,
    offsets: Mapping[tuple[str, int], OffsetRecord],
    request: DeleteOffsets,
    turn: Turn,
) -> None:
    """OffsetDelete (KIP-496): not for topics that a consumer group with members is subscribed to."""
    if group is None or group.state is State.DEAD:
        turn.reply(request.token, DeleteOffsetsAnswer(error=Error.GROUP_ID_NOT_FOUND))
        return
    if group.state is not State.EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        turn.reply(request.token, DeleteOffsetsAnswer(error=Error.NON_EMPTY_GROUP))
        return
    errors = tuple(
        PartitionError(topic, partition, Error.GROUP_SUBSCRIBED_TO_TOPIC if is_subscribed(group, topic) else Error.NONE)
        for topic, partition in request.partitions
    )
    changes = tuple(
        (OffsetKey(group.id, topic, partition), None)
        for topic, partition, error in errors
        if error is Error.NONE and (topic, partition) in offsets
    )
    answer = DeleteOffsetsAnswer(partitions=errors)
    if changes:
        turn.write(*changes, then=OffsetsDeleted(request.token, changes, answer))
    else:
        turn.reply(request.token, answer)


def is_subscribed(group: Group, topic: str) -> bool:
    """Subscriptions that cannot be read count as subscribed to everything."""
    if not group.members:
        return False
    if group.topics is None:
        return group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return topic in group.topics
