"""The transactions of one partition: which are open, and which were aborted. Pure values.

An open transaction hides what follows its first record from readers with isolation.level=read_committed: the *last
stable offset* is the first offset of the oldest open transaction, or the log's end. All transactions below it are
decided; the reader gets a list of the aborted ones, and skips their batches.

Source: KIP-98; ProducerStateManager and TransactionIndex of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A producer's records since `first_offset` are neither committed nor aborted."""

    producer_epoch: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """The producer's batches from `first_offset` up to its marker at `last_offset` were aborted.

    `last_stable_offset` is the partition's after the marker: no transaction that is aborted later begins below it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class EndTransactionMarker:
    """The content of a control batch: a coordinator at this epoch has ended the producer's transaction."""

    commits: bool
    coordinator_epoch: int


#: By producer id, the oldest first. Never changed in place, so that it can be handed from thread to thread.
OpenTransactions = Mapping[int, OpenTransaction]
NO_TRANSACTIONS: OpenTransactions = MappingProxyType({})


def no_transactions() -> OpenTransactions:
    """No open transactions, as the default factory of a dataclass's field."""
    return NO_TRANSACTIONS


def last_stable_offset(transactions: OpenTransactions, end_offset: int) -> int:
    """The last stable offset of a log that ends at `end_offset`."""
    for oldest in transactions.values():
        return oldest.first_offset
    return end_offset


def oldest_first(transactions: Mapping[int, OpenTransaction]) -> OpenTransactions:
    """Sort by first offset, the order of `OpenTransactions`."""
    return dict(sorted(transactions.items(), key=lambda item: item[1].first_offset))
