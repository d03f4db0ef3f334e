"""A topic's settings: Kafka's names, types, defaults and checks, and which of them have an effect here. Pure.

Source: LogConfig and ConfigDef of Kafka 4.1.1. Its names, types, defaults and responses to invalid values were recorded
in `tests/kernel/broker/settings/topic-configs-4.1.1.json`. Values are text, as on the wire and in ZooKeeper.

A setting whose `effect` is `Effect.NONE` is stored and shown, but changes nothing; the broker logs a warning when one
is set (`warnings_of`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
#: The limit for all settings of a topic together, names included.
SETTINGS_BYTES_MAX = 4_096
_UNBOUNDED = "9223372036854775807"


class ConfigType(IntEnum):
    """DescribeConfigsResponse.ConfigType: the type that DescribeConfigs reports for a setting."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Effect(StrEnum):
    """The effect of a setting on this broker."""

    APPLIED = "applied"
    #: `compact` in cleanup.policy: null keys are refused, but older values of a key are kept.
    PARTLY = "partly applied"
    NONE = "no effect"


#: Appended in brackets by DescribeConfigs to the documentation of settings that are not applied.
NOTES: Mapping[Effect, str] = MappingProxyType(
    {
        Effect.PARTLY: "partly applied on this broker: no record is compacted away",
        Effect.NONE: "no effect on this broker",
    }
)


class InvalidConfig(ValueError):
    """A value that Kafka refuses (INVALID_CONFIG), with Kafka's own message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSetting:
    """One setting; `broker_name` is the broker's setting that provides the default, '' if there is none here."""

    name: str
    type: ConfigType
    default: str
    doc: str
    broker_name: str = ""
    effect: Effect = Effect.NONE
    low: float | None = None
    high: float | None = None
    words: tuple[str, ...] = ()


_THROTTLED = (
    "must be the literal '*' or a list of replicas in the following format:"
    " [partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
_THROTTLED_NAMES = frozenset({"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"})
_BOOL, _STR, _INT, _LONG, _LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.LIST,
)
_APPLIED, _PARTLY = Effect.APPLIED, Effect.PARTLY


def _row(name: str, type_: ConfigType, default: str, broker_name: str, doc: str, **more: object) -> TopicSetting:
    return TopicSetting(name=name, type=type_, default=default, broker_name=broker_name, doc=doc, **more)  # type: ignore[arg-type]


