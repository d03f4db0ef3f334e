"""The settings of a `server` member, under Kafka's names of 0.8.2 and of today.

No release of Kafka has this design, so no list of names is binding. Brokers, fetching and commits have the names and
defaults of kafka-clients 4.1 (`coordinator.consumer.settings`), ZooKeeper those of the 0.8.2 consumer. One is ours:
`command.wait.ms`, how long an AwaitCommand may wait at the coordinator.

There is no max.poll.interval.ms: the member obeys in the background, so a slow application does not delay the group.
A callback that does not return or a stopped process does, until the coordinator's rebalance timeout.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coordinator.consumer.settings import CONSUMER_SETTINGS, KAFKA_CONSUMER_SETTINGS
from coordinator.membership.server.member import ServerMemberSettings
from coordinator.protocol.server_commands import ANY_STRATEGY
from coordinator.protocol.server_messages import WAIT_MS_MAX, id_problem
from kernel.assignors.registry import JAVA_CLASSES
from kernel.errors import ConfigurationError
from kernel.settings import Setting, in_range, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

_INT_MAX = 2**31 - 1

#: The same as for classic members.
_SHARED = (
    "bootstrap.servers",
    "client.id",
    "max.poll.records",
    "enable.auto.commit",
    "auto.commit.interval.ms",
    "auto.offset.reset",
    "isolation.level",
    "fetch.min.bytes",
    "fetch.max.wait.ms",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "retry.backoff.ms",
)


def _znode_name(value: object) -> str | None:
    if value is None:
        return None
    if not value:
        return "must not be empty"
    problem = id_problem(str(value))
    return f"it names a znode, and {problem}" if problem else None


def _group_id(value: object) -> str | None:
    """Return the problem as a broker reports it."""
    problem = _znode_name(value)
    return f"INVALID_GROUP_ID: {problem}" if problem else None


def _strategy(text: str) -> str:
    return JAVA_CLASSES.get(text.strip(), text.strip())


_OWN = (
    Setting(name="group.id", parse=str, default="", doc="the group, a znode's name", valid=_group_id),
    Setting(
        name="zookeeper.connect",
        parse=str,
        default="",
        doc="host:port,...[/chroot]",
        valid=lambda value: None if value else "must not be empty",
    ),
    Setting(
        name="zookeeper.session.timeout.ms",
        parse=int,
        default=6_000,
        doc="how long ZooKeeper waits for a silent member",
        valid=in_range(1, _INT_MAX),
    ),
    Setting(
        name="zookeeper.connection.timeout.ms",
        parse=int,
        default=None,
        doc="time to connect at startup; default: the session timeout",
        valid=in_range(1, _INT_MAX),
    ),
    Setting(
        name="consumer.id",
        parse=str,
        default=None,
        doc="fixed second half of the member id; generated for each session when unset",
        valid=_znode_name,
    ),
    Setting(
        name="partition.assignment.strategy",
        parse=_strategy,
        default=ANY_STRATEGY,
        doc="the strategy that the coordinator must use; unset: whichever it uses",
    ),
    Setting(
        name="command.wait.ms",
        parse=int,
        default=3_000,
        doc="how long a request for a command may wait at the coordinator",
        valid=in_range(1, WAIT_MS_MAX),
    ),
)

SERVER_CONSUMER_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in (*(CONSUMER_SETTINGS[name] for name in _SHARED), *_OWN)}
)

#: Settings of Kafka's consumers, and of the other designs here, that have no effect in this one.
KNOWN_ELSEWHERE = frozenset(KAFKA_CONSUMER_SETTINGS | CONSUMER_SETTINGS.keys()) - SERVER_CONSUMER_SETTINGS.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConsumerConfig:
    """The parsed settings; names are Kafka's with underscores, without a leading `zookeeper`."""

    bootstrap_servers: tuple[tuple[str, int], ...]
    group_id: str
    client_id: str
    zookeeper_connect: str
    session_timeout_ms: int  #: zookeeper.session.timeout.ms
    connection_timeout_ms: int  #: zookeeper.connection.timeout.ms
    consumer_id: str | None
    partition_assignment_strategy: str
    command_wait_ms: int
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

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> tuple[ServerConsumerConfig, list[str]]:
        """Return the configuration and warnings for the user. Raises `ConfigurationError`."""
        values, warnings = resolve(SERVER_CONSUMER_SETTINGS, given, known_elsewhere=KNOWN_ELSEWHERE)
        for name in ("bootstrap.servers", "group.id", "zookeeper.connect"):
            if not values[name]:
                raise ConfigurationError(f"{name} is required. Set {name}=...")
        fields: dict[str, Any] = {name.replace(".", "_"): value for name, value in values.items()}
        session_timeout_ms = fields.pop("zookeeper_session_timeout_ms")
        connection_timeout_ms = fields.pop("zookeeper_connection_timeout_ms") or session_timeout_ms
        return cls(
            session_timeout_ms=session_timeout_ms, connection_timeout_ms=connection_timeout_ms, **fields
        ), warnings

    @property
    def member(self) -> ServerMemberSettings:
        """The settings of the member's state machine."""
        return ServerMemberSettings(
            group=self.group_id,
            retry_backoff_ms=self.retry_backoff_ms,
            auto_commit=self.enable_auto_commit,
            auto_commit_interval_ms=self.auto_commit_interval_ms,
        )
