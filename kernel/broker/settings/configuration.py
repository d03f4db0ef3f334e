"""A broker's configuration: its settings as values, checked together. `setting_table` has the settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.broker.settings.kafka_settings import KAFKA_BROKER_SETTINGS
from kernel.broker.settings.setting_table import BROKER_SETTINGS, LISTENER
from kernel.errors import ConfigurationError
from kernel.settings import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Resolved settings. A name that is not in the table is a bug and raises `KeyError`."""

    values: Mapping[str, object]
    given: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({})
    )  #: as text: the settings that the broker was started with

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> tuple[BrokerConfig, list[str]]:
        """The configuration, and warnings for settings that only Kafka has. Raises `ConfigurationError`."""
        values, warnings = resolve(BROKER_SETTINGS, given, known_elsewhere=KAFKA_BROKER_SETTINGS)
        config = cls(MappingProxyType(values), MappingProxyType({k: v for k, v in given.items() if k in values}))
        if config.number("group.min.session.timeout.ms") > config.number("group.max.session.timeout.ms"):
            raise ConfigurationError("group.min.session.timeout.ms must not be above group.max.session.timeout.ms")
        frame_bytes, requests_bytes = (
            config.number(name) for name in ("socket.request.max.bytes", "queued.max.request.bytes")
        )
        if requests_bytes < frame_bytes:
            raise ConfigurationError(
                f"queued.max.request.bytes={requests_bytes} must not be below socket.request.max.bytes={frame_bytes}:"
                " the largest request would never be read"
            )
        _check_consumer_groups(config)
        return config, warnings

    def number(self, name: str) -> int:
        value = self.values[name]
        assert isinstance(value, int), f"{name} is not a number"
        return value

    def flag(self, name: str) -> bool:
        value = self.values[name]
        assert isinstance(value, bool), f"{name} is not a flag"
        return value

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str), f"{name} is not a text"
        return value

    def words(self, name: str) -> tuple[str, ...]:
        value = self.values[name]
        assert isinstance(value, tuple), f"{name} is not a list"
        return value

    @property
    def node_id(self) -> int:
        return self.number("broker.id")

    @property
    def listener(self) -> tuple[str, int]:
        """(host, port) to listen on; `listeners` wins over `host.name` and `port`."""
        match = LISTENER.fullmatch(self.text("listeners"))
        if match is None:
            return self.text("host.name") or "127.0.0.1", self.number("port")
        return match["host"] or "127.0.0.1", int(match["port"])

    def advertised(self, host: str, port: int) -> tuple[str, int]:
        """(host, port) for clients: the listener, unless advertised.listeners is set."""
        match = LISTENER.fullmatch(self.text("advertised.listeners"))
        return (host, port) if match is None else (match["host"] or host, int(match["port"]))


def _check_consumer_groups(config: BrokerConfig) -> None:
    """GroupCoordinatorConfig of 4.1.1: intervals are within their bounds, and a session is longer than a heartbeat."""
    for low, given, high in (
        (
            "group.consumer.min.session.timeout.ms",
            "group.consumer.session.timeout.ms",
            "group.consumer.max.session.timeout.ms",
        ),
        (
            "group.consumer.min.heartbeat.interval.ms",
            "group.consumer.heartbeat.interval.ms",
            "group.consumer.max.heartbeat.interval.ms",
        ),
    ):
        for lower, higher in ((low, high), (low, given), (given, high)):
            if config.number(lower) > config.number(higher):
                raise ConfigurationError(
                    f"{higher}={config.number(higher)} is below {lower}={config.number(lower)}. Raise the first one, or"
                    " lower the second one"
                )
    heartbeat, session = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
    if config.number(heartbeat) >= config.number(session):
        raise ConfigurationError(
            f"{heartbeat}={config.number(heartbeat)} must be below {session}={config.number(session)}: members would be"
            " removed between two heartbeats"
        )
