"""Control batches, which end a producer's transaction, and how readers of committed records use them.

A control batch holds one record, takes one offset and never reaches an application. Its key is a version and a type
(0 abort, 1 commit), its value a version and the epoch of the coordinator that decided it, as Kafka's EndTxnMarker.json
has them; a 4.1.1 broker writes the same bytes except for offsets, times and the checksum.

Source: KIP-98; EndTransactionMarker and CompletedFetch of Kafka 3.9.
"""

from __future__ import annotations

import heapq
import struct
from typing import TYPE_CHECKING, Any

from aiokafka.record.util import calc_crc32c

from kernel.records.batches import AppendBatch, ProducerStamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel.records.transactions import EndTransactionMarker

#: The fields of a batch's header after the checksum (`records.BatchHeader`), and those up to it.
_CHECKED = struct.Struct(">hiqqqhii")
_UNCHECKED = struct.Struct(">qiibI")
_KEY, _VALUE = struct.Struct(">hh"), struct.Struct(">hi")
_VERSION = 0
_ABORT, _COMMIT = 0, 1
_TRANSACTIONAL_CONTROL = 0x30
_NO_SEQUENCE = -1


def end_marker(
    marker: EndTransactionMarker, *, producer_id: int, producer_epoch: int, timestamp_ms: int
) -> AppendBatch:
    """The control batch that ends the producer's transaction; `timestamp_ms` is epoch milliseconds."""
    key = _KEY.pack(_VERSION, _COMMIT if marker.commits else _ABORT)
    value = _VALUE.pack(_VERSION, marker.coordinator_epoch)
    # Attributes, time and offset deltas are 0; lengths are zigzag varints of one byte; there are no headers.
    record = b"".join((b"\0\0\0", bytes([2 * len(key)]), key, bytes([2 * len(value)]), value, b"\0"))
    checked = b"".join(
        (
            _CHECKED.pack(
                _TRANSACTIONAL_CONTROL, 0, timestamp_ms, timestamp_ms, producer_id, producer_epoch, _NO_SEQUENCE, 1
            ),
            bytes([2 * len(record)]),
            record,
        )
    )
    length = len(checked) + _UNCHECKED.size - 12  # what follows the length itself
    payload = _UNCHECKED.pack(0, length, -1, 2, calc_crc32c(checked)) + checked
    stamp = ProducerStamp(producer_id, producer_epoch, _NO_SEQUENCE, transactional=True)
    return AppendBatch(payload, 1, timestamp_ms, stamp, marker)


class CommittedOnly:
    """Decides which batches of a Fetch response a reader with isolation.level=read_committed skips.

    `aborted` are (producer id, first offset) as in the response. Pass the batches in order. Without aborted
    transactions, as for read_uncommitted, it skips only control batches.
    """

    def __init__(self, aborted: Iterable[tuple[int, int]] = ()) -> None:
        self._begins = [(first_offset, producer_id) for producer_id, first_offset in aborted]
        heapq.heapify(self._begins)
        self._aborting: set[int] = set()

    def leaves_out(self, batch: Any) -> bool:
        """Whether to skip an aiokafka batch, of format 2 or of an older one without transactions."""
        if batch.is_control_batch:
            if self._aborting and _is_abort(batch):
                self._aborting.discard(batch.producer_id)
            return True
        if not batch.is_transactional:  # like all batches of the older formats
            return False
        while self._begins and self._begins[0][0] < batch.next_offset:
            self._aborting.add(heapq.heappop(self._begins)[1])
        return batch.producer_id in self._aborting


def _is_abort(batch: Any) -> bool:
    """Whether the marker aborts: its key is a version and a type. A record with a shorter key is no marker."""
    for record in batch:
        key = record.key or b""
        return len(key) >= _KEY.size and _KEY.unpack_from(key)[1] == _ABORT
    return False
