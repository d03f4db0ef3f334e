"""Record batches as storage sees them: opaque bytes, with the few numbers that their owner read from the header."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from kernel.records.transactions import EndMarker, OpenTransactions, no_transactions

_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
#: Where magic 2 keeps the leader epoch, and where every format keeps its magic byte.
_LEADER_EPOCH_AT, _MAGIC_AT = 12, 16


@dataclass(frozen=True, slots=True)
class ProducerStamp:
    """Who wrote a batch, when the producer is idempotent: `base_sequence` of the first record."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool = False


#: Of a batch that may go on with a transaction, but not begin one.
NOT_VERIFIED = -1


@dataclass(frozen=True, slots=True)
class AppendBatch:
    """One batch to append. `records` is the number of offsets it takes (last offset delta + 1), at least 1.

    With a `marker` it is a control batch, and ends the transaction of `producer`. `verified_at` is where the log ended
    when the transaction's coordinator was asked whether the partition is part of the transaction (KIP-890).
    """

    payload: bytes
    records: int
    max_timestamp_ms: int
    producer: ProducerStamp | None = None
    marker: EndMarker | None = None
    verified_at: int = NOT_VERIFIED

    def __post_init__(self) -> None:
        assert self.records >= 1, f"a batch takes at least one offset, not {self.records}"


@dataclass(frozen=True, slots=True)
class AppendResult:
    """Where the batches of one append went. `duplicate`: they had been stored before, at these offsets.

    `transactions` are those that are open behind them.
    """

    base_offset: int
    last_offset: int
    duplicate: bool = False
    transactions: OpenTransactions = field(default_factory=no_transactions, compare=False, repr=False)


def placed(payload: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with its base offset and leader epoch filled in; both stand outside of magic 2's checksum.

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
