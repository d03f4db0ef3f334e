"""The settings that consumers of several designs have, as values; their names are Kafka's with underscores."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingConfig:
    """Those of every design with a coordinator."""

    bootstrap_servers: tuple[tuple[str, int], ...]
    group_id: str
    client_id: str
    max_poll_records: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    isolation_level: str
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    socket_connection_setup_timeout_ms: int
    retry_backoff_ms: int

    @property
    def patience_ms(self) -> int:
        """How long to wait for an answer of the coordinator: what comes later is useless."""
        return self.request_timeout_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribingConfig(PollingConfig):
    """Those of the designs whose members follow topics by themselves."""

    max_poll_interval_ms: int
    group_instance_id: str | None
    metadata_max_age_ms: int
    allow_auto_create_topics: bool
    exclude_internal_topics: bool


def names_of(config: type[PollingConfig]) -> tuple[str, ...]:
    """Kafka's names of its settings."""
    return tuple(field.name.replace("_", ".") for field in fields(config))
