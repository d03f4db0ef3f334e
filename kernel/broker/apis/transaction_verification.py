"""What Produce wants to know of a transaction's coordinator: whether a partition was added to it (KIP-890, part 1).

Without the question a batch that arrives late, when its transaction is over, would begin one that nobody ends: readers
with read_committed would wait for ever. It is asked only when the producer has no transaction open in the partition.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kernel.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kernel.values import TopicPartition

#: Given a transactional id, a producer's id and epoch, and a partition: `none`, or why it is not part of it.
Verifier = Callable[[str, int, int, "TopicPartition"], Awaitable[ErrorCode]]

#: The coordinator could not be asked now; Kafka tells clients NOT_ENOUGH_REPLICAS, which they all try again.
_COME_AGAIN = frozenset(
    {
        ErrorCode.concurrent_transactions,
        ErrorCode.network_exception,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)
#: From this version of Produce on TRANSACTION_ABORTABLE instead of INVALID_TXN_STATE.
_PRODUCE_IS_ABORTABLE = 11


class Verification:
    """Shared by the broker and a mounted coordinator, who sets `verifier`. Without one there are no transactions."""

    def __init__(self) -> None:
        self.verifier: Verifier | None = None

    async def ask(
        self, transactional_id: str, producer: tuple[int, int], tp: TopicPartition, version: int
    ) -> tuple[ErrorCode, str | None]:
        """What a Produce request of this `version` is told; `none` if the batch may begin a transaction in `tp`.

        Source: ReplicaManager.appendRecords and AddPartitionsToTxnManager of Kafka 4.1, whose answers these are.
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
        if code in _COME_AGAIN:
            return ErrorCode.not_enough_replicas, (
                "Unable to verify the partition has been added to the transaction. Underlying error:"
                f" {code.name.upper()}"
            )
        return code, None