#: By name. Defaults are those of a 4.1.1 broker with default settings.
TOPIC_SETTINGS: Mapping[str, TopicSetting] = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            _row("cleanup.policy", _LIST, "delete", "log.cleanup.policy",
                 "delete: expired records are deleted. compact: records need a key.",
                 words=("compact", "delete"), effect=_PARTLY),
            _row("compression.gzip.level", _INT, "-1", "compression.gzip.level",
                 "The broker's compression level for gzip."),
            _row("compression.lz4.level", _INT, "9", "compression.lz4.level", "The broker's compression level for lz4.",
                 low=1, high=17),
            _row("compression.type", _STR, "producer", "compression.type",
                 "The broker's compression of batches; producer keeps the producer's.",
                 words=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")),
            _row("compression.zstd.level", _INT, "3", "compression.zstd.level",
                 "The broker's compression level for zstd.",
                 low=-131072, high=22),
            _row("delete.retention.ms", _LONG, "86400000", "log.cleaner.delete.retention.ms",
                 "How long compaction keeps tombstones.", low=0),
            _row("file.delete.delay.ms", _LONG, "60000", "log.segment.delete.delay.ms",
                 "Delay before a file is deleted.", low=0),
            _row("flush.messages", _LONG, _UNBOUNDED, "log.flush.interval.messages",
                 "Number of records between two syncs to disk.",
                 low=1),
            _row("flush.ms", _LONG, _UNBOUNDED, "", "Time between two syncs to disk.", low=0),
            _row("follower.replication.throttled.replicas", _LIST, "", "", "Replicas whose followers are throttled."),
            _row("index.interval.bytes", _INT, "4096", "log.index.interval.bytes",
                 "Bytes between two index entries.", low=0),
            _row("leader.replication.throttled.replicas", _LIST, "", "", "Replicas whose leaders are throttled."),
            _row("local.retention.bytes", _LONG, "-2", "log.local.retention.bytes",
                 "Bytes kept on the broker's disk with tiered storage.", low=-2),
            _row("local.retention.ms", _LONG, "-2", "log.local.retention.ms",
                 "Time that records are kept on the broker's disk with tiered storage.", low=-2),
            _row("max.compaction.lag.ms", _LONG, _UNBOUNDED, "log.cleaner.max.compaction.lag.ms",
                 "Maximum time before a record is compacted.", low=1),
            _row("max.message.bytes", _INT, "1048588", "message.max.bytes",
                 "The largest record batch, in bytes, as sent.", low=0, effect=_APPLIED),
            _row("message.timestamp.after.max.ms", _LONG, "3600000", "log.message.timestamp.after.max.ms",
                 "How far a record's timestamp may be ahead of the broker's clock.", low=0, effect=_APPLIED),
            _row("message.timestamp.before.max.ms", _LONG, _UNBOUNDED, "log.message.timestamp.before.max.ms",
                 "How far a record's timestamp may be behind the broker's clock.", low=0, effect=_APPLIED),
            _row("message.timestamp.type", _STR, "CreateTime", "log.message.timestamp.type",
                 "CreateTime keeps the producer's timestamps; with LogAppendTime the broker sets them.",
                 words=("CreateTime", "LogAppendTime"), effect=_APPLIED),
            _row("min.cleanable.dirty.ratio", ConfigType.DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio",
                 "Ratio of uncompacted records at which compaction begins.", low=0, high=1),
            _row("min.compaction.lag.ms", _LONG, "0", "log.cleaner.min.compaction.lag.ms",
                 "Minimum time before a record is compacted.", low=0),
            _row("min.insync.replicas", _INT, "1", "min.insync.replicas",
                 "Number of in-sync replicas that a write with acks=all needs.", low=1),
            _row("preallocate", _BOOL, "false", "log.preallocate", "Preallocates files at their full size."),
            _row("remote.log.copy.disable", _BOOL, "false", "", "Stops copying records to tiered storage."),
            _row("remote.log.delete.on.disable", _BOOL, "false", "",
                 "Deletes the records in tiered storage when it is disabled."),
            _row("remote.storage.enable", _BOOL, "false", "",
                 "Enables tiered storage, which this broker does not have."),
            _row("retention.bytes", _LONG, "-1", "log.retention.bytes",
                 "The largest size of a partition before its oldest batches are deleted; -1 for no limit.",
                 effect=_APPLIED),
            _row("retention.ms", _LONG, "604800000", "log.retention.ms",
                 "Batches whose newest record is older are deleted; -1 keeps them forever.", low=-1, effect=_APPLIED),
            _row("segment.bytes", _INT, "1073741824", "log.segment.bytes", "Size of a segment's file.",
                 low=1024 * 1024),
            _row("segment.index.bytes", _INT, "10485760", "log.index.size.max.bytes", "Size of a segment's index.",
                 low=4),
            _row("segment.jitter.ms", _LONG, "0", "", "The largest random reduction of segment.ms.", low=0),
            _row("segment.ms", _LONG, "604800000", "", "Time after which a new segment begins.", low=1),
            _row("unclean.leader.election.enable", _BOOL, "false", "unclean.leader.election.enable",
                 "Allows a replica that is not in sync to lead."),
        )
    }
)  # fmt: skip


def parsed(setting: TopicSetting, text: str) -> object:
    """The value in its type. Raises `InvalidConfig` with the message of Kafka's ConfigDef."""
    stripped = text.strip()
    if setting.type is ConfigType.BOOLEAN:
        if stripped.lower() not in ("true", "false"):
            raise _invalid(setting, text, "Expected value to be either true or false")
        return stripped.lower() == "true"
    if setting.type is ConfigType.LIST:
        return _parsed_list(setting, stripped)
    if setting.type is ConfigType.STRING:
        if stripped not in setting.words:
            raise _invalid(setting, stripped, f"String must be one of: {', '.join(setting.words)}")
        return stripped
    return _parsed_number(setting, stripped)


def problem(name: str, text: str | None) -> str | None:
    """Kafka's error message for one setting of a topic, None if it is valid."""
    if text is None:
        return f"Null value not supported for topic configs: {name}"
    setting = TOPIC_SETTINGS.get(name)
    if setting is None:
        return f"Unknown topic config name: {name}"
    try:
        value = parsed(setting, text)
    except InvalidConfig as invalid:
        return str(invalid)
    if name == "remote.storage.enable" and value is True:
        return (
            "Tiered Storage functionality is disabled in the broker."
            " Topic cannot be configured with remote log storage."
        )
    return None


def problem_of_all(configs: Mapping[str, str | None]) -> str | None:
    """The first error in a topic's settings, each alone and all together (LogConfig.validate).

    The limit on their size is ours: ZooKeeper keeps the settings of all topics in memory.
    """
    if (size := sum(len(f"{name}{text}".encode()) for name, text in configs.items())) > SETTINGS_BYTES_MAX:
        return f"the topic's settings are {size} bytes, at most {SETTINGS_BYTES_MAX} are kept"
    unknown = next((name for name in configs if name not in TOPIC_SETTINGS), None)
    if unknown is not None and configs[unknown] is not None:
        return problem(unknown, configs[unknown])
    if found := next((found for name, text in configs.items() if (found := problem(name, text))), None):
        return found
    lags = [int(configs.get(name) or TOPIC_SETTINGS[name].default) for name in _LAGS]
    if lags[0] > lags[1]:
        return f"conflict topic config setting {_LAGS[0]} ({lags[0]}) > {_LAGS[1]} ({lags[1]})"
    return None


