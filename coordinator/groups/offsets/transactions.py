"""Transactions of the transactional ids coordinated by this partition (KIP-98).

    Empty -> Ongoing             the first AddPartitionsToTxn or AddOffsetsToTxn
    Ongoing -> Prepare...        EndTxn, the transaction's timeout, or a new incarnation of the producer (aborts)
    Prepare... -> Complete...    every partition, and those of all groups, has its marker (`Marker`)
    Complete... -> Ongoing       the next AddPartitionsToTxn or AddOffsetsToTxn

EndTxn is answered when the decision is durable; the markers follow, and are repeated after a failover. Until they are
written, and while a step is being stored, clients get CONCURRENT_TRANSACTIONS and retry. A timeout and a new
incarnation raise the producer's epoch; the markers carry the new epoch and so fence the old producer in every
partition.

Sources: KIP-98, KIP-360, TransactionCoordinator.scala of Kafka 3.9. KIP-890 part 2, where each transaction raises
the epoch, is not implemented: clients use it only with brokers that advertise transaction.version 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from coordinator.groups.answers import TransactionAnswer
from coordinator.groups.effects import Marker, TimerKey, TimerKind, Write
from coordinator.groups.errors import Error
from coordinator.groups.records import Phase, TransactionKey, TransactionRecord
from coordinator.groups.requests import (
    NO_PRODUCER,
    AddGroup,
    AddPartitions,
    EndTransaction,
    InitProducer,
    Producer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.groups.effects import Turn
    from coordinator.groups.requests import TransactionRequest
    from kernel.values import TopicPartition

#: A producer with this epoch gets a new id: one more epoch must remain for fencing it.
EPOCH_MAX = 32_766
#: Before retrying a step that could not be stored and that no client will ask for again.
RETRY_MS = 1_000

Part = TypeVar("Part")

_PREPARE = {True: Phase.PREPARE_COMMIT, False: Phase.PREPARE_ABORT}
_COMPLETE = {True: Phase.COMPLETE_COMMIT, False: Phase.COMPLETE_ABORT}
_DONE = {Phase.PREPARE_COMMIT: Phase.COMPLETE_COMMIT, Phase.PREPARE_ABORT: Phase.COMPLETE_ABORT}


@dataclass(slots=True)
class TransactionMetadata:
    """One transactional id's transaction; `record` is None until the first one is stored."""

    id: str
    record: TransactionRecord | None = None
    writing: bool = False


