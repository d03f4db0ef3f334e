"""Schemas of messages that are too old for kio: Fetch 0 to 3, ListOffsets 0, OffsetCommit 0 and 1, OffsetFetch 0.

Like Kafka 4.0, kio begins with Fetch 4, ListOffsets 1, OffsetCommit 2 and OffsetFetch 1. Clients of the ZooKeeper era
are older: the high-level consumer of 0.8.2 sends Fetch 0, that of 1.1 Fetch 3, and both send ListOffsets 0; kafka-node
sends OffsetCommit 0 and OffsetFetch 0, pykafka OffsetCommit 1. The versions (the messages' JSON up to Kafka 3.9):

- Fetch 0 and 1 return messages of format 0, Fetch 2 and 3 of format 1. Version 1 adds the throttle time to the
  response, version 3 a size limit for the whole response (KIP-74).
- ListOffsets 0 requests at most `max_num_offsets` offsets; the response lists them without timestamps.
- OffsetCommit 0 and OffsetFetch 0 are about offsets in ZooKeeper; they look like their successors. OffsetCommit 1, the
  first one with a generation and a member, has a time for each partition where later ones have one retention time.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any

from kio.schema.types import BrokerId
from kio.static.primitive import i32, i64

from kernel.wire.schema_classes import Column, Schema, array_of
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_REPLICA = Column("int32", BrokerId, BrokerId(-1))  #: -1: the client is a consumer
_BYTES_MAX = Column("int32", i32, i32(2**31 - 1))
_OFFSETS = Column("int64", tuple[i64, ...])
_PARTITIONS = Column("int32", tuple[i32, ...])
_METADATA = Column("string", str | None)
_GROUP = Column("string", str)
_INT = Column("int32", i32)


def _fetch_request(version: int) -> type[Any]:
    schema = Schema(Api.Fetch, version, request=True)
    partition = schema.part("FetchPartition", partition="int32", fetch_offset="int64", partition_max_bytes="int32")
    topic = schema.part("FetchTopic", topic="string", partitions=array_of(partition))
    limit = {"max_bytes": _BYTES_MAX} if version >= 3 else {}
    return schema.whole(
        "FetchRequest",
        replica_id=_REPLICA,
        max_wait="timedelta_i32",
        min_bytes="int32",
        **limit,
        topics=array_of(topic),
    )


def _fetch_response(version: int) -> type[Any]:
    schema = Schema(Api.Fetch, version, request=False)
    partition = schema.part(
        "PartitionData", partition_index="int32", error_code="error_code", high_watermark="int64", records="records"
    )
    topic = schema.part("FetchableTopicResponse", topic="string", partitions=array_of(partition))
    throttled = {"throttle_time": "timedelta_i32"} if version >= 1 else {}
    return schema.whole("FetchResponse", **throttled, responses=array_of(topic))


def _list_offsets_request() -> type[Any]:
    schema = Schema(Api.ListOffsets, 0, request=True)
    partition = schema.part("ListOffsetsPartition", partition_index="int32", timestamp="int64", max_num_offsets="int32")
    topic = schema.part("ListOffsetsTopic", name="string", partitions=array_of(partition))
    return schema.whole("ListOffsetsRequest", replica_id=_REPLICA, topics=array_of(topic))


def _list_offsets_response() -> type[Any]:
    schema = Schema(Api.ListOffsets, 0, request=False)
    partition = schema.part(
        "ListOffsetsPartitionResponse", partition_index="int32", error_code="error_code", old_style_offsets=_OFFSETS
    )
    topic = schema.part("ListOffsetsTopicResponse", name="string", partitions=array_of(partition))
    return schema.whole("ListOffsetsResponse", topics=array_of(topic))


def _offset_commit_request(version: int) -> type[Any]:
    schema = Schema(Api.OffsetCommit, version, request=True)
    time = {"commit_timestamp": "int64"} if version >= 1 else {}
    partition = schema.part(
        "OffsetCommitRequestPartition",
        partition_index="int32",
        committed_offset="int64",
        **time,
        committed_metadata=_METADATA,
    )
    topic = schema.part("OffsetCommitRequestTopic", name="string", partitions=array_of(partition))
    member = {"generation_id_or_member_epoch": _INT, "member_id": _GROUP} if version >= 1 else {}
    return schema.whole("OffsetCommitRequest", group_id=_GROUP, **member, topics=array_of(topic))


def _offset_commit_response(version: int) -> type[Any]:
    schema = Schema(Api.OffsetCommit, version, request=False)
    partition = schema.part("OffsetCommitResponsePartition", partition_index="int32", error_code="error_code")
    topic = schema.part("OffsetCommitResponseTopic", name="string", partitions=array_of(partition))
    return schema.whole("OffsetCommitResponse", topics=array_of(topic))


def _offset_fetch_request() -> type[Any]:
    schema = Schema(Api.OffsetFetch, 0, request=True)
    topic = schema.part("OffsetFetchRequestTopic", name="string", partition_indexes=_PARTITIONS)
    return schema.whole("OffsetFetchRequest", group_id=_GROUP, topics=array_of(topic))


def _offset_fetch_response() -> type[Any]:
    schema = Schema(Api.OffsetFetch, 0, request=False)
    partition = schema.part(
        "OffsetFetchResponsePartition",
        partition_index="int32",
        committed_offset="int64",
        metadata=_METADATA,
        error_code="error_code",
    )
    topic = schema.part("OffsetFetchResponseTopic", name="string", partitions=array_of(partition))
    return schema.whole("OffsetFetchResponse", topics=array_of(topic))


#: What makes the class of a message, by its API and version. Few processes meet such a client.
_REQUESTS: Mapping[tuple[int, int], Callable[[], type[Any]]] = {
    **{(Api.Fetch, version): partial(_fetch_request, version) for version in range(4)},
    (Api.ListOffsets, 0): _list_offsets_request,
    **{(Api.OffsetCommit, version): partial(_offset_commit_request, version) for version in range(2)},
    (Api.OffsetFetch, 0): _offset_fetch_request,
}
_RESPONSES: Mapping[tuple[int, int], Callable[[], type[Any]]] = {
    **{(Api.Fetch, version): partial(_fetch_response, version) for version in range(4)},
    (Api.ListOffsets, 0): _list_offsets_response,
    **{(Api.OffsetCommit, version): partial(_offset_commit_response, version) for version in range(2)},
    (Api.OffsetFetch, 0): _offset_fetch_response,
}


@cache
def first_version(api: int, version: int, *, request: bool) -> type[Any] | None:
    """The class of a message that is too old for kio; None if it is not."""
    make = (_REQUESTS if request else _RESPONSES).get((api, version))
    return None if make is None else make()
