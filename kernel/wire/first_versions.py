"""Messages older than kio: Fetch 0 to 3 and ListOffsets 0, written by hand in the form of kio's own classes.

kio begins where Kafka 4.0 begins, with Fetch 4 and ListOffsets 1. The original high-level consumers are older: 0.8.2
sends Fetch 0, 1.1 sends Fetch 3, and both send ListOffsets 0. What each version holds (FetchRequest.json and
ListOffsetsRequest.json up to Kafka 3.9):

- Fetch 0 and 1 want messages of format 0, versions 2 and 3 of format 1. A limit for the whole answer comes with
  version 3 (KIP-74), the throttle time in the answer with version 1.
- ListOffsets 0 asks for at most `max_num_offsets` offsets and is answered with a list of them, without times.

kio's reader and writer take any dataclass that describes itself as kio's do, so these need no codec of their own.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v1.header import RequestHeader
from kio.schema.response_header.v0.header import ResponseHeader
from kio.schema.types import BrokerId, TopicName
from kio.static.constants import EntityType
from kio.static.primitive import Records, i16, i32, i32Timedelta, i64

from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Kafka's names of types, as kio spells them, and the Python types that stand for them.
_TYPES: Mapping[str, Any] = {
    "int32": i32,
    "int64": i64,
    "string": TopicName,
    "records": Records | None,
    "error_code": ErrorCode,
    "timedelta_i32": i32Timedelta,
}


class _Column(NamedTuple):
    """A field as kio describes it: `kind` is kio's name of the type, '' for an array of parts."""

    kind: str
    type_: Any
    default: Any = dataclasses.MISSING


def _array_of(part: Any) -> _Column:
    return _Column("", tuple[part, ...])


_REPLICA = _Column("int32", BrokerId, BrokerId(-1))  #: -1: a consumer asks
_BYTES_MAX = _Column("int32", i32, i32(2**31 - 1))
_OFFSETS = _Column("int64", tuple[i64, ...])


class _Schema:
    """Makes the classes of one message: its whole and its parts share version, API and header."""

    def __init__(self, api: Api, version: int, *, request: bool) -> None:
        self._payload = EntityType.request if request else EntityType.response
        self._described = {
            "__version__": i16(version),
            "__flexible__": False,
            "__api_key__": i16(api),
            "__header_schema__": RequestHeader if request else ResponseHeader,
        }

    def part(self, name: str, /, **fields: str | _Column) -> type[Any]:
        return self._made(name, EntityType.nested, fields)

    def whole(self, name: str, /, **fields: str | _Column) -> type[Any]:
        return self._made(name, self._payload, fields)

    def _made(self, name: str, kind: EntityType, fields: Mapping[str, str | _Column]) -> type[Any]:
        columns: list[tuple[str, Any, Any]] = []
        for field_name, given in fields.items():
            column = _Column(given, _TYPES[given]) if isinstance(given, str) else given
            metadata = {"kafka_type": column.kind} if column.kind else {}
            columns.append((field_name, column.type_, dataclasses.field(metadata=metadata, default=column.default)))
        namespace = {"__type__": kind, **self._described}
        return dataclasses.make_dataclass(name, columns, namespace=namespace, frozen=True, slots=True, kw_only=True)


def _fetch_request(version: int) -> type[Any]:
    schema = _Schema(Api.Fetch, version, request=True)
    partition = schema.part("FetchPartition", partition="int32", fetch_offset="int64", partition_max_bytes="int32")
    topic = schema.part("FetchTopic", topic="string", partitions=_array_of(partition))
    limit = {"max_bytes": _BYTES_MAX} if version >= 3 else {}
    return schema.whole(
        "FetchRequest",
        replica_id=_REPLICA,
        max_wait="timedelta_i32",
        min_bytes="int32",
        **limit,
        topics=_array_of(topic),
    )


def _fetch_response(version: int) -> type[Any]:
    schema = _Schema(Api.Fetch, version, request=False)
    partition = schema.part(
        "PartitionData", partition_index="int32", error_code="error_code", high_watermark="int64", records="records"
    )
    topic = schema.part("FetchableTopicResponse", topic="string", partitions=_array_of(partition))
    throttled = {"throttle_time": "timedelta_i32"} if version >= 1 else {}
    return schema.whole("FetchResponse", **throttled, responses=_array_of(topic))


def _list_offsets_request() -> type[Any]:
    schema = _Schema(Api.ListOffsets, 0, request=True)
    partition = schema.part("ListOffsetsPartition", partition_index="int32", timestamp="int64", max_num_offsets="int32")
    topic = schema.part("ListOffsetsTopic", name="string", partitions=_array_of(partition))
    return schema.whole("ListOffsetsRequest", replica_id=_REPLICA, topics=_array_of(topic))


def _list_offsets_response() -> type[Any]:
    schema = _Schema(Api.ListOffsets, 0, request=False)
    partition = schema.part(
        "ListOffsetsPartitionResponse", partition_index="int32", error_code="error_code", old_style_offsets=_OFFSETS
    )
    topic = schema.part("ListOffsetsTopicResponse", name="string", partitions=_array_of(partition))
    return schema.whole("ListOffsetsResponse", topics=_array_of(topic))


#: {(API, version): class}
REQUESTS: Mapping[tuple[int, int], type[Any]] = {
    **{(Api.Fetch, version): _fetch_request(version) for version in range(4)},
    (Api.ListOffsets, 0): _list_offsets_request(),
}
RESPONSES: Mapping[tuple[int, int], type[Any]] = {
    **{(Api.Fetch, version): _fetch_response(version) for version in range(4)},
    (Api.ListOffsets, 0): _list_offsets_response(),
}