class Transactions:
    """All transactional ids of one partition."""

    def __init__(self) -> None:
        self._all: dict[str, TransactionMetadata] = {}

    def apply(self, key: TransactionKey, record: TransactionRecord | None) -> None:
        if record is None:
            self._all.pop(key.transactional_id, None)
        else:
            self._all[key.transactional_id] = TransactionMetadata(key.transactional_id, record)

    def load(self, turn: Turn) -> None:
        """Resume decided transactions, and timeouts, which are measured from the transaction's start."""
        for transaction in self._all.values():
            if transaction.record is not None:
                self.proceed(transaction, transaction.record, turn)

    def unload(self, turn: Turn) -> None:
        for transaction in self._all.values():
            turn.cancel_timer(_timer(transaction))

    def needs_producer_id(self, transactional_id: str) -> bool:
        """Whether InitProducerId needs a new producer id."""
        transaction = self._all.get(transactional_id)
        record = None if transaction is None else transaction.record
        return record is None or record.producer_epoch >= EPOCH_MAX

    def takes_part(
        self, transactional_id: str, producer: Producer, includes: Callable[[TransactionRecord], bool]
    ) -> Error:
        """NONE if this producer has an open transaction for which `includes` is true, otherwise the error."""
        transaction = self._all.get(transactional_id)
        record = None if transaction is None else transaction.record
        if record is None or record.producer_id != producer.id:
            return Error.INVALID_PRODUCER_ID_MAPPING
        if record.producer_epoch != producer.epoch:
            return Error.INVALID_PRODUCER_EPOCH
        if record.phase in _DONE:
            return Error.CONCURRENT_TRANSACTIONS
        is_open = record.phase is Phase.ONGOING and includes(record)
        return Error.NONE if is_open else Error.INVALID_TXN_STATE

    # -- requests ---------------------------------------------------------------------------------------------

    def handle(self, request: TransactionRequest, turn: Turn) -> None:
        match request:
            case InitProducer():
                answer = self._init(request, turn)
            case AddGroup():
                answer = self._add(request, (request.group_id,), (), turn)
            case AddPartitions():
                answer = self._add(request, (), request.partitions, turn)
            case EndTransaction():
                answer = self._end(request, turn)
        if answer is not None:
            turn.reply(request.token, TransactionAnswer(error=answer))

    def _init(self, request: InitProducer, turn: Turn) -> Error | None:
        """Start a new incarnation of the producer, or, with `request.producer`, let it recover (KIP-360)."""
        if not 0 < request.timeout_ms <= turn.limits.transaction_timeout_ms_max:
            return Error.INVALID_TRANSACTION_TIMEOUT
        transaction = self._all.setdefault(request.transactional_id, TransactionMetadata(request.transactional_id))
        record = transaction.record
        if transaction.writing or (record is not None and record.phase in _DONE):
            return Error.CONCURRENT_TRANSACTIONS
        expected = request.producer
        if record is not None and expected != NO_PRODUCER:
            if expected.id != record.producer_id or expected.epoch not in (record.producer_epoch, record.last_epoch):
                return Error.PRODUCER_FENCED
            if expected.epoch == record.last_epoch != record.producer_epoch:  # the previous answer was lost
                turn.reply(request.token, _producer_answer(record))
                return None
        if record is not None and record.phase is Phase.ONGOING:
            self._abort(transaction, record, turn)
            return Error.CONCURRENT_TRANSACTIONS
        if self.needs_producer_id(request.transactional_id):
            if request.fresh_id < 0:
                return Error.CONCURRENT_TRANSACTIONS
            producer, last_epoch = Producer(request.fresh_id, 0), -1
        else:
            assert record is not None, "an unknown id needs a producer id"
            producer, last_epoch = Producer(record.producer_id, record.producer_epoch + 1), record.producer_epoch
        begun = TransactionRecord(producer.id, producer.epoch, last_epoch, request.timeout_ms, Phase.EMPTY, (), -1)
        self._write(transaction, begun, turn, request.token, _producer_answer(begun))
        return None

    def _add(
        self,
        request: AddGroup | AddPartitions,
        groups: tuple[str, ...],
        partitions: tuple[TopicPartition, ...],
        turn: Turn,
    ) -> Error | None:
        transaction, record = self._found(request)
        if transaction is None or record is None:
            return Error.INVALID_PRODUCER_ID_MAPPING
        if (refusal := _refusal(transaction, record, request.producer)) is not None:
            return refusal
        if record.phase in _DONE:
            return Error.CONCURRENT_TRANSACTIONS
        if record.phase is not Phase.ONGOING:
            record = record._replace(phase=Phase.ONGOING, groups=(), partitions=(), started_wall_ms=turn.now.wall_ms)
        elif set(groups) <= set(record.groups) and set(partitions) <= set(record.partitions):
            return Error.NONE
        added = record._replace(
            groups=_joined(record.groups, groups), partitions=_joined(record.partitions, partitions)
        )
        self._write(transaction, added, turn, request.token, TransactionAnswer())
        return None

    def _end(self, request: EndTransaction, turn: Turn) -> Error | None:
        transaction, record = self._found(request)
        if transaction is None or record is None:
            return Error.INVALID_PRODUCER_ID_MAPPING
        if (refusal := _refusal(transaction, record, request.producer)) is not None:
            return refusal
        if record.phase is not Phase.ONGOING:
            if record.phase is _COMPLETE[request.commits]:
                return Error.NONE  # the previous answer was lost
            return (
                Error.CONCURRENT_TRANSACTIONS if record.phase is _PREPARE[request.commits] else Error.INVALID_TXN_STATE
            )
        decided = record._replace(phase=_PREPARE[request.commits])
        self._write(transaction, decided, turn, request.token, TransactionAnswer())
        return None

    def _found(
        self, request: AddGroup | AddPartitions | EndTransaction
    ) -> tuple[TransactionMetadata | None, TransactionRecord | None]:
        transaction = self._all.get(request.transactional_id)
        if transaction is None or transaction.record is None or transaction.record.producer_id != request.producer.id:
            return None, None
        return transaction, transaction.record

    # -- markers and timers -----------------------------------------------------------------------------------

    def marked(self, marker: Marker, turn: Turn) -> None:
        """Every partition of the transaction has its marker."""
        transaction = self._all.get(marker.transactional_id)
        record = None if transaction is None else transaction.record
        if transaction is None or record is None or transaction.writing or record.phase not in _DONE:
            return
        if Producer(record.producer_id, record.producer_epoch) == marker.producer:
            self._write(transaction, record._replace(phase=_DONE[record.phase], groups=(), partitions=()), turn)

    def timer_fired(self, transactional_id: str, turn: Turn) -> None:
        """The transaction has timed out, or a retry is due."""
        transaction = self._all.get(transactional_id)
        if transaction is None or transaction.record is None:
            return
        if transaction.writing:
            turn.set_timer(_timer(transaction), turn.now.ms + RETRY_MS)
        elif transaction.record.phase is Phase.ONGOING:
            self._abort(transaction, transaction.record, turn)
        else:
            self.proceed(transaction, transaction.record, turn)

    # -- steps ------------------------------------------------------------------------------------------------

    def _abort(self, transaction: TransactionMetadata, record: TransactionRecord, turn: Turn) -> None:
        """Abort on behalf of the coordinator, and fence the producer."""
        fenced = record._replace(phase=Phase.PREPARE_ABORT, producer_epoch=record.producer_epoch + 1, last_epoch=-1)
        self._write(transaction, fenced, turn)

    def proceed(self, transaction: TransactionMetadata, record: TransactionRecord, turn: Turn) -> None:
        """What follows from a state that is durable."""
        if record.phase is Phase.ONGOING:
            left_ms = record.started_wall_ms + record.timeout_ms - turn.now.wall_ms
            turn.set_timer(_timer(transaction), turn.now.ms + max(left_ms, 0))
            return
        turn.cancel_timer(_timer(transaction))
        if record.phase in _DONE:
            producer = Producer(record.producer_id, record.producer_epoch)
            commits = record.phase is Phase.PREPARE_COMMIT
            turn.send(Marker(transaction.id, producer, commits, record.groups, record.partitions))

    def _write(
        self,
        transaction: TransactionMetadata,
        record: TransactionRecord,
        turn: Turn,
        token: int | None = None,
        answer: TransactionAnswer | None = None,
    ) -> None:
        transaction.writing = True
        change = (TransactionKey(transaction.id), record)
        turn.write(TransactionWrite((change,), self, transaction, record, token, answer or TransactionAnswer()))

    def forget(self, transaction: TransactionMetadata) -> None:
        """Its first record was not stored."""
        del self._all[transaction.id]


