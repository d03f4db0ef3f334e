"""Committed offsets: OffsetCommit, TxnOffsetCommit, OffsetFetch, OffsetDelete.

A commit is checked for member and generation, never for ownership: assignments are opaque to the coordinator. A commit
is visible once it is durable; in a transaction, once that is committed (`pending_offsets`). Fetching needs no
membership.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from coordinator.groups.answers import CommitAnswer, DeleteOffsetsAnswer, PartitionError
from coordinator.groups.classic.session_timers import restart_session
from coordinator.groups.classic.states import GroupState
from coordinator.groups.errors import Error
from coordinator.groups.records import OffsetKey, OffsetRecord, PendingKey
from coordinator.groups.requests import NO_GENERATION, NO_TIME
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from coordinator.groups.classic.group import Group
    from coordinator.groups.effects import Turn
    from coordinator.groups.records import Change
    from coordinator.groups.requests import Commit, DeleteOffsets, Mark, OffsetToCommit

Offsets = dict[tuple[str, int], OffsetRecord]  #: of one group, by topic and partition


def commit(group: Group | None, request: Commit, turn: Turn) -> tuple[list[Change], CommitAnswer] | None:
    """One OffsetCommit or TxnOffsetCommit: what is to be stored, and the answer when it is. None: refused.

    `group` None with a generation < 0 is a simple group about to be created by its offsets.
    """
    refusal = commit_refusal(group, request)
    if refusal is not None:
        refuse_commit(request, refusal, turn)
        return None
    if group is not None and request.producer is None and group.state in {GroupState.STABLE, GroupState.PREPARING}:
        member = group.members.get(request.member_id)
        if member is not None:
            restart_session(group, member, turn)
    metadata_length_max = turn.limits.offset_metadata_bytes_max
    is_judged = request.verdicts is not None
    errors = [
        _judged(request, o, metadata_length_max)
        if is_judged or o.metadata
        else PartitionError(o.topic, o.partition, Error.NONE)
        for o in request.offsets
    ]
    key_of, wall_ms = _key_maker(request), turn.now.wall_ms
    changes: list[Change] = [
        (
            key_of(topic, partition),
            OffsetRecord(offset, leader_epoch, metadata, wall_ms if committed_ms == NO_TIME else committed_ms),
        )
        for (topic, partition, offset, leader_epoch, metadata, committed_ms), (_, _, error) in zip(
            request.offsets, errors, strict=True
        )
        if error is Error.NONE
    ]
    answer = CommitAnswer(tuple(errors))
    if not changes:
        answer_commit(request, answer, turn)
        return None
    return changes, answer


def _judged(request: Commit, o: OffsetToCommit, metadata_length_max: int) -> PartitionError:
    error = (request.verdicts or {}).get((o.topic, o.partition), Error.NONE)
    if error is Error.NONE and exceeds(o.metadata, metadata_length_max):
        error = Error.OFFSET_METADATA_TOO_LARGE
    return PartitionError(o.topic, o.partition, error)


def exceeds(metadata: str, length_max: int) -> bool:
    """Whether it is longer than offset.metadata.max.bytes, which in spite of its name counts UTF-16 code units."""
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > length_max


def _key_maker(request: Commit) -> Callable[[str, int], Any]:
    """Makes the key of a topic and partition: of a committed offset, or of one pending in a transaction."""
    if request.producer is None:
        return partial(OffsetKey, request.group_id)
    return partial(PendingKey, request.producer.id, request.group_id)


def commit_refusal(group: Group | None, request: Commit) -> Error | None:
    """The error for a whole commit, if any, in Kafka's order of checks."""
    if request.verdicts is not None:
        return Error.COORDINATOR_NOT_AVAILABLE if group is not None and group.state is GroupState.DEAD else None
    anonymous = request.generation < 0
    if group is None:
        if anonymous:
            return None
        return Error.GROUP_ID_NOT_FOUND if request.absent_group_is_named else Error.ILLEGAL_GENERATION
    if group.state is GroupState.DEAD:
        return Error.COORDINATOR_NOT_AVAILABLE
    if anonymous and group.state is GroupState.EMPTY:
        return None  # a consumer without group management, or an administrator: ids are not checked
    if anonymous and not request.member_id and request.instance_id is None:
        # A producer that knows only the group's name is fenced by its transaction.
        return Error.UNKNOWN_MEMBER_ID if request.producer is None else None
    refusal = group.refusal_at(request.generation, request.member_id, request.instance_id)
    if refusal is not None:
        return refusal
    if group.state is GroupState.COMPLETING and request.producer is None:
        return Error.REBALANCE_IN_PROGRESS
    return None


