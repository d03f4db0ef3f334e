"""The limits that a machine works under."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Settings of the broker (Kafka's names in the comments), in milliseconds and bytes."""

    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    session_timeout_ms_min: int = 6_000  # group.min.session.timeout.ms
    session_timeout_ms_max: int = 1_800_000  # group.max.session.timeout.ms
    members_max: int = 2_147_483_647  # group.max.size
    member_bytes_max: int = 524_294  # group.member.metadata.max.bytes, not in Kafka
    group_bytes_max: int = 786_441  # group.metadata.max.bytes, not in Kafka
    new_member_join_timeout_ms: int = 300_000  # fixed in Kafka
    sessions_begin_late: bool = False  # fault.kafka.9752, not in Kafka
    offset_metadata_bytes_max: int = 4_096  # offset.metadata.max.bytes
    retention_ms: int = 604_800_000  # offsets.retention.minutes
    retention_check_ms: int = 600_000  # offsets.retention.check.interval.ms
    transaction_timeout_ms_max: int = 900_000  # transaction.max.timeout.ms
    traced: bool = True  #: whether a trace is written (assignments are decoded for it)
