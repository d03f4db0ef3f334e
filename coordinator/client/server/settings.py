"""The settings of a `server` member as values, under Kafka's names of 0.8.2 and of today.

`coordinator.client.server.setting_table` has them. There is no max.poll.interval.ms: the member obeys in the
background, so a slow application does not delay the group. A callback that does not return or a stopped process does,
until the coordinator's rebalance timeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.client.configuration import PollingConfig
from coordinator.client.server.setting_table import KNOWN_ELSEWHERE, SERVER_CONSUMER_SETTINGS
from coordinator.membership.server.member import ServerMemberSettings
from kernel.settings import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConsumerConfig(PollingConfig):
    """The parsed settings; names are Kafka's with underscores, without a leading `zookeeper`."""

    zookeeper_connect: str
    session_timeout_ms: int  #: zookeeper.session.timeout.ms
    connection_timeout_ms: int  #: zookeeper.connection.timeout.ms
    consumer_id: str | None
    partition_assignment_strategy: str
    command_wait_ms: int

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> tuple[ServerConsumerConfig, list[str]]:
        """Return the configuration and warnings for the user. Raises `ConfigurationError`."""
        values, warnings = resolve(
            SERVER_CONSUMER_SETTINGS,
            given,
            known_elsewhere=KNOWN_ELSEWHERE,
            required=("bootstrap.servers", "group.id", "zookeeper.connect"),
        )
        fields: dict[str, Any] = {name.replace(".", "_"): value for name, value in values.items()}
        session_timeout_ms = fields.pop("zookeeper_session_timeout_ms")
        connection_timeout_ms = fields.pop("zookeeper_connection_timeout_ms") or session_timeout_ms
        return cls(
            session_timeout_ms=session_timeout_ms, connection_timeout_ms=connection_timeout_ms, **fields
        ), warnings

    @property
    def patience_ms(self) -> int:
        """An answer that takes longer than the session is useless, and another broker may be faster."""
        return min(self.request_timeout_ms, self.session_timeout_ms)

    @property
    def member(self) -> ServerMemberSettings:
        """The settings of the member's state machine."""
        return ServerMemberSettings(
            group=self.group_id,
            retry_backoff_ms=self.retry_backoff_ms,
            auto_commit=self.enable_auto_commit,
            auto_commit_interval_ms=self.auto_commit_interval_ms,
        )