def refuse_commit(request: Commit, error: Error, turn: Turn) -> None:
    """Answer with the same error for every partition."""
    answer = CommitAnswer(tuple(PartitionError(o.topic, o.partition, error) for o in request.offsets))
    answer_commit(request, answer, turn)


def answer_commit(request: Commit, answer: CommitAnswer, turn: Turn) -> None:
    """Answer a commit, and trace what was written and what was refused."""
    turn.reply(request.token, answer)
    if not turn.limits.traced:
        return
    for o, (_, _, error) in zip(request.offsets, answer.partitions, strict=True):
        refused = {} if error is Error.NONE else {"error": error.name}
        if request.producer is not None and not refused:
            continue  # traced when the transaction commits
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


def trace_committed(mark: Mark, changes: Iterable[Change], turn: Turn) -> None:
    """Trace offsets that their transaction has committed."""
    for key, record in changes:
        if isinstance(key, OffsetKey) and isinstance(record, OffsetRecord):
            turn.trace(
                "offset_written",
                cause=f"transaction:{mark.producer.id}/{mark.producer.epoch}",
                group=key.group_id,
                topic=key.topic,
                partition=key.partition,
                offset=record.offset,
                by=f"producer-{mark.producer.id}",
                epoch=NO_GENERATION,
            )


Fetched = tuple[str, int, OffsetRecord | Error | None]


def fetch(
    group: Group | None,
    offsets: Mapping[tuple[str, int], OffsetRecord],
    wanted: tuple[tuple[str, int], ...] | None,
    unstable: Callable[[str, str, int], bool] | None = None,
) -> list[Fetched]:
    """The committed offset, or None, of each `wanted` (topic, partition); `wanted` None: all.

    UNSTABLE_OFFSET_COMMIT where `unstable` (group, topic, partition) says that an open transaction may change the
    offset (KIP-447).
    """
    if group is None or group.state is GroupState.DEAD:
        offsets = {}
    elif unstable is not None:
        asked = offsets if wanted is None else wanted
        return [(*at, Error.UNSTABLE_OFFSET_COMMIT if unstable(group.id, *at) else offsets.get(at)) for at in asked]
    if wanted is None:
        return [(topic, partition, record) for (topic, partition), record in offsets.items()]
    return [(topic, partition, offsets.get((topic, partition))) for topic, partition in wanted]


def delete(group: Group | None, request: DeleteOffsets, topics: Collection[str] | None = None) -> DeleteOffsetsAnswer:
    """OffsetDelete (KIP-496): not for topics that a consumer group with members is subscribed to.

    `topics` are those of a group of the `consumer` design with the same id; None if there is none.

    The partitions without an error are to be deleted.
    """
    if group is None or group.state is GroupState.DEAD:
        if topics is None:
            return DeleteOffsetsAnswer(error=Error.GROUP_ID_NOT_FOUND)
        group = None
    elif group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return DeleteOffsetsAnswer(error=Error.NON_EMPTY_GROUP)
    return DeleteOffsetsAnswer(
        partitions=tuple(
            PartitionError(
                topic,
                partition,
                Error.GROUP_SUBSCRIBED_TO_TOPIC
                if topic in (topics or ()) or (group is not None and is_subscribed(group, topic))
                else Error.NONE,
            )
            for topic, partition in request.partitions
        )
    )


def is_subscribed(group: Group, topic: str) -> bool:
    """Subscriptions that cannot be decoded count as subscribed to everything."""
    if not group.members:
        return False
    if group.topics is None:
        return group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return topic in group.topics
