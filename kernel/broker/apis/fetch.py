"""Fetch, by long poll, without sessions.

Source: KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages and DelayedFetch of Kafka 3.9. A Fetch completes
when min_bytes are available (max_bytes, if that is less), a partition has an error, or max_wait is over. Until then
available bytes are counted but not read, so a waiting Fetch holds no records. Sessions (KIP-227) are declined with
session id 0: clients then always name all partitions. High watermark and log end are the same: records are visible once
they are durable. With isolation level read_committed (KIP-98) reading ends at the last stable offset, and the response
lists the aborted transactions whose batches the client has to skip.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kernel.broker.apis.refusals import current_leader, endpoints, not_led, wrong_epoch
from kernel.broker.server.handlers import ReservedResponse
from kernel.broker.storage.errors import Fenced, OffsetOutOfRange, StorageFailed
from kernel.records.down_conversion import NotConvertible, down_converted
from kernel.records.records import CorruptRecords, headers_of, is_control
from kernel.values import TopicPartition
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.cluster.led_logs import LedLogs
    from kernel.broker.server.budget import Budget
    from kernel.broker.server.handlers import HandlerTable, RequestContext
    from kernel.broker.storage.logs import ReadableLog
    from kernel.records.compression import UnpackingTurn
    from kernel.records.transactions import AbortedTransaction

log = logging.getLogger(__name__)

_NO_ID = UUID(int=0)
#: Up to this version, Fetch responses have the record formats before 0.11.
_OLD_FORMATS = 3
#: Fetch's and ListOffsets' isolation level; the other one is 0.
READ_COMMITTED = 1

#: FetchMetadata: epochs of requests without a session; any other continues one, and there are none here.
NO_SESSION, NEW_SESSION = -1, 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """One partition of a Fetch; `tp` is None if its topic id is unknown."""

    tp: TopicPartition | None
    topic: str
    topic_id: UUID | None
    partition: int
    offset: int
    leader_epoch: int
    max_bytes: int
    committed: bool = False


class Available:
    """Counts the bytes available to a Fetch without reading them. Logs that have not grown are not counted again."""

    def __init__(self, wanted: Sequence[Wanted], led: Callable[[Wanted], ReadableLog | None]) -> None:
        self._wanted = wanted
        self._led = led
        self._counted: dict[int, tuple[int, int]] = {}  # by index in `wanted`: the log's end, the bytes up to it

    async def reaches(self, min_bytes: int) -> bool:
        """Whether that many are available, or a partition has an error, which completes the Fetch."""
        size = 0
        for place, one in enumerate(self._wanted):
            led = self._led(one)
            if (
                led is None
                or wrong_epoch(led, one.leader_epoch) is not None
                or not led.start_offset <= one.offset <= led.end_offset
            ):
                return True
            readable = _end(one, led)
            if one.offset >= readable:
                continue
            if min_bytes <= 1:
                return True
            end, counted = self._counted.get(place, (-1, 0))
            if end != readable:
                end = readable
                try:
                    counted = await led.size_from(one.offset, min(one.max_bytes, min_bytes), committed=one.committed)
                except (Fenced, OffsetOutOfRange, StorageFailed):
                    return True
                self._counted[place] = (end, counted)
            size += counted
        return size >= min_bytes


class FetchHandlers:
    """Reads from the logs that this broker leads."""

    def __init__(
        self, cluster: Cluster, logs: LedLogs, turn: UnpackingTurn, *, max_bytes: int, responses: Budget
    ) -> None:
        self._cluster = cluster
        self._logs = logs
        self._turn = turn
        self._max_bytes = max_bytes
        self._budget = responses

    def table(self) -> HandlerTable:
        return {Api.Fetch: self.fetch}

    async def fetch(self, context: RequestContext, body: Any) -> Mapping[str, Any]:
        if getattr(body, "session_epoch", NO_SESSION) not in (NO_SESSION, NEW_SESSION):
            return {"error_code": ErrorCode.fetch_session_id_not_found, "responses": ()}
        wanted = self._wanted(body)
        max_bytes = min(getattr(body, "max_bytes", self._max_bytes), self._max_bytes)
        read = self._read_cutting if context.version <= 2 else self._read
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max(body.max_wait.total_seconds(), 0)
        size_of = Available(wanted, self._led)
        while True:
            moved = asyncio.Event()
            cancels = [led.on_advance(moved.set) for one in wanted if (led := self._led(one)) is not None]
            try:
                left_s = deadline - loop.time()
                if context.version <= _OLD_FORMATS and (passed := await self._past_markers(wanted)) != wanted:
                    wanted = passed
                    size_of = Available(wanted, self._led)
                if not wanted or left_s <= 0 or await size_of.reaches(min(body.min_bytes, max_bytes)):
                    reservation = await self._budget.reserve(self._wanted_bytes(wanted, max_bytes))
                    answers = await read(wanted, min(max_bytes, reservation.bytes))
                    answers = await self._for_version(context.version, wanted, answers)
                    reservation.resize(sum(len(answer["records"]) for answer in answers))
                    return ReservedResponse(self._response(wanted, answers), reservation)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await moved.wait()
            finally:
                for cancel in cancels:
                    cancel()

    def _wanted(self, body: Any) -> list[Wanted]:
        """Each partition once; if it is named more often the last one counts, as in Kafka."""
        names = self._cluster.snapshot.topic_names
        committed = getattr(body, "isolation_level", 0) == READ_COMMITTED
        wanted = []
        for topic in body.topics:
            topic_id = getattr(topic, "topic_id", None)
            by_id = not hasattr(topic, "topic")
            name = names.get(topic_id or _NO_ID) if by_id else topic.topic
            wanted += [
                Wanted(
                    None if name is None else TopicPartition(name, one.partition),
                    name or "",
                    topic_id,
                    one.partition,
                    one.fetch_offset,
                    getattr(one, "current_leader_epoch", -1),
                    one.partition_max_bytes,
                    committed,
                )
                for one in topic.partitions
            ]
        return list({(one.topic, one.topic_id, one.partition): one for one in wanted}.values())

    async def _past_markers(self, wanted: Sequence[Wanted]) -> list[Wanted]:
        """Skip control batches at the requested offset, for clients whose formats have none.

        They would get nothing, and request the same offset again immediately.
        """
        passed = []
        for one in wanted:
            led, offset = self._led(one), one.offset
            while led is not None and led.start_offset <= offset < led.end_offset:
                try:
                    first = await led.read(offset, 0)
                except (Fenced, OffsetOutOfRange, StorageFailed):
                    break  # the response will contain the error
                ((header, _),) = headers_of(first)
                if not is_control(header):
                    break
                offset = header.next_offset
            passed.append(one if offset == one.offset else replace(one, offset=offset))
        return passed

    def _wanted_bytes(self, wanted: Sequence[Wanted], max_bytes: int) -> int:
        """An upper bound for the bytes to read."""
        partitions = ((one, led) for one in wanted if (led := self._led(one)) is not None)
        return min(max_bytes, sum(max(one.max_bytes, 0) for one, led in partitions if one.offset < led.end_offset))

    def _led(self, one: Wanted) -> ReadableLog | None:
        return None if one.tp is None else self._logs.readable(one.tp)

    async def _read(self, wanted: Sequence[Wanted], max_bytes: int) -> list[dict[str, Any]]:
        """Read every partition once. The first one with data returns a batch of any size (KIP-74)."""
        answers = []
        size = 0
        for one in wanted:
            answer = await self._read_one(one, max_bytes - size, at_least_one=size == 0)
            size += len(answer["records"])
            answers.append(answer)
        return answers

    async def _read_cutting(self, wanted: Sequence[Wanted], max_bytes: int) -> list[dict[str, Any]]:
        """As `_read`, but a first batch above its partition's limit is cut off there if the response has room."""
        answers = []
        size = 0
        for one in wanted:
            answer = await self._read_one(one, max_bytes - size, at_least_one=False)
            has_room = size == 0 or one.max_bytes <= max_bytes - size
            if answer["error_code"] is ErrorCode.none and not answer["records"] and one.max_bytes > 0 and has_room:
                whole = await self._read_one(one, 0, at_least_one=True)
                if len(whole["records"]) > one.max_bytes or size == 0:
                    answer = {**whole, "records": whole["records"][: one.max_bytes]}
            size += len(answer["records"])
            answers.append(answer)
        return answers

    async def _read_one(self, one: Wanted, max_bytes: int, *, at_least_one: bool) -> dict[str, Any]:
        led = self._led(one)
        if led is None:
            return self._not_led(one)
        if (wrong := wrong_epoch(led, one.leader_epoch)) is not None:
            return _refusal(one, wrong)
        end = _end(one, led)
        aborted: Sequence[AbortedTransaction] = ()
        limit = min(one.max_bytes, max_bytes)
        try:
            if one.offset == end or (limit <= 0 and not at_least_one and led.start_offset <= one.offset < end):
                records = b""
            elif one.committed:
                records, aborted = await led.read_committed(one.offset, max(limit, 0), at_least_one=at_least_one)
            else:
                records = await led.read(one.offset, max(limit, 0), at_least_one=at_least_one)
        except OffsetOutOfRange:
            return _refusal(one, ErrorCode.offset_out_of_range)
        except Fenced:
            return self._not_led(one)
        except StorageFailed:
            return _refusal(one, ErrorCode.kafka_storage_error)
        return {
            "partition_index": one.partition,
            "error_code": ErrorCode.none,
            "high_watermark": led.end_offset,
            "last_stable_offset": led.last_stable_offset,
            "log_start_offset": led.start_offset,
            "aborted_transactions": _listed(aborted) if one.committed else None,
            "records": records,
        }

    def _not_led(self, one: Wanted) -> dict[str, Any]:
        if one.tp is None:
            return {**_refusal(one, ErrorCode.unknown_topic_id), "aborted_transactions": ()}
        code = not_led(self._cluster.snapshot, one.tp)
        if code is ErrorCode.unknown_topic_or_partition:
            return {**_refusal(one, code), "aborted_transactions": ()}
        return {**_refusal(one, code), **current_leader(self._cluster, one.tp)}

    def _response(self, wanted: Sequence[Wanted], answers: Sequence[dict[str, Any]]) -> Mapping[str, Any]:
        topics: dict[tuple[str, UUID | None], list[dict[str, Any]]] = {}
        for one, answer in zip(wanted, answers, strict=True):
            topics.setdefault((one.topic, one.topic_id), []).append(answer)
        return {
            "error_code": ErrorCode.none,
            "session_id": 0,
            "responses": [
                {"topic": topic, "topic_id": topic_id, "partitions": partitions}
                for (topic, topic_id), partitions in topics.items()
            ],
            "node_endpoints": endpoints(self._cluster.snapshot, answers),
        }

    async def _for_version(
        self, version: int, wanted: Sequence[Wanted], answers: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Adapt the response to clients before 0.11: message format, and no errors fatal to them."""
        if version > 5:
            return answers
        return [await self._for_old_client(version, one, answer) for one, answer in zip(wanted, answers, strict=True)]

    async def _for_old_client(self, version: int, one: Wanted, answer: dict[str, Any]) -> dict[str, Any]:
        if answer["error_code"] is ErrorCode.kafka_storage_error:  # these clients do not know it, and would not retry
            return _refusal(one, ErrorCode.not_leader_or_follower)
        if version > 3 or not answer["records"]:
            return answer
        assert one.tp is not None, "records imply a known partition"
        magic = 0 if version <= 1 else 1
        try:
            # Unpacking and packing may take long, and the event loop has to answer heartbeats.
            messages = await self._turn.run(down_converted, one.tp, answer["records"], one.offset, magic)
        except (NotConvertible, CorruptRecords) as error:
            log.warning("cannot convert records for a client before 0.11: %s", error)
            zstd = isinstance(error, NotConvertible)
            return _refusal(one, ErrorCode.unsupported_compression_type if zstd else ErrorCode.corrupt_message)
        return {**answer, "records": messages}


def _end(one: Wanted, led: ReadableLog) -> int:
    """Where reading ends for this client."""
    return led.last_stable_offset if one.committed else led.end_offset


def _listed(aborted: Sequence[AbortedTransaction]) -> list[dict[str, int]]:
    return [{"producer_id": one.producer_id, "first_offset": one.first_offset} for one in aborted]


def _refusal(one: Wanted, code: ErrorCode) -> dict[str, Any]:
    return {
        "partition_index": one.partition,
        "error_code": code,
        "high_watermark": -1,
        "aborted_transactions": None,
        "records": b"",
    }
