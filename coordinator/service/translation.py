"""Translates requests and answers of the group protocol between their wire form and the machine's values.

Bodies are kio's entities of any version, without the fields of later ones. Answers are plain mappings with the fields
of all versions (`kernel.wire.writing` drops those that a version lacks, and writes null as '' where it is not
allowed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator.groups.errors import Error
from coordinator.groups.requests import (
    NO_TIME,
    AddGroup,
    AddPartitions,
    Commit,
    DeleteOffsets,
    EndTransaction,
    Heartbeat,
    InitProducer,
    Join,
    Leave,
    Leaving,
    OffsetToCommit,
    Producer,
    Sync,
)
from kernel.clock import milliseconds
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator.groups.answers import (
        LeaveAnswer,
        TransactionAnswer,
    )
    from coordinator.groups.inspection import GroupDescription, ListedGroup
    from coordinator.groups.offsets.offsets import Fetched
    from coordinator.groups.records import OffsetRecord
    from coordinator.service.group_requests import JoinBody, SyncBody

Body = Any  #: a kio entity of one of several versions
Plain = dict[str, Any]


#: All operations, as without an authorizer: the bits of READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS.
GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
NOT_ASKED_FOR = -(2**31)

#: The versions from which on requests change their meaning.
JOIN_RETURNS_WITH_ID = 4  # KIP-394
JOIN_SKIPS_ASSIGNMENT = 9  # KIP-814
SYNC_NAMES_PROTOCOL = 5  # KIP-559
LEAVE_IS_BATCH = 3  # KIP-345
COMMIT_NAMES_ABSENT_GROUP = 9  # KIP-848
IN_ZOOKEEPER = 0  # the only versions of OffsetCommit and OffsetFetch whose offsets are in ZooKeeper
FETCH_HAS_TOP_ERROR = 2
FETCH_KNOWS_UNSTABLE = 7  # KIP-447
INIT_NAMES_FENCE = 4  # from here on PRODUCER_FENCED instead of INVALID_PRODUCER_EPOCH (KIP-588)
TRANSACTION_NAMES_FENCE = 2
ADD_PARTITIONS_IS_BATCH = 4  # between brokers (KIP-890)
COMMIT_IS_ABORTABLE = 4  # TRANSACTION_ABORTABLE instead of INVALID_TXN_STATE (KIP-890)
DESCRIBE_NAMES_ABSENT_GROUP = 6  # KIP-1043


# -- JoinGroup, SyncGroup, Heartbeat, LeaveGroup -------------------------------------------------------------------


def join(body: JoinBody, version: int, token: int, *, client_id: str, host: str, fresh_id: str) -> Join:
    return Join(
        token,
        body.group_id,
        body.member_id,
        client_id,
        f"/{host}",  # as Kafka shows it: InetAddress.toString
        body.session_timeout_ms,
        body.rebalance_timeout_ms,
        body.protocol_type,
        body.protocols,
        fresh_id,
        body.instance_id,
        version >= JOIN_RETURNS_WITH_ID,
        version >= JOIN_SKIPS_ASSIGNMENT,
    )


def lacks_protocol(body: SyncBody, version: int) -> bool:
    """Whether a SyncGroup lacks the protocol, which is mandatory from v5 on (KIP-559)."""
    return version >= SYNC_NAMES_PROTOCOL and (body.protocol_type is None or body.protocol_name is None)


def sync(body: SyncBody, version: int, token: int) -> Sync:
    return Sync(
        token,
        body.group_id,
        body.member_id,
        body.generation,
        body.instance_id,
        body.protocol_type,
        body.protocol_name,
        version >= SYNC_NAMES_PROTOCOL,
        body.assignments,
    )


def heartbeat(body: Body, token: int) -> Heartbeat:
    return Heartbeat(
        token=token,
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=getattr(body, "group_instance_id", None),
        generation=body.generation_id,
    )


def leave(body: Body, version: int, token: int) -> Leave:
    if version < LEAVE_IS_BATCH:
        members: tuple[Leaving, ...] = (Leaving(body.member_id),)
    else:
        members = tuple(Leaving(m.member_id, m.group_instance_id) for m in body.members)
    return Leave(token=token, group_id=body.group_id, members=members)


def leave_answer(answer: LeaveAnswer, version: int) -> Plain:
    if version < LEAVE_IS_BATCH:
        return {"error_code": int(answer.error or answer.members[0].error)}
    return {
        "error_code": int(answer.error),
        "members": [
            {"member_id": m.member_id, "group_instance_id": m.instance_id, "error_code": int(m.error)}
            for m in answer.members
        ],
    }


# -- offsets -------------------------------------------------------------------------------------------------------


def commit(body: Body, version: int, offsets: tuple[OffsetToCommit, ...], token: int, *, client_id: str) -> Commit:
    """`offsets` are some or all of the body's."""
    return Commit(
        token=token,
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=getattr(body, "group_instance_id", None),
        generation=body.generation_id_or_member_epoch,
        client_id=client_id,
        offsets=offsets,
        absent_group_is_named=version >= COMMIT_NAMES_ABSENT_GROUP,
    )


