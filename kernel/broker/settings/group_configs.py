"""A consumer group's own settings (KIP-848): Kafka's names, types and checks. Pure.

Source: GroupConfig and ConfigDef of Kafka 4.1.1. A group has them by IncrementalAlterConfigs, resource type GROUP; what
it does not have comes from the broker's `group.consumer.*`. Those of share and streams groups are not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from kernel.broker.settings.topic_configs import ConfigType, Effect, InvalidConfig, TopicSetting, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.broker.settings.configuration import BrokerConfig

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


class Timeouts(NamedTuple):
    """Of the members of one group, or of all groups that have none of their own."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutBounds:
    """The broker's bounds (Kafka's names in the comments)."""

    session_timeout_ms_min: int = 45_000  # group.consumer.min.session.timeout.ms
    session_timeout_ms_max: int = 60_000  # group.consumer.max.session.timeout.ms
    heartbeat_interval_ms_min: int = 5_000  # group.consumer.min.heartbeat.interval.ms
    heartbeat_interval_ms_max: int = 15_000  # group.consumer.max.heartbeat.interval.ms


def _row(name: str, default: int, doc: str) -> TopicSetting:
    return TopicSetting(
        name=name,
        type=ConfigType.INT,
        default=str(default),
        broker_name=f"group.{name}",
        doc=doc,
        low=1,
        effect=Effect.APPLIED,
    )


GROUP_CONFIGS: Mapping[str, TopicSetting] = MappingProxyType(
    {
        SESSION: _row(SESSION, Timeouts().session_timeout_ms, "How long a member may be silent."),
        HEARTBEAT: _row(HEARTBEAT, Timeouts().heartbeat_interval_ms, "How often members should send heartbeats."),
    }
)


def defaults_of(config: BrokerConfig) -> Timeouts:
    """Of groups without settings of their own."""
    return Timeouts(
        config.number("group.consumer.session.timeout.ms"), config.number("group.consumer.heartbeat.interval.ms")
    )


def bounds_of(config: BrokerConfig) -> TimeoutBounds:
    return TimeoutBounds(
        session_timeout_ms_min=config.number("group.consumer.min.session.timeout.ms"),
        session_timeout_ms_max=config.number("group.consumer.max.session.timeout.ms"),
        heartbeat_interval_ms_min=config.number("group.consumer.min.heartbeat.interval.ms"),
        heartbeat_interval_ms_max=config.number("group.consumer.max.heartbeat.interval.ms"),
    )


def problem_of_one(name: str, text: str) -> str | None:
    """Kafka's error message for one setting by itself, None if it is valid."""
    if name not in GROUP_CONFIGS:
        return f"Unknown group config name: {name}"
    try:
        parsed(GROUP_CONFIGS[name], text)
    except InvalidConfig as invalid:
        return str(invalid)
    return None


def problem_of_group(configs: Mapping[str, str], defaults: Timeouts, bounds: TimeoutBounds) -> str | None:
    """Kafka's error message for a group's settings, None if they are valid."""
    for name, text in configs.items():
        if wrong := problem_of_one(name, text):
            return wrong
    session, heartbeat = timeouts_of(configs, defaults)
    for name, value, low, high, limit in (
        (
            HEARTBEAT,
            heartbeat,
            bounds.heartbeat_interval_ms_min,
            bounds.heartbeat_interval_ms_max,
            "heartbeat.interval",
        ),
        (SESSION, session, bounds.session_timeout_ms_min, bounds.session_timeout_ms_max, "session.timeout"),
    ):
        if value < low:
            return f"{name} must be greater than or equal to group.consumer.min.{limit}.ms"
        if value > high:
            return f"{name} must be less than or equal to group.consumer.max.{limit}.ms"
    return f"{SESSION} must be greater than {HEARTBEAT}" if session <= heartbeat else None


def timeouts_of(configs: Mapping[str, str], defaults: Timeouts) -> Timeouts:
    """The effective ones. Raises `InvalidConfig`."""

    def number(name: str, default: int) -> int:
        text = configs.get(name)
        value = default if text is None else parsed(GROUP_CONFIGS[name], text)
        assert isinstance(value, int), f"{name} is a number"
        return value

    return Timeouts(number(SESSION, defaults.session_timeout_ms), number(HEARTBEAT, defaults.heartbeat_interval_ms))
