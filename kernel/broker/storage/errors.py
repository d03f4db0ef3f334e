"""The storage's errors. The handlers turn each into one Kafka error code."""

from __future__ import annotations

from kernel.errors import EnvironmentFault, RebalanceLabError


class StorageError(RebalanceLabError):
    """Base of the storage's errors. Nothing was acknowledged when one is raised."""


class Fenced(StorageError):
    """A higher epoch is published: another broker leads (NOT_LEADER_OR_FOLLOWER, NOT_COORDINATOR)."""


class StorageFailed(StorageError, EnvironmentFault):
    """The folder cannot be written or read: full, read-only or missing (KAFKA_STORAGE_ERROR)."""


class LogStopped(StorageError):
    """An internal error has stopped the log or the whole storage (UNKNOWN_SERVER_ERROR); see `internal_errors`."""


class OffsetOutOfRange(StorageError):
    """The offset is below the log's start or above its end (OFFSET_OUT_OF_RANGE)."""


class OutOfOrderSequence(StorageError):
    """A batch before this one is missing (OUT_OF_ORDER_SEQUENCE_NUMBER)."""


class InvalidProducerEpoch(StorageError):
    """A newer producer has taken over the producer id (INVALID_PRODUCER_EPOCH)."""


class InvalidTransactionState(StorageError):
    """The producer's transaction does not include the partition, or is over (INVALID_TXN_STATE)."""


class CoordinatorFenced(StorageError):
    """A later coordinator has ended the producer's transaction (TRANSACTION_COORDINATOR_FENCED)."""