def commit_in_transaction(body: Body, offsets: tuple[OffsetToCommit, ...], token: int, *, client_id: str) -> Commit:
    """TxnOffsetCommit; without a member up to v2 (KIP-447)."""
    return Commit(
        token=token,
        group_id=body.group_id,
        member_id=getattr(body, "member_id", ""),
        instance_id=getattr(body, "group_instance_id", None),
        generation=getattr(body, "generation_id", -1),
        client_id=client_id,
        offsets=offsets,
        producer=Producer(body.producer_id, body.producer_epoch),
    )


def offsets_to_commit(body: Body) -> tuple[OffsetToCommit, ...]:
    """In the order of the request."""
    return tuple(
        [
            OffsetToCommit(
                topic.name,
                p.partition_index,
                p.committed_offset,
                getattr(p, "committed_leader_epoch", -1),
                p.committed_metadata or "",
                getattr(p, "commit_timestamp", NO_TIME),
            )
            for topic in body.topics
            for p in topic.partitions
        ]
    )


def partitions_of(body: Body) -> list[tuple[str, list[int]]]:
    """The partitions of a commit, in the order of the request."""
    return [(topic.name, [p.partition_index for p in topic.partitions]) for topic in body.topics]


def commit_answer(
    body: Body, errors: Iterable[Error], is_topic: Callable[[str], bool], *, merges: bool = False
) -> Plain:
    """One error for each partition, in the order of the request. `merges`: one row per topic in any case."""
    return {"topics": _partition_errors(body.topics, errors, is_topic, merges=merges)}


def _partition_errors(
    topics: Iterable[Body], errors: Iterable[Error], is_topic: Callable[[str], bool], *, merges: bool = False
) -> list[Plain]:
    """The request's topics, each partition with its error.

    Kafka refuses unknown partitions before the coordinator sees the rest, and then merges the two answers, one row per
    topic. Without refusals a topic that the request repeats stays repeated. A topic without partitions is left out,
    unless it does not exist.
    """
    error_of_next = iter(errors)
    rows: list[Plain] = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": p.partition_index, "error_code": int(next(error_of_next))} for p in topic.partitions
            ],
        }
        for topic in topics
        if topic.partitions or not is_topic(topic.name)
    ]
    refused = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if not merges and all(
        row["partitions"] and all(p["error_code"] != refused for p in row["partitions"]) for row in rows
    ):
        return rows
    merged: dict[str, list[Plain]] = {}
    for row in rows:
        merged.setdefault(row["name"], []).extend(row["partitions"])
    return [{"name": name, "partitions": partitions} for name, partitions in merged.items()]


def wanted(topics: Iterable[Body] | None) -> tuple[tuple[str, int], ...] | None:
    """The partitions that one group of an OffsetFetch asks for; None: all."""
    if topics is None:
        return None
    return tuple((topic.name, partition) for topic in topics for partition in topic.partition_indexes)


def fetched(topics: Iterable[Body] | None, offsets: Iterable[Fetched], error: Error = Error.NONE) -> list[Plain]:
    """The topics of an OffsetFetch answer, repeated as in the request (None: each once).

    `error` applies to every partition (v1, which has no other place for it).
    """
    rows = ((topic, _fetched_partition(partition, found, error)) for topic, partition, found in offsets)
    if topics is not None:
        of_next = (row for _, row in rows)
        return [
            {"name": topic.name, "partitions": [next(of_next) for _ in topic.partition_indexes]} for topic in topics
        ]
    grouped: dict[str, list[Plain]] = {}
    for topic, row in rows:
        grouped.setdefault(topic, []).append(row)
    return [{"name": topic, "partitions": partitions} for topic, partitions in grouped.items()]


def _fetched_partition(partition: int, found: OffsetRecord | Error | None, error: Error) -> Plain:
    record, error_of_it = (None, found) if isinstance(found, Error) else (found, error)
    return {
        "partition_index": partition,
        "committed_offset": -1 if record is None else record.offset,
        "committed_leader_epoch": -1 if record is None else record.leader_epoch,
        "metadata": "" if record is None else record.metadata,
        "error_code": int(error_of_it),
    }