_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig:
    """The applied settings: one topic's effective values."""

    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    timestamp_before_ms_max: int = LONG_MAX
    timestamp_after_ms_max: int = 3_600_000
    compact: bool = False
    delete: bool = True
    retention_ms: int = 604_800_000  #: -1: forever
    retention_bytes: int = -1  #: below 0: no limit

    @classmethod
    def of(cls, values: Mapping[str, str]) -> TopicConfig:
        """From valid values by name (`effective`)."""
        policies = [word.strip() for word in values["cleanup.policy"].split(",")]
        return cls(
            max_message_bytes=int(values["max.message.bytes"]),
            log_append_time=values["message.timestamp.type"] == "LogAppendTime",
            timestamp_before_ms_max=int(values["message.timestamp.before.max.ms"]),
            timestamp_after_ms_max=int(values["message.timestamp.after.max.ms"]),
            compact="compact" in policies,
            delete="delete" in policies,
            retention_ms=int(values["retention.ms"]),
            retention_bytes=int(values["retention.bytes"]),
        )


def warnings_of(configs: Mapping[str, str]) -> list[str]:
    """Warnings for a topic with these valid settings, by name."""
    found = []
    for name, text in configs.items():
        setting = TOPIC_SETTINGS[name]
        if setting.effect is Effect.NONE and parsed(setting, text) != parsed(setting, setting.default):
            found.append(f"{name}={text} has no effect on this broker")
        elif name == "cleanup.policy" and "compact" in text:
            found.append(f"{name}={text}: records need a key, but no record is compacted away")
    return found


def _parsed_list(setting: TopicSetting, text: str) -> list[str]:
    words = [word.strip() for word in text.split(",")] if text else []
    if setting.name in _THROTTLED_NAMES:
        _check_throttled(setting, words)
        return words
    for word in words:
        if word not in setting.words:
            raise _invalid(setting, word, f"String must be one of: {', '.join(setting.words)}")
    return words


def _check_throttled(setting: TopicSetting, words: list[str]) -> None:
    """ThrottledReplicaListValidator."""
    given = [word for word in words if word]
    if given and given != ["*"] and not all(re.fullmatch("[0-9]+:[0-9]+", word) for word in given):
        raise _invalid(setting, f"[{', '.join(words)}]", f"{setting.name} {_THROTTLED}")


_LIMITS = {
    ConfigType.INT: (-(2**31), INT_MAX),
    ConfigType.LONG: (-(2**63), LONG_MAX),
}


def _parsed_number(setting: TopicSetting, text: str) -> float:
    low, high = _LIMITS.get(setting.type, (float("-inf"), float("inf")))
    value = _number_in(text, float if setting.type is ConfigType.DOUBLE else int)
    if value is None or not low <= value <= high:
        raise _invalid(setting, text, f"Not a number of type {setting.type.name}")
    shown = _java_double(value) if setting.type is ConfigType.DOUBLE else str(value)
    if setting.name == "compression.gzip.level":
        if not (1 <= value <= 9 or value == -1):
            raise _invalid(setting, shown, "Value must be between 1 and 9 or equal to -1")
    elif setting.low is not None and value < setting.low:
        raise _invalid(setting, shown, f"Value must be at least {setting.low}")
    elif setting.high is not None and value > setting.high:
        raise _invalid(setting, shown, f"Value must be no more than {setting.high}")
    return value


def _number_in(text: str, kind: type[int | float]) -> float | None:
    """Reject what Python accepts as a number and Java does not: underscores, and digits of other scripts."""
    if "_" in text or not text.isascii():
        return None
    try:
        return kind(text)
    except ValueError:
        return None


def _java_double(value: float) -> str:
    """Formatted as by Java's Double.toString: with an exponent from 10^7 on."""
    if 1e-3 <= abs(value) < 1e7 or value == 0:
        return str(value)
    digits, _, exponent = f"{value:.16e}".partition("e")
    shortest = f"{float(digits):.16g}"
    return f"{shortest if '.' in shortest else shortest + '.0'}E{int(exponent)}"


def _invalid(setting: TopicSetting, shown: str, why: str) -> InvalidConfig:
    return InvalidConfig(f"Invalid value {shown} for configuration {setting.name}: {why}")
