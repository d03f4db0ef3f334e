"""The names that `rebalance_lab` offers, and where each comes from."""

from __future__ import annotations

from coordinator.client.errors import GroupRefused
from coordinator.client.fetcher import FetchFailed
from kernel.consumer import Capabilities, RebalanceListener, SilentListener
from kernel.designs import DESIGNS, Design
from kernel.errors import ConfigurationError, RebalanceFailed, RebalanceLabError, Unavailable, UserError
from kernel.values import Batch, CommitOutcome, Record, TopicPartition
from rebalance_lab.consumers import Consumer, consumer
from rebalance_lab.tables import RunTables, open_run

__all__ = [
    "DESIGNS",
    "Batch",
    "Capabilities",
    "CommitOutcome",
    "ConfigurationError",
    "Consumer",
    "Design",
    "FetchFailed",
    "GroupRefused",
    "RebalanceFailed",
    "RebalanceLabError",
    "RebalanceListener",
    "Record",
    "RunTables",
    "SilentListener",
    "TopicPartition",
    "Unavailable",
    "UserError",
    "consumer",
    "open_run",
]
