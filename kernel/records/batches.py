"""Record batches as the storage sees them: opaque bytes, with a few fields of the header."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from kernel.records.transactions import EndTransactionMarker, OpenTransactions, no_transactions

_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
#: The position of the leader epoch in magic 2, and of the magic byte in every format.
_LEADER_EPOCH_AT, _MAGIC_AT = 12, 16


@dataclass(frozen=True, slots=True)
class ProducerStamp:
    """The idempotent producer of a batch; `base_sequence` is the first record's."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool = False


#: Marks a batch that may continue a transaction, but not begin one.
NOT_VERIFIED = -1


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """One batch to append. `records` is the number of offsets it takes (last offset delta + 1), at least 1.

    With a `marker` it is a control batch, and ends the transaction of `producer`. `verified_at` is the log's end
    when the coordinator was asked whether the partition is part of the transaction (KIP-890).
    """

    payload: bytes
    records: int
    max_timestamp_ms: int
    producer: ProducerStamp | None = None
    marker: EndTransactionMarker | None = None
    verified_at: int = NOT_VERIFIED

    def __post_init__(self) -> None:
        assert self.records >= 1, f"a batch takes at least one offset, not {self.records}"


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The offsets of one append. `duplicate`: the batches were already stored there.

    `transactions` are the open ones after it.
    """

    base_offset: int
    last_offset: int
    duplicate: bool = False
    transactions: OpenTransactions = field(default_factory=no_transactions, compare=False, repr=False)


def placed(payload: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with its base offset and leader epoch filled in; magic 2's checksum covers neither.

    Source: DefaultRecordBatch (magic 2). Older formats have no leader epoch there, only the offset is set.
    """
    if payload[_MAGIC_AT] < 2:
        return _BASE_OFFSET.pack(base_offset) + payload[_BASE_OFFSET.size :]
    return b"".join(
        (
            _BASE_OFFSET.pack(base_offset),
            payload[_BASE_OFFSET.size : _LEADER_EPOCH_AT],
            _LEADER_EPOCH.pack(leader_epoch),
            payload[_MAGIC_AT:],
        )
    )
