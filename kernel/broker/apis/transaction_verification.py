"""Verifies for Produce that a partition was added to a transaction, by asking its coordinator (KIP-890, part 1).

Without verification, a batch that arrives after its transaction ended would begin one that never ends, and readers with
read_committed would wait forever. Needed only if the producer has no open transaction in the partition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kernel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kernel.values import TopicPartition

#: From a transactional id, a producer's id and epoch, and a partition to `none`, or the error.
Verifier = Callable[[str, int, int, "TopicPartition"], Awaitable[ErrorCode]]

#: The coordinator is not available now. Kafka returns NOT_ENOUGH_REPLICAS, which all clients retry.
_RETRIABLE = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.network_exception,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
#: From this version of Produce on, TRANSACTION_ABORTABLE replaces INVALID_TXN_STATE.
_PRODUCE_IS_ABORTABLE = 11


class Verification:
    """Shared by the broker and a mounted coordinator, which sets `verifier`. Without one there are no transactions."""

    def __init__(self) -> None:
        self.verifier: Verifier | None = None

    async def ask(
        self, transactional_id: str, producer: tuple[int, int], tp: TopicPartition, version: int
    ) -> tuple[ErrorCode, str | None]:
        """The error for a Produce request of this `version`; `none` if the batch may begin a transaction in `tp`.

        Source: ReplicaManager.appendRecords and AddPartitionsToTxnManager of Kafka 4.1.
        """
        code = ErrorCode.invalid_txn_state
        if self.verifier is not None:
            code = await self.verifier(transactional_id, *producer, tp)
        if code is ErrorCode.producer_fenced:
            return ErrorCode.invalid_producer_epoch, None
        if code is ErrorCode.invalid_txn_state:
            if version >= _PRODUCE_IS_ABORTABLE:
                return ErrorCode.transaction_abortable, None
            return code, "Partition was not added to the transaction"
        if code in _RETRIABLE:
            return ErrorCode.not_enough_replicas, (
                "Unable to verify the partition has been added to the transaction. Underlying error:"
                f" {code.name.upper()}"
            )
        return code, None
