"""A broker's settings, by Kafka's names and with Kafka's defaults (from the KafkaConfig of 3.9.1).

Three defaults are ours, to be safe on a shared machine: the broker listens on 127.0.0.1 instead of everywhere,
`log.dirs` has no default, and queued.max.request.bytes is bounded. Kafka's settings that we do not implement are in
`kernel.broker.settings.kafka_settings`; using one is a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.broker.settings.effective_configs import DYNAMIC_BROKER_SETTINGS
from kernel.broker.settings.kafka_settings import KAFKA_BROKER_SETTINGS
from kernel.broker.settings.topic_configs import ConfigType, TopicSetting, problem
from kernel.errors import ConfigurationError
from kernel.settings import Setting, boolean, in_range, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

INT_MAX = 2**31 - 1
#: Kafka has no limit unless one is set. Ours: 200 MiB of requests, 128 MiB of responses.
REQUESTS_BYTES_MAX, RESPONSES_BYTES_MAX = 209_715_200, 134_217_728

_LISTENER = re.compile(r"(?:PLAINTEXT://)?(?P<host>[^:/,]*):(?P<port>\d{1,5})")


def _listener_problem(value: object) -> str | None:
    if value == "" or _LISTENER.fullmatch(str(value)):
        return None
    return "only one listener, without encryption, is supported. Write PLAINTEXT://127.0.0.1:9092"


def _number(name: str, default: int, doc: str, *, low: int = 0, high: int = INT_MAX) -> Setting:
    return Setting(name=name, parse=int, default=default, doc=doc, valid=in_range(low, high))


def _flag(name: str, default: bool, doc: str) -> Setting:
    return Setting(name=name, parse=boolean, default=default, doc=doc)


def _text(name: str, default: str, doc: str) -> Setting:
    return Setting(name=name, parse=str, default=default, doc=doc)


def _behind_topics(setting: TopicSetting) -> Setting:
    """The default for topics without this setting; kept as text, checked like the topic's."""
    name = setting.broker_name
    return Setting(
        name=name,
        parse=str,
        default=setting.default,
        doc=f"default {setting.name} of topics: {setting.doc}",
        valid=lambda value: problem(setting.name, str(value)),
    )


BROKER_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        setting.name: setting
        for setting in (
            # -- identity and network
            _number("broker.id", -1, "the broker's number; -1 takes the next free one above 1000", low=-1),
            Setting(
                name="listeners",
                parse=str,
                default="",
                doc="PLAINTEXT://HOST:PORT; the host has to be a loopback address",
                valid=_listener_problem,
            ),
            Setting(
                name="advertised.listeners",
                parse=str,
                default="",
                doc="PLAINTEXT://HOST:PORT that clients connect to instead, for example through a proxy",
                valid=_listener_problem,
            ),
            _number("port", 9092, "the port if listeners is not set; 0 chooses a free one", high=65535),
            _text("host.name", "127.0.0.1", "the host if listeners is not set"),
            _number("socket.request.max.bytes", 104_857_600, "the largest request, in bytes", low=1),
            _number(
                "queued.max.request.bytes",
                REQUESTS_BYTES_MAX,
                "bytes of requests held by all connections together; at least socket.request.max.bytes",
                low=1,
            ),
            _number(
                "queued.max.response.bytes",
                RESPONSES_BYTES_MAX,
                "bytes of responses not yet read by clients, of all connections together (not Kafka's)",
                low=1,
            ),
            _number("max.connections", INT_MAX, "the most connections at a time"),
            _number("connections.max.idle.ms", 600_000, "idle connections are closed after this time", low=-1),
            # -- ZooKeeper
            _text("zookeeper.connect", "", "HOST:PORT[,HOST:PORT...][/chroot]"),
            _number(
                "zookeeper.session.timeout.ms",
                18_000,
                "the broker's session: after this time its death is noticed",
                low=1,
            ),
            _number("zookeeper.connection.timeout.ms", 18_000, "how long the start waits for ZooKeeper", low=1),
            # -- topics and logs
            _text("log.dirs", "", "the data folder; all brokers of one machine share it"),
            _number("num.partitions", 1, "partitions of a topic created without a number", low=1),
            _number("default.replication.factor", 1, "replicas of a topic created without a number", low=1, high=32767),
            _flag("auto.create.topics.enable", True, "create an unknown topic when Metadata asks for it"),
            _flag("delete.topic.enable", True, "DeleteTopics is allowed"),
            _number("message.max.bytes", 1_048_588, "the largest record batch, in bytes"),
            *(
                _behind_topics(setting)
                for setting in DYNAMIC_BROKER_SETTINGS.values()
                if setting.type is not ConfigType.INT
            ),
            _number("log.retention.minutes", -1, "retention of topics if log.retention.ms is not set", low=-1),
            _number("log.retention.hours", 168, "retention of topics if neither of the other two is set", low=-1),
            _number("log.retention.check.interval.ms", 300_000, "how often retention is checked", low=1),
            _number("fetch.max.bytes", 57_671_680, "the most that one Fetch returns, in bytes", low=1024),
            # -- groups
            _number("group.initial.rebalance.delay.ms", 3_000, "how long an empty group waits for more members"),
            _number("group.min.session.timeout.ms", 6_000, "the shortest session that a member may ask for"),
            _number("group.max.session.timeout.ms", 1_800_000, "the longest one"),
            _number("group.max.size", INT_MAX, "the most members of a group", low=1),
            _number(
                "group.member.metadata.max.bytes",
                0,
                "the largest ids and subscriptions of one member, in bytes; 0 is half of message.max.bytes",
            ),
            _number(
                "group.metadata.max.bytes",
                0,
                "the same for all members of a group together; 0 is three quarters of message.max.bytes",
            ),
            _number("offsets.topic.num.partitions", 50, "partitions of __consumer_offsets", low=1),
            _number("offsets.topic.replication.factor", 3, "replicas of __consumer_offsets", low=1, high=32767),
            _number("offset.metadata.max.bytes", 4_096, "the longest metadata of a committed offset, in bytes"),
            _number("offsets.retention.minutes", 10_080, "how long the offsets of an empty group are kept", low=1),
            _number("offsets.retention.check.interval.ms", 600_000, "how often expired offsets are looked for", low=1),
            _text(
                "group.server.assignment.strategy", "range", "server design: the strategy by which this broker assigns"
            ),
            _number(
                "group.server.rebalance.timeout.ms",
                30_000,
                "server design: the time members have to stop or start consuming",
                low=1,
            ),
            _number(
                "transaction.max.timeout.ms",
                900_000,
                "the longest transaction timeout that a producer may request",
                low=1,
            ),
        )
    }
)


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

    @property
    def node_id(self) -> int:
        return self.number("broker.id")

    @property
    def listener(self) -> tuple[str, int]:
        """(host, port) to listen on; `listeners` wins over `host.name` and `port`."""
        match = _LISTENER.fullmatch(self.text("listeners"))
        if match is None:
            return self.text("host.name") or "127.0.0.1", self.number("port")
        return match["host"] or "127.0.0.1", int(match["port"])

    def advertised(self, host: str, port: int) -> tuple[str, int]:
        """(host, port) for clients: the listener, unless advertised.listeners is set."""
        match = _LISTENER.fullmatch(self.text("advertised.listeners"))
        return (host, port) if match is None else (match["host"] or host, int(match["port"]))
