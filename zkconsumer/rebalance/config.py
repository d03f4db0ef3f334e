"""From settings to the rules by which the table decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zkconsumer.rebalance.state import Rules

if TYPE_CHECKING:
    from zkconsumer.settings import ZkConsumerConfig


def rules_of(config: ZkConsumerConfig, consumer_id: str) -> Rules:
    """Every setting that decides, for the member `consumer_id`."""
    fixes = config.fixes
    return Rules(
        group=config.group_id,
        consumer_id=consumer_id,
        max_retries=config.rebalance_max_retries,
        backoff_ms=config.rebalance_backoff_ms,
        auto_commit=config.auto_commit_enable,
        retry_while_closing=config.retry_while_closing,
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
