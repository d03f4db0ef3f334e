"""Schemas of messages that Kafka does not have: the `server` design's AwaitCommand 0 and CommitOwned 0, DescribeLoop 0.

They use Kafka's frames and headers (request header 1, response header 0), with API keys far above Kafka's.
docs/server-protocol.md describes the fields of the design, and `coordinator.protocol.server.messages` turns them into
values; those of DescribeLoop are the fields of `kernel.broker.loop.loop_figures.LoopFigures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kio.static.primitive import i64

from kernel.wire.schema_classes import Column, Schema, array_of
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXTS = Column("string", tuple[str, ...])
_NULLABLE_TEXT = Column("string", str | None, None)
_NO_OFFSET = Column("int64", i64, i64(-1))


def _await_request() -> type[Any]:
    schema = Schema(Api.AwaitCommand, 0, request=True)
    return schema.whole(
        "AwaitCommandRequest",
        group_id="string",
        member_id="string",
        generation="int32",
        stopped="int32",
        strategy="string",
        topics=_TEXTS,
        wait_ms="int32",
    )


def _await_response() -> type[Any]:
    schema = Schema(Api.AwaitCommand, 0, request=False)
    partition = schema.part("CommandedPartition", topic="string", partition="int32", offset=_NO_OFFSET)
    return schema.whole(
        "AwaitCommandResponse",
        error_code="int16",
        command="int8",
        generation="int32",
        partitions=array_of(partition),
    )


def _commit_request() -> type[Any]:
    schema = Schema(Api.CommitOwned, 0, request=True)
    offset = schema.part("OwnedOffset", topic="string", partition="int32", offset="int64", metadata=_NULLABLE_TEXT)
    return schema.whole(
        "CommitOwnedRequest", group_id="string", member_id="string", generation="int32", offsets=array_of(offset)
    )


def _commit_response() -> type[Any]:
    schema = Schema(Api.CommitOwned, 0, request=False)
    partition = schema.part("CommittedPartition", topic="string", partition="int32", error_code="int16")
    return schema.whole("CommitOwnedResponse", partitions=array_of(partition))


def _loop_request() -> type[Any]:
    schema = Schema(Api.DescribeLoop, 0, request=True)
    return schema.whole("DescribeLoopRequest", reset="bool")


def _loop_response() -> type[Any]:
    schema = Schema(Api.DescribeLoop, 0, request=False)
    return schema.whole(
        "DescribeLoopResponse",
        error_code="error_code",
        turns="int64",
        measured_us="int64",
        longest_us="int64",
        longest_collection_us="int64",
        longest_piece_us="int64",
        longest_piece="string",
        histogram=Column("int64", tuple[i64, ...]),
    )


#: {(API, version): class}
REQUESTS: Mapping[tuple[int, int], type[Any]] = {
    (Api.AwaitCommand, 0): _await_request(),
    (Api.CommitOwned, 0): _commit_request(),
    (Api.DescribeLoop, 0): _loop_request(),
}
RESPONSES: Mapping[tuple[int, int], type[Any]] = {
    (Api.AwaitCommand, 0): _await_response(),
    (Api.CommitOwned, 0): _commit_response(),
    (Api.DescribeLoop, 0): _loop_response(),
}
