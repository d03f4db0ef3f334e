"""Presets of timers, by Kafka's setting names, for each design's members, for the brokers and for ZooKeeper.

With different defaults a comparison would compare timers, not designs. So the default is `equal-timers`;
`kafka-defaults` gives each design the defaults of its Kafka release. A user's `-c` setting overrides the preset in
every part that has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.designs.profile import DELAY
from comparison.designs.table import PROFILES
from kernel.designs import DESIGNS
from kernel.errors import ConfigurationError
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

ZOOKEEPER_TICK_MS = 500
#: Without these bounds a server silently clamps session timeouts to 2 to 20 ticks.
ZOOKEEPER_SESSION_MS = (200, 60_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Settings as text, as a user would write them."""

    name: str
    members: Mapping[str, Mapping[str, str]]  #: by design
    brokers: Mapping[str, str]


#: The timers of KIP-848's members are the brokers'.
CONSUMER_SESSION, CONSUMER_HEARTBEAT = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"
_CONSUMER_LEAST = ("group.consumer.min.session.timeout.ms", "group.consumer.min.heartbeat.interval.ms")
_CONSUMER_MOST = ("group.consumer.max.session.timeout.ms", "group.consumer.max.heartbeat.interval.ms")
#: Kafka's least session is its default, 45 s: a scenario that sets a shorter one would be refused.
_ANY_CONSUMER_TIMERS = dict.fromkeys(_CONSUMER_LEAST, "100")
_BOTH_TOPIC_REPLICAS = {"default.replication.factor": "2", "offsets.topic.replication.factor": "2"}

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "equal-timers": Preset(
            name="equal-timers",
            members={name: profile.equal_timers for name, profile in PROFILES.items()},
            brokers={
                "group.initial.rebalance.delay.ms": "0",
                "group.min.session.timeout.ms": "1000",
                CONSUMER_SESSION: "3000",
                CONSUMER_HEARTBEAT: "1000",
                **_ANY_CONSUMER_TIMERS,
                "group.server.rebalance.timeout.ms": "10000",
                "zookeeper.session.timeout.ms": "3000",
                **_BOTH_TOPIC_REPLICAS,
            },
        ),
        "kafka-defaults": Preset(
            name="kafka-defaults",
            members={name: profile.kafka_defaults for name, profile in PROFILES.items()},
            brokers={
                "group.initial.rebalance.delay.ms": "3000",
                "group.min.session.timeout.ms": "6000",
                CONSUMER_SESSION: "45000",
                CONSUMER_HEARTBEAT: "5000",
                **_ANY_CONSUMER_TIMERS,
                "zookeeper.session.timeout.ms": "6000",
                **_BOTH_TOPIC_REPLICAS,
            },
        ),
    }
)


#: The settings of members and brokers that --session-timeout sets, in all designs.
SESSION_TIMERS = frozenset(
    {
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "zookeeper.session.timeout.ms",
        "command.wait.ms",
        "rebalance.backoff.ms",
        DELAY,
        "group.min.session.timeout.ms",
        CONSUMER_SESSION,
        CONSUMER_HEARTBEAT,
        *_CONSUMER_LEAST,
        *_CONSUMER_MOST,
    }
)


def equal_sessions(preset: Preset, design: str, session_ms: int) -> tuple[dict[str, str], dict[str, str]]:
    """Settings of a design's members, and of the brokers, for a session timeout of `session_ms`.

    Heartbeats and the backoff between the four tries are a third of it, as in equal-timers, so that a rebalance
    outlasts a dead member's session. kafka-defaults keeps Connect's delay. The brokers' own sessions are never made
    longer: how soon a broker is given up is another question.
    """
    whole, third = str(session_ms), str(session_ms // 3)
    timers = {
        "session.timeout.ms": whole,
        "heartbeat.interval.ms": third,
        "zookeeper.session.timeout.ms": whole,
        "command.wait.ms": third,
        "rebalance.backoff.ms": third,
    }
    if preset.name == "equal-timers":
        timers[DELAY] = whole
    bounds = ("group.min.session.timeout.ms", "zookeeper.session.timeout.ms")
    of_brokers = {name: str(min(session_ms, int(preset.brokers[name]))) for name in bounds}
    if DESIGNS[design].reconciles:
        of_brokers |= {CONSUMER_SESSION: whole, CONSUMER_HEARTBEAT: third}
        of_brokers |= dict(zip((*_CONSUMER_LEAST, *_CONSUMER_MOST), (whole, third) * 2, strict=True))
    return {name: value for name, value in timers.items() if name in preset.members[design]}, of_brokers


def preset_named(name: str) -> Preset:
    """Raises `ConfigurationError` with the names of the presets."""
    preset = PRESETS.get(name)
    if preset is None:
        raise ConfigurationError(unknown("preset", name, PRESETS))
    return preset
