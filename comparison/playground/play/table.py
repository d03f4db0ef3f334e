"""The rebalance table of the zookeeper design, for the page."""

from __future__ import annotations

from comparison.playground.messages import StepRow
from zkconsumer.rebalance.config import RebalanceConfig
from zkconsumer.rebalance.table import table


def rebalance_table() -> tuple[StepRow, ...]:
    """The steps of the original's attempt, in order."""
    steps = table(RebalanceConfig(group="", consumer_id="")).values()
    return tuple(
        StepRow(step=step.number, phase=step.phase, does=step.purpose, requests=step.requests) for step in steps
    )