def delete_offsets(body: Body, token: int) -> DeleteOffsets:
    return DeleteOffsets(
        token=token,
        group_id=body.group_id,
        partitions=tuple((topic.name, p.partition_index) for topic in body.topics for p in topic.partitions),
    )


def delete_offsets_answer(body: Body, errors: Iterable[Error], is_topic: Callable[[str], bool]) -> Plain:
    """One error for each partition, in the order of the request."""
    return {"error_code": int(Error.NONE), "topics": _partition_errors(body.topics, errors, is_topic)}


def offsets_not_deleted(error: Error) -> Plain:
    return {"error_code": int(error), "topics": []}


# -- transactions --------------------------------------------------------------------------------------------------


def init_producer(body: Body, token: int, *, fresh_id: int) -> InitProducer:
    """InitProducerId; from v3 on with the producer's claimed identity (KIP-360)."""
    return InitProducer(
        token=token,
        transactional_id=body.transactional_id,
        timeout_ms=milliseconds(body.transaction_timeout),
        producer=Producer(getattr(body, "producer_id", -1), getattr(body, "producer_epoch", -1)),
        fresh_id=fresh_id,
    )


def add_group(body: Body, token: int) -> AddGroup:
    return AddGroup(
        token=token,
        transactional_id=body.transactional_id,
        producer=Producer(body.producer_id, body.producer_epoch),
        group_id=body.group_id,
    )


def add_partitions(body: Body, token: int) -> AddPartitions:
    """AddPartitionsToTxn from a client, versions 0 to 3."""
    return AddPartitions(
        token=token,
        transactional_id=body.v3_and_below_transactional_id,
        producer=Producer(body.v3_and_below_producer_id, body.v3_and_below_producer_epoch),
        partitions=topic_partitions(body.v3_and_below_topics),
    )


def topic_partitions(topics: Iterable[Any]) -> tuple[TopicPartition, ...]:
    """The partitions of an AddPartitionsToTxn, in order."""
    return tuple(TopicPartition(topic.name, number) for topic in topics for number in topic.partitions)


def partition_results(topics: Iterable[Any], result: Callable[[TopicPartition], Error]) -> list[Plain]:
    """The rows of an AddPartitionsToTxn answer for these topics."""
    return [
        {
            "name": topic.name,
            "results_by_partition": [
                {
                    "partition_index": number,
                    "partition_error_code": int(result(TopicPartition(topic.name, number))),
                }
                for number in topic.partitions
            ],
        }
        for topic in topics
    ]


def end_transaction(body: Body, token: int) -> EndTransaction:
    return EndTransaction(
        token=token,
        transactional_id=body.transactional_id,
        producer=Producer(body.producer_id, body.producer_epoch),
        commits=body.committed,
    )


def transaction_error(answer: TransactionAnswer, *, names_fence: bool) -> int:
    if answer.error is Error.PRODUCER_FENCED and not names_fence:
        return int(Error.INVALID_PRODUCER_EPOCH)
    return int(answer.error)


# -- inspection -------------------------------------------------------------------------------------------------------


def described(group_id: str, group: GroupDescription, *, error: Error = Error.NONE, operations: bool) -> Plain:
    return {
        "error_code": int(error),
        "error_message": f"Group {group_id} not found." if error is Error.GROUP_ID_NOT_FOUND else None,
        "group_id": group_id,
        "group_state": group.state.value if error in (Error.NONE, Error.GROUP_ID_NOT_FOUND) else "",
        "protocol_type": group.protocol_type,
        "protocol_data": group.protocol_name,
        "members": [
            {
                "member_id": m.member_id,
                "group_instance_id": m.instance_id,
                "client_id": m.client_id,
                "client_host": m.client_host,
                "member_metadata": m.metadata,
                "member_assignment": m.assignment,
            }
            for m in group.members
        ],
        "authorized_operations": GROUP_OPERATIONS if operations else NOT_ASKED_FOR,
    }


def listed(group: ListedGroup) -> Plain:
    return {
        "group_id": group.group_id,
        "protocol_type": group.protocol_type,
        "group_state": group.state.value,
        "group_type": group.type,
    }


def overlong(texts: Mapping[str, str | None], limit_bytes: int) -> str | None:
    """The name of a text that is too long for a stored record, None if all fit."""
    return next((name for name, text in texts.items() if text and len(text.encode()) > limit_bytes), None)