def _joined(known: tuple[Part, ...], more: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(dict.fromkeys((*known, *more)))


def _refusal(transaction: TransactionMetadata, record: TransactionRecord, producer: Producer) -> Error | None:
    if producer.epoch != record.producer_epoch:
        return Error.PRODUCER_FENCED
    return Error.CONCURRENT_TRANSACTIONS if transaction.writing else None


@dataclass(frozen=True, slots=True, eq=False)
class TransactionWrite(Write):
    """A step of a transaction; `token` None: nobody waits for it."""

    transactions: Transactions = field(repr=False)
    transaction: TransactionMetadata
    record: TransactionRecord
    token: int | None
    answer: TransactionAnswer

    def stored(self, turn: Turn) -> None:
        transaction = self.transaction
        transaction.record, transaction.writing = self.record, False
        if self.token is not None:
            turn.reply(self.token, self.answer)
        self.transactions.proceed(transaction, self.record, turn)

    def not_stored(self, error: Error, turn: Turn) -> None:
        """The client gets the error. A step that no client asked for is retried."""
        transaction = self.transaction
        transaction.writing = False
        if transaction.record is None:
            self.transactions.forget(transaction)
        if self.token is not None:
            turn.reply(self.token, TransactionAnswer(error=error))
        elif error is not Error.NOT_COORDINATOR:
            turn.set_timer(_timer(transaction), turn.now.ms + RETRY_MS)


def _producer_answer(record: TransactionRecord) -> TransactionAnswer:
    return TransactionAnswer(producer=Producer(record.producer_id, record.producer_epoch))


def _timer(transaction: TransactionMetadata) -> TimerKey:
    return TimerKey(TimerKind.TRANSACTION, transaction.id)
