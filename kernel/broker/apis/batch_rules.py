"""Checks a produced batch against its topic's settings: timestamps and keys.

Source: LogValidator of Kafka 4.1.1. A batch that breaks a rule is refused as a whole, naming the records that break it.
With LogAppendTime a batch gets the broker's time. Records are unpacked only for rules about single records.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from aiokafka.record.util import calc_crc32c

from kernel.broker.settings.topic_configs import LONG_MAX
from kernel.records.records import LOG_APPEND_TIME, CorruptRecords, RefusedBatch, decode
from kernel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel.broker.settings.topic_configs import TopicConfig
    from kernel.records.batches import AppendBatch
    from kernel.values import Record, TopicPartition

_BASE_OFFSET, _MAX_TIMESTAMP, _MAX_TIMESTAMP_AT = struct.Struct(">q"), struct.Struct(">q"), 35
_CHECKSUM, _CHECKSUM_AT, _ATTRIBUTES, _ATTRIBUTES_AT = struct.Struct(">I"), 17, struct.Struct(">h"), 21
#: The most records of a refused batch that a ProduceResponse names.
_ERRORS_MAX = 100


class RefusedRecords(RefusedBatch):
    """Records of the batch break a rule; `record_errors` names them by index."""

    def __init__(self, code: ErrorCode, message: str, record_errors: list[dict[str, Any]]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


@dataclass(frozen=True, slots=True)
class _Window:
    """The accepted timestamps, inclusive, in epoch milliseconds."""

    low: int
    high: int

    def complaint(self, record: Record) -> str | None:
        if self.low <= record.timestamp_ms <= self.high:
            return None
        return f"its timestamp {record.timestamp_ms} is not within [{self.low}, {self.high}]"


def needs_records(batch: AppendBatch, config: TopicConfig, now_ms: int) -> bool:
    """Whether `conformed` will unpack the batch."""
    if config.compact:
        return True
    if config.log_append_time:
        return False
    largest_ms = _MAX_TIMESTAMP.unpack_from(batch.payload, _MAX_TIMESTAMP_AT)[0]
    window = _window(config, now_ms)
    return config.timestamp_before_ms_max != LONG_MAX or not window.low <= largest_ms <= window.high


def conformed(tp: TopicPartition, batch: AppendBatch, config: TopicConfig, now_ms: int) -> AppendBatch:
    """The batch as it will be stored. Raises `RefusedBatch` or its subclass `RefusedRecords`."""
    if not config.log_append_time and _attributes(batch) & LOG_APPEND_TIME:
        raise RefusedBatch(ErrorCode.invalid_timestamp, "producers do not set the timestamp type LogAppendTime")
    if needs_records(batch, config, now_ms):
        records = _records(tp, batch)
        if config.compact:
            _check(records, ErrorCode.invalid_record, _keyless)
        if not config.log_append_time:
            _check(records, ErrorCode.invalid_timestamp, _window(config, now_ms).complaint)
    return _stamped(batch, now_ms) if config.log_append_time else batch


def _window(config: TopicConfig, now_ms: int) -> _Window:
    return _Window(now_ms - config.timestamp_before_ms_max, now_ms + config.timestamp_after_ms_max)


def _attributes(batch: AppendBatch) -> int:
    attributes: int = _ATTRIBUTES.unpack_from(batch.payload, _ATTRIBUTES_AT)[0]
    return attributes


def _records(tp: TopicPartition, batch: AppendBatch) -> tuple[Record, ...]:
    (base_offset,) = _BASE_OFFSET.unpack_from(batch.payload)
    try:
        records, _ = decode(tp, batch.payload, base_offset)
    except CorruptRecords as error:
        raise RefusedBatch(ErrorCode.corrupt_message, str(error)) from error
    return records


def _keyless(record: Record) -> str | None:
    return "a compacted topic takes no record without a key" if record.key is None else None


def _check(records: tuple[Record, ...], code: ErrorCode, complain: Callable[[Record], str | None]) -> None:
    errors = [
        {"batch_index": place, "batch_index_error_message": complaint}
        for place, record in enumerate(records)
        if (complaint := complain(record)) is not None
    ]
    if errors:
        first = errors[0]
        message = f"{len(errors)} of {len(records)} records are refused; {first['batch_index']}: " + str(
            first["batch_index_error_message"]
        )
        raise RefusedRecords(code, message, errors[:_ERRORS_MAX])


def _stamped(batch: AppendBatch, now_ms: int) -> AppendBatch:
    """The batch with the broker's time, which applies to all its records (DefaultRecordBatch.setMaxTimestamp)."""
    payload = bytearray(batch.payload)
    _ATTRIBUTES.pack_into(payload, _ATTRIBUTES_AT, _attributes(batch) | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(payload, _MAX_TIMESTAMP_AT, now_ms)
    _CHECKSUM.pack_into(payload, _CHECKSUM_AT, calc_crc32c(memoryview(payload)[_ATTRIBUTES_AT:]))
    return replace(batch, payload=bytes(payload), max_timestamp_ms=now_ms)
