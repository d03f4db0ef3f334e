"""The effective value of a setting: the topic's own, else one of the brokers', else Kafka's default. Pure.

Source: ConfigHelper and ConfigurationControlManager of Kafka 4.1.1 (order and sources; KIP-226). The dynamic broker
settings are the defaults of a topic's applied settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from kernel.broker.settings.topic_configs import TOPIC_SETTINGS, ConfigType, Effect, TopicSetting

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Broker settings for retention that are not in milliseconds: factor to milliseconds.
_RETENTION = {"log.retention.minutes": 60_000, "log.retention.hours": 3_600_000}
_RETENTION_MS = "log.retention.ms"
_RETENTION_HOURS = "168"  #: Kafka's default, which is that of log.retention.ms: it has none itself

#: {dynamic broker setting: the topic setting whose default it is}
DYNAMIC_BROKER_SETTINGS: Mapping[str, TopicSetting] = {
    setting.broker_name: setting
    for setting in TOPIC_SETTINGS.values()
    if setting.broker_name and setting.effect is not Effect.NONE
}


class Source(IntEnum):
    """DescribeConfigsResponse.ConfigSource: where a value comes from."""

    TOPIC = 1
    BROKER = 2  #: altered while the broker runs
    ALL_BROKERS = 3  #: altered for every broker
    STATIC = 4  #: given when the broker was started
    DEFAULT = 5
    GROUP = 8


class Synonym(NamedTuple):
    """One place where a value is, or could be, set."""

    name: str
    value: str
    source: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLayers:
    """The settings of a broker as text, by source."""

    own: Mapping[str, str] = field(default_factory=dict)
    of_all: Mapping[str, str] = field(default_factory=dict)
    static: Mapping[str, str] = field(default_factory=dict)


def broker_synonyms(name: str, layers: BrokerLayers, default: str | None) -> list[Synonym]:
    """Where a broker's setting is set, the effective one first."""
    found = [
        Synonym(name, layer[name], source)
        for layer, source in (
            (layers.own, Source.BROKER),
            (layers.of_all, Source.ALL_BROKERS),
            (layers.static, Source.STATIC),
        )
        if name in layer
    ]
    if name == _RETENTION_MS:
        found += [Synonym(other, layers.static[other], Source.STATIC) for other in _RETENTION if other in layers.static]
        found.append(Synonym("log.retention.hours", _RETENTION_HOURS, Source.DEFAULT))
    elif default is not None:
        found.append(Synonym(name, default, Source.DEFAULT))
    return found


def synonyms(setting: TopicSetting, own: Mapping[str, str], layers: BrokerLayers) -> list[Synonym]:
    """Where a topic's setting is set, the effective one first; empty if only Kafka's default applies."""
    found = [Synonym(setting.name, own[setting.name], Source.TOPIC)] if setting.name in own else []
    if setting.broker_name:
        found += broker_synonyms(setting.broker_name, layers, setting.default)
    return found


def held(setting: TopicSetting, found: list[Synonym]) -> str:
    """The value of a topic's setting from its synonyms."""
    if not found:
        return setting.default
    first = found[0]
    factor = _RETENTION.get(first.name)
    if factor is None:
        return first.value
    return str(-1 if int(first.value) < 0 else int(first.value) * factor)


def described(found: list[Synonym]) -> list[Synonym]:
    """The synonyms that DescribeConfigs shows.

    Kafka names minutes and hours only behind a log.retention.ms; without one their value counts as a default.
    """
    if any(synonym.name == _RETENTION_MS for synonym in found):
        return found
    return [synonym for synonym in found if synonym.name not in _RETENTION]


def source_of(shown: list[Synonym]) -> Source:
    return shown[0].source if shown else Source.DEFAULT


def effective(own: Mapping[str, str], layers: BrokerLayers) -> dict[str, str]:
    """{name: effective value} of every setting of a topic; `own` are those set for the topic itself."""
    return {name: held(setting, synonyms(setting, own, layers)) for name, setting in TOPIC_SETTINGS.items()}


def type_of(value: object) -> ConfigType:
    """A broker setting's type in DescribeConfigs."""
    if isinstance(value, bool):
        return ConfigType.BOOLEAN
    if isinstance(value, int):
        return ConfigType.INT if abs(value) < 2**31 else ConfigType.LONG
    if isinstance(value, tuple):
        return ConfigType.LIST
    return ConfigType.STRING
