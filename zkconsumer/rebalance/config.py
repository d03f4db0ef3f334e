"""The settings that a rebalance decides by."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from zkconsumer.settings import FixesOfRebalances

if TYPE_CHECKING:
    from zkconsumer.settings import ZkConsumerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceConfig(FixesOfRebalances):
    """The member, and every setting that changes a decision. The defaults are those of 0.8.2."""

    group: str
    consumer_id: str
    max_retries: int = 4  #: rebalance.max.retries: attempts in all
    backoff_ms: int = 2000  #: rebalance.backoff.ms, after the last attempt too
    auto_commit: bool = True  #: auto.commit.enable
    #: 0.8.2.2 checks its shutdown flag in R9 only; 1.1 checks it before every attempt (off here)
    retry_while_closing: bool = True
    #: 1.1 reads the topics of the whole group, after the members, and checks the root before its first claim
    release: str = "0.8.2"
    strategy: str = "range"  #: range, roundrobin-0.8.2 or roundrobin-1.1
    exclude_internal_topics: bool = True  #: a pattern never matches __consumer_offsets
    listener_in_attempt: bool = False  #: call the listener as 1.1 does; it can fail the attempt
    #: R8 reads offsets from ZooKeeper, from Kafka, or from both (dual commit)
    offsets_from: frozenset[str] = frozenset({"zookeeper"})
    fence_epochs: bool = False  #: fix.commit.fence=epoch: each claim bumps the partition's epoch node


def rebalance_config(config: ZkConsumerConfig, consumer_id: str) -> RebalanceConfig:
    """The part of a consumer's settings that its rebalances decide by."""
    return RebalanceConfig(
        group=config.group_id,
        consumer_id=consumer_id,
        max_retries=config.rebalance_max_retries,
        backoff_ms=config.rebalance_backoff_ms,
        auto_commit=config.auto_commit_enable,
        retry_while_closing=config.retry_while_closing,
        release=config.release,
        strategy=config.strategy,
        exclude_internal_topics=config.exclude_internal_topics,
        listener_in_attempt=config.listener_in_attempt,
        offsets_from=config.offsets_from,
        fence_epochs=config.fixes.commit_fence == "epoch",
        **{fix.name: getattr(config.fixes, fix.name) for fix in fields(FixesOfRebalances)},
    )
