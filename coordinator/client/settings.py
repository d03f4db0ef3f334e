"""The settings of a classic consumer as values, with Kafka's names and defaults (kafka-clients 4.1.1, ConsumerConfig).

`coordinator.client.setting_table` has them. Two defaults differ from Kafka's: `client.id` is "rebalance-lab", because
Kafka's is empty and member ids begin with it; `partition.assignment.strategy` is range alone, where Kafka adds
cooperative-sticky for a later migration, because a design under comparison offers one strategy. A member is cooperative
if all the strategies it offers are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.client.configuration import SubscribingConfig
from coordinator.client.kafka_settings import KAFKA_CONSUMER_SETTINGS
from coordinator.client.setting_table import CONSUMER_SETTINGS
from coordinator.membership.classic.delayed_leader import PROTOCOL as DELAYED
from coordinator.membership.classic.member import MemberSettings
from kernel.assignors.registry import COOPERATIVE
from kernel.errors import ConfigurationError
from kernel.settings import resolve
from kernel.timer_advice import timer_advice

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConsumerConfig(SubscribingConfig):
    """The parsed settings; names are Kafka's with underscores."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    partition_assignment_strategy: tuple[str, ...]
    scheduled_rebalance_max_delay_ms: int
    sticky_exact_partitions_max: int
    fault_kafka_12984: bool
    fault_kafka_13419: bool
    fault_kafka_13891: bool
    fault_kafka_14639: bool

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> tuple[CoordinatorConsumerConfig, list[str]]:
        """Return the configuration and warnings for the user. Raises `ConfigurationError`."""
        values, warnings = resolve(
            CONSUMER_SETTINGS,
            given,
            known_elsewhere=KAFKA_CONSUMER_SETTINGS,
            required=("bootstrap.servers", "group.id"),
        )
        fields: dict[str, Any] = {name.replace(".", "_"): value for name, value in values.items()}
        config = cls(**fields)
        if config.heartbeat_interval_ms >= config.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat.interval.ms={config.heartbeat_interval_ms} must be below "
                f"session.timeout.ms={config.session_timeout_ms}, or every member is considered dead"
            )
        return config, warnings + timer_advice(values)

    @property
    def patience_ms(self) -> int:
        """An answer that takes longer than the session is useless, and another broker may be faster."""
        return min(self.request_timeout_ms, self.session_timeout_ms)

    @property
    def cooperative(self) -> bool:
        """Whether all strategies are cooperative: a single eager one makes the member eager, as in Kafka."""
        return COOPERATIVE.union({DELAYED}).issuperset(self.partition_assignment_strategy)

    @property
    def member(self) -> MemberSettings:
        """The settings of the member's state machine."""
        return MemberSettings(
            group=self.group_id,
            session_timeout_ms=self.session_timeout_ms,
            heartbeat_interval_ms=self.heartbeat_interval_ms,
            max_poll_interval_ms=self.max_poll_interval_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            auto_commit=self.enable_auto_commit,
            auto_commit_interval_ms=self.auto_commit_interval_ms,
            instance_id=self.group_instance_id,
            cooperative=self.cooperative,
            forgets_id_with_generation=self.fault_kafka_13419,
            loses_all_between_generations=self.fault_kafka_13891,
        )
