"""The settings that a rebalance decides by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zkconsumer.settings import ZkConsumerConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceConfig:
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
    claim_before_offsets: bool = False  #: fix.claim.before.offsets
    checked_release: bool = False  #: fix.checked.release
    checked_claim: bool = False  #: fix.checked.claim
    stop_on_disconnect: bool = False  #: fix.stop.on.disconnect
    sync_before_reads: bool = False  #: fix.sync.before.reads
    retry_when_free: bool = False  #: fix.retry.when.free
    quiet_ms: int = 0  #: fix.quiet.ms
    skip_unreadable_members: bool = False  #: fix.skip.unreadable.members
    fence_epochs: bool = False  #: fix.commit.fence=epoch: each claim bumps the partition's epoch node


def rebalance_config(config: ZkConsumerConfig, consumer_id: str) -> RebalanceConfig:
    """The part of a consumer's settings that its rebalances decide by."""
    fixes = config.fixes
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
        claim_before_offsets=fixes.claim_before_offsets,
        checked_release=fixes.checked_release,
        checked_claim=fixes.checked_claim,
        stop_on_disconnect=fixes.stop_on_disconnect,
        sync_before_reads=fixes.sync_before_reads,
        retry_when_free=fixes.retry_when_free,
        quiet_ms=fixes.quiet_ms,
        skip_unreadable_members=fixes.skip_unreadable_members,
        fence_epochs=fixes.commit_fence == "epoch",
    )
