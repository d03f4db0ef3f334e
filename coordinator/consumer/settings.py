"""The settings of a classic consumer, with Kafka's names and defaults (kafka-clients 4.1.1, ConsumerConfig).

Kafka's settings that we do not implement are in `KAFKA_CONSUMER_SETTINGS`; using one causes a warning. Two defaults
differ from Kafka's: `client.id` is "rebalance-lab", because Kafka's is empty and member ids begin with it;
`partition.assignment.strategy` is range alone, where Kafka adds cooperative-sticky for a later migration, because a
design under comparison offers one strategy. A member is cooperative if all the strategies it offers are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coordinator.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED
from coordinator.membership.classic.member import MemberSettings
from coordinator.membership.delayed_leader import PROTOCOL as DELAYED
from kernel.assignors.registry import COOPERATIVE, assignor_name
from kernel.assignors.sticky import EXACT_PARTITIONS_MAX
from kernel.errors import ConfigurationError
from kernel.settings import Setting, boolean, in_range, one_of, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

_INT_MAX = 2**31 - 1

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def _required(value: object) -> str | None:
    return None if value else "must not be empty"


def _instance_id(value: object) -> str | None:
    """As JoinGroupRequest.validateGroupInstanceId of kafka-clients 4.1: what a topic's name may be."""
    if isinstance(value, str) and _NAME.fullmatch(value) and value not in (".", ".."):
        return None
    return "must have 1 to 249 letters, digits, '.', '_' or '-', and not be '.' or '..'"


def _number(name: str, default: int, low: int, doc: str) -> Setting:
    return Setting(name=name, parse=int, default=default, doc=doc, valid=in_range(low, _INT_MAX))


def _strategies(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise ValueError("name at least one strategy")
    if DELAYED in names:
        if len(names) > 1:
            raise ValueError(f"{DELAYED} cannot be combined with other strategies: it is a separate protocol")
        return names
    try:
        strategies = tuple(dict.fromkeys(assignor_name(name) for name in names))
    except ConfigurationError as error:
        raise ValueError(str(error)) from error
    return strategies


def _addresses(text: str) -> tuple[tuple[str, int], ...]:
    """`host:port,...` as Kafka reads bootstrap.servers; IPv6 addresses in brackets."""
    addresses = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, colon, port = part.rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ValueError(f"{part!r} is not an address. Write host:port")
        addresses.append((host.strip("[]"), int(port)))
    return tuple(addresses)


_ALL = (
    Setting(
        name="bootstrap.servers", parse=_addresses, default=(), doc="host:port,... of some brokers", valid=_required
    ),
    Setting(name="group.id", parse=str, default="", doc="the group", valid=_required),
    Setting(name="client.id", parse=str, default="rebalance-lab", doc="sent to brokers; member ids begin with it"),
    _number("session.timeout.ms", 45_000, 1, "a member without heartbeats for this long is considered dead"),
    _number("heartbeat.interval.ms", 3_000, 1, "between two heartbeats; a third of the session timeout or less"),
    _number("max.poll.interval.ms", 300_000, 1, "a member without polls for this long leaves the group"),
    Setting(
        name="group.instance.id",
        parse=str,
        default=None,
        doc="makes the member static: a restart within the session timeout causes no rebalance",
        valid=_instance_id,
    ),
    _number("max.poll.records", 500, 1, "records per poll, at most"),
    Setting(
        name="partition.assignment.strategy",
        parse=_strategies,
        default=("range",),
        doc="range, roundrobin, sticky, cooperative-sticky or a plug-in, in order of preference; or delayed alone; "
        "Kafka's class names work too",
    ),
    _number(
        "scheduled.rebalance.max.delay.ms", 300_000, 0, "strategy delayed: how long a lost member's partitions wait"
    ),
    _number(
        "sticky.exact.partitions.max",
        EXACT_PARTITIONS_MAX,
        0,
        "sticky and cooperative-sticky, members with different topics: groups with more partitions than this use a "
        "faster algorithm than Kafka's (not a Kafka setting)",
    ),
    Setting(name="enable.auto.commit", parse=boolean, default=True, doc="in polls, before a rebalance, when closing"),
    _number("auto.commit.interval.ms", 5_000, 0, "between two automatic commits, at least"),
    Setting(
        name="auto.offset.reset",
        parse=str,
        default="latest",
        doc="where a partition without a usable offset starts: earliest, latest, or none (an error)",
        valid=one_of("earliest", "latest", "none"),
    ),
    Setting(
        name="isolation.level",
        parse=str,
        default=READ_UNCOMMITTED,
        doc="read_committed: skip aborted transactions, and stop before the first open one",
        valid=one_of(READ_UNCOMMITTED, READ_COMMITTED),
    ),
    _number("fetch.min.bytes", 1, 0, "how much data a fetch waits for"),
    _number("fetch.max.wait.ms", 500, 0, "how long a fetch waits for fetch.min.bytes"),
    _number("fetch.max.bytes", 52_428_800, 0, "maximum size of one fetch"),
    _number("max.partition.fetch.bytes", 1_048_576, 1, "maximum size for one partition in one fetch"),
    _number("request.timeout.ms", 30_000, 1, "how long to wait for a broker's response"),
    _number("default.api.timeout.ms", 60_000, 1, "how long an explicit commit may take, with retries"),
    _number("socket.connection.setup.timeout.ms", 10_000, 1, "how long to wait for a connection"),
    _number("retry.backoff.ms", 100, 0, "how long to wait before a retry"),
    _number("metadata.max.age.ms", 300_000, 1, "how often to refresh topics and partitions"),
    Setting(
        name="allow.auto.create.topics",
        parse=boolean,
        default=True,
        doc="subscribing by name may create a topic, if the broker's auto.create.topics.enable allows it",
    ),
    Setting(
        name="exclude.internal.topics", parse=boolean, default=True, doc="patterns do not match Kafka's own topics"
    ),
)

CONSUMER_SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in _ALL})

