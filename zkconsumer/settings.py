"""The settings of the 0.8.2 consumer as values, with Kafka's names and defaults (ConsumerConfig.scala, 0.8.2.1).

`zkconsumer.kafka_settings` has those of Kafka; a setting of 0.8 that has no effect here causes a warning. Three kinds
of settings are not Kafka's (`zkconsumer.own_settings`):

- `kafka.release` and what it sets choose between the behaviours of Kafka 0.8.2 and 1.1;
- each `fix.*` removes one historical weakness; all are off by default, and `docs/zookeeper-consumer.md` says which
  fault each removes and what it costs;
- `seed`, since every random choice here is repeatable.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kernel.errors import ConfigurationError
from kernel.settings import resolve
from kernel.timer_advice import timer_advice
from zkconsumer.kafka_settings import KAFKA_OLD_CONSUMER_SETTINGS, KAFKA_SETTINGS
from zkconsumer.own_settings import DEFAULTS_OF_1_1, OWN_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.settings import Setting

ZK_CONSUMER_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in (*KAFKA_SETTINGS, *OWN_SETTINGS)}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FixesOfRebalances:
    """The weaknesses of the original's rebalance to remove (`fix.*`); none by default."""

    claim_before_offsets: bool = False
    checked_release: bool = False
    checked_claim: bool = False
    stop_on_disconnect: bool = False
    sync_before_reads: bool = False
    retry_when_free: bool = False
    quiet_ms: int = 0
    skip_unreadable_members: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes(FixesOfRebalances):
    """All weaknesses to remove."""

    commit_fence: str = "none"  #: none, session or epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkConsumerConfig:
    """The settings as values, under Kafka's names with underscores. `consumer_id` None: generate one."""

    zookeeper_connect: str
    group_id: str
    consumer_id: str | None
    client_id: str
    session_timeout_ms: int
    connection_timeout_ms: int
    rebalance_backoff_ms: int
    rebalance_max_retries: int
    release: str  #: 0.8.2 or 1.1
    retry_while_closing: bool
    strategy: str  #: range, roundrobin-0.8.2 or roundrobin-1.1
    listener_in_attempt: bool
    registration_conflict: str  #: wait or fail
    one_read_watches: bool  #: watch.reads=one
    one_by_one: bool  #: rebalance.reads=one-by-one
    pauses_to_reconnect: bool  #: zookeeper.reconnect=java
    exclude_internal_topics: bool
    consumer_timeout_ms: int | None  #: None: an iterator waits forever
    offsets_storage: str  #: zookeeper or kafka
    dual_commit_enabled: bool  #: only ever true with offsets_storage kafka
    offsets_commit_max_retries: int
    offsets_channel_backoff_ms: int
    offsets_channel_socket_timeout_ms: int
    auto_commit_enable: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    queued_max_message_chunks: int
    fetch_message_max_bytes: int
    fetch_min_bytes: int
    fetch_wait_max_ms: int
    num_consumer_fetchers: int
    refresh_leader_backoff_ms: int
    socket_timeout_ms: int
    socket_receive_buffer_bytes: int
    seed: int
    fixes: Fixes

    @property
    def offsets_from(self) -> frozenset[str]:
        """Where start offsets are read: zookeeper, kafka, or both, of which the larger wins."""
        if self.offsets_storage == "zookeeper":
            return frozenset({"zookeeper"})
        return frozenset({"kafka", "zookeeper"} if self.dual_commit_enabled else {"kafka"})

    @classmethod
    def from_settings(cls, given: Mapping[str, str]) -> tuple[ZkConsumerConfig, list[str]]:
        """The configuration, and warnings to show to the user. Raises `ConfigurationError`."""
        values, warnings = resolve(
            ZK_CONSUMER_SETTINGS,
            given,
            known_elsewhere=KAFKA_OLD_CONSUMER_SETTINGS,
            required=("zookeeper.connect", "group.id"),
        )
        if values["kafka.release"] == "1.1":
            values |= {name: value for name, value in DEFAULTS_OF_1_1.items() if name not in given}
        config = cls._from_values(values)
        _refuse_contradictions(config)
        return config, warnings + _doubtful(config, given)

    @classmethod
    def _from_values(cls, values: Mapping[str, Any]) -> ZkConsumerConfig:
        session_timeout_ms = values["zookeeper.session.timeout.ms"]
        named = {field.name: field.name.replace("_", ".") for field in fields(cls)}
        taken = {name: values[setting] for name, setting in named.items() if setting in values}
        return cls(
            **taken
            | {
                "client_id": values["client.id"] or values["group.id"],
                "session_timeout_ms": session_timeout_ms,
                "connection_timeout_ms": _or(values["zookeeper.connection.timeout.ms"], session_timeout_ms),
                "rebalance_backoff_ms": _or(values["rebalance.backoff.ms"], values["zookeeper.sync.time.ms"]),
                "release": values["kafka.release"],
                "retry_while_closing": values["rebalance.retries.while.closing"],
                "strategy": _strategy(values["partition.assignment.strategy"], values["roundrobin.release"]),
                "listener_in_attempt": values["rebalance.listener.in.attempt"],
                "one_read_watches": values["watch.reads"] == "one",
                "one_by_one": values["rebalance.reads"] == "one-by-one",
                "pauses_to_reconnect": values["zookeeper.reconnect"] == "java",
                "consumer_timeout_ms": None if values["consumer.timeout.ms"] < 0 else values["consumer.timeout.ms"],
                "dual_commit_enabled": _dual(values["offsets.storage"], values["dual.commit.enabled"]),
                "fixes": Fixes(**{name: values[_setting_of(name)] for name in Fixes.__dataclass_fields__}),
            }
        )


def _refuse_contradictions(config: ZkConsumerConfig) -> None:
    if config.fetch_wait_max_ms > config.socket_timeout_ms:
        raise ConfigurationError(
            f"fetch.wait.max.ms={config.fetch_wait_max_ms} is more than socket.timeout.ms="
            f"{config.socket_timeout_ms}: every empty fetch would time out; increase socket.timeout.ms"
        )


def _doubtful(config: ZkConsumerConfig, given: Mapping[str, str]) -> list[str]:
    """Warnings for settings that are legal but probably unintended."""
    warnings = timer_advice(
        {
            "zookeeper.session.timeout.ms": config.session_timeout_ms,
            "rebalance.max.retries": config.rebalance_max_retries,
            "rebalance.backoff.ms": config.rebalance_backoff_ms,
        }
    )
    if "dual.commit.enabled" in given and config.offsets_storage == "zookeeper":
        warnings.append("dual.commit.enabled has no effect without offsets.storage=kafka")
    if config.fixes.stop_on_disconnect and config.fixes.commit_fence == "none" and "zookeeper" in config.offsets_from:
        warnings.append(
            "fix.stop.on.disconnect stops deliveries only: a commit that waits for the connection is still written in "
            "the next session, which can move an offset back; add fix.commit.fence=session or epoch"
        )
    if config.fixes.commit_fence != "none" and "zookeeper" not in config.offsets_from:
        warnings.append("fix.commit.fence has no effect on offsets in Kafka: use dual.commit.enabled or no fence")
    return warnings


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _strategy(word: str, release: str) -> str:
    """Only `roundrobin` means round robin; any other value means range, as in Kafka."""
    return f"roundrobin-{release}" if word == "roundrobin" else "range"


def _dual(storage: str, asked: bool | None) -> bool:
    return storage == "kafka" and asked is not False


def _setting_of(fix: str) -> str:
    return "fix." + fix.replace("_", ".")
