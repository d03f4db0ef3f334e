"""The settings of a KIP-848 member as values, with Kafka's names and defaults (kafka-clients 4.1.1, ConsumerConfig).

`coordinator.client.consumer.setting_table` has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.client.configuration import SubscribingConfig
from coordinator.client.consumer.setting_table import KIP848_CONSUMER_SETTINGS, KNOWN_ELSEWHERE, PROTOCOL, REFUSED
from coordinator.membership.consumer.member import ConsumerMemberSettings
from kernel.errors import ConfigurationError
from kernel.settings import resolve
from kernel.timer_advice import timer_advice

if TYPE_CHECKING:
    from collections.abc import Mapping


def refuse(given: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` for a setting that Kafka's consumer refuses with this protocol."""
    for name, instead in REFUSED.items():
        if name in given:
            raise ConfigurationError(f"{name} cannot be set with {PROTOCOL}=consumer. {instead}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kip848ConsumerConfig(SubscribingConfig):
    """The parsed settings; names are Kafka's with underscores."""

    group_remote_assignor: str | None
    retry_backoff_max_ms: int

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> tuple[Kip848ConsumerConfig, list[str]]:
        """Return the configuration and warnings for the user. Raises `ConfigurationError`."""
        refuse(given)
        values, warnings = resolve(
            KIP848_CONSUMER_SETTINGS, given, known_elsewhere=KNOWN_ELSEWHERE, required=("bootstrap.servers", "group.id")
        )
        if values.pop(PROTOCOL) != "consumer":
            raise ConfigurationError(f"{PROTOCOL}=classic is another design. Use eager, static or cooperative")
        fields: dict[str, Any] = {name.replace(".", "_"): value for name, value in values.items()}
        return cls(**fields), warnings + timer_advice(values)

    @property
    def member(self) -> ConsumerMemberSettings:
        """The settings of the member's state machine."""
        return ConsumerMemberSettings(
            group=self.group_id,
            instance_id=self.group_instance_id,
            server_assignor=self.group_remote_assignor,
            max_poll_interval_ms=self.max_poll_interval_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
            auto_commit=self.enable_auto_commit,
            auto_commit_interval_ms=self.auto_commit_interval_ms,
        )