_NAMES = """
    auto.include.jmx.reporter check.crcs client.dns.lookup client.rack config.providers
    connections.max.idle.ms enable.metrics.push group.protocol
    group.remote.assignor interceptor.classes internal.leave.group.on.close
    internal.throw.on.fetch.stable.offset.unsupported key.deserializer
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy metric.reporters metrics.num.samples
    metrics.recording.level metrics.sample.window.ms receive.buffer.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms retry.backoff.max.ms sasl.client.callback.handler.class sasl.jaas.config
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
    sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
    sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
    sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
    sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
    sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
    sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes
    share.acknowledgement.mode socket.connection.setup.timeout.max.ms ssl.cipher.suites ssl.enabled.protocols
    ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm
    ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    ssl.truststore.certificates ssl.truststore.location ssl.truststore.password ssl.truststore.type
    value.deserializer
"""

#: Real settings of Kafka's consumer (0.9 to 4.1) that have no effect here.
KAFKA_CONSUMER_SETTINGS = frozenset(_NAMES.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConsumerConfig:
    """The parsed settings; names are Kafka's with underscores."""

    bootstrap_servers: tuple[tuple[str, int], ...]
    group_id: str
    client_id: str
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    group_instance_id: str | None
    max_poll_records: int
    partition_assignment_strategy: tuple[str, ...]
    scheduled_rebalance_max_delay_ms: int
    sticky_exact_partitions_max: int
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
    metadata_max_age_ms: int
    allow_auto_create_topics: bool
    exclude_internal_topics: bool

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> tuple[CoordinatorConsumerConfig, list[str]]:
        """Return the configuration and warnings for the user. Raises `ConfigurationError`."""
        values, warnings = resolve(CONSUMER_SETTINGS, given, known_elsewhere=KAFKA_CONSUMER_SETTINGS)
        for name in ("bootstrap.servers", "group.id"):
            if not values[name]:
                raise ConfigurationError(f"{name} is required. Set {name}=...")
        fields: dict[str, Any] = {name.replace(".", "_"): value for name, value in values.items()}
        config = cls(**fields)
        if config.heartbeat_interval_ms >= config.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat.interval.ms={config.heartbeat_interval_ms} must be below "
                f"session.timeout.ms={config.session_timeout_ms}, or every member is considered dead"
            )
        return config, warnings

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
        )
