"""Checks every record of a produced batch before it is stored, so that readers can read all stored records.

Source: LogValidator and DefaultRecordBatch of Kafka 3.9, compared with 4.1.1. The header's count has to be the number
of records, and each record has to end where its length says, with no bytes after the last one. The largest time of the
records replaces a different one in the header, as in LogValidator, because ListOffsets searches times there.

Stricter than Kafka: offsets inside a batch count up by one from 0, even in uncompressed batches; a batch has at most
`RECORDS_MAX` records and unpacks within the limit of `kernel.records.compression`.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import TYPE_CHECKING

from aiokafka.record.util import calc_crc32c

from kernel.records.compression import CannotUnpack, UnpacksTooLarge
from kernel.records.records import CODEC_MASK, LOG_APPEND_TIME, CorruptRecords, RefusedBatch, records_of
from kernel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kernel.records.batches import AppendBatch
    from kernel.records.compression import UnpackingTurn

#: Records of one batch. An uncompressed batch of 1 MiB has room for 150,000.
RECORDS_MAX = 1_000_000
#: Records checked in the turn of the loop that their request arrived in: a quarter of a millisecond.
RECORDS_AT_ONCE = 500

_CHECKSUM_AT, _CHECKED_FROM, _ATTRIBUTES_AT, _MAX_TIMESTAMP_AT = 17, 21, 22, 35


async def checked_off_the_loop(batch: AppendBatch, turn: UnpackingTurn) -> AppendBatch:
    """As `checked`; on a thread if it may take long, because the event loop has to answer heartbeats."""
    return await turn.run(checked, batch) if takes_long(batch) else checked(batch)


def takes_long(batch: AppendBatch) -> bool:
    """Whether checking takes too long for the loop: many records, or an unknown number."""
    return batch.records > RECORDS_AT_ONCE or bool(batch.payload[_ATTRIBUTES_AT] & CODEC_MASK)


def checked(batch: AppendBatch) -> AppendBatch:
    """The batch, with the time of its newest record. Its header has passed `records.accepted`.

    Raises `RefusedBatch` with the code that Kafka 4.1.1 answers: INVALID_RECORD for malformed records, and
    UNKNOWN_SERVER_ERROR for batches that do not unpack (both are fatal for a producer); MESSAGE_TOO_LARGE beyond our
    limits.
    """
    if batch.records > RECORDS_MAX:
        raise RefusedBatch(
            ErrorCode.invalid_record, f"a batch announces {batch.records} records; at most {RECORDS_MAX} are accepted"
        )
    count = 0
    newest_ms = -1
    (base_offset,) = struct.unpack_from(">q", batch.payload)
    try:
        for record in records_of(batch.payload):
            if record.offset != base_offset + count:
                raise RefusedBatch(
                    ErrorCode.invalid_record, f"record {count} of a batch has offset {record.offset - base_offset}"
                )
            count += 1
            if record.timestamp > newest_ms:
                newest_ms = record.timestamp
    except CorruptRecords as error:
        raise RefusedBatch(_code_of(error.__cause__), str(error)) from error
    if batch.payload[_ATTRIBUTES_AT] & LOG_APPEND_TIME or newest_ms == batch.max_timestamp_ms:
        return batch
    payload = bytearray(batch.payload)
    struct.pack_into(">q", payload, _MAX_TIMESTAMP_AT, newest_ms)
    struct.pack_into(">I", payload, _CHECKSUM_AT, calc_crc32c(memoryview(payload)[_CHECKED_FROM:]))
    return dataclasses.replace(batch, payload=bytes(payload), max_timestamp_ms=newest_ms)


def _code_of(cause: BaseException | None) -> ErrorCode:
    if isinstance(cause, UnpacksTooLarge):
        return ErrorCode.message_too_large
    return ErrorCode.unknown_server_error if isinstance(cause, CannotUnpack) else ErrorCode.invalid_record
