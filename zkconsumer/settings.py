"""The settings of the 0.8.2 consumer, with Kafka's names and defaults (ConsumerConfig.scala, 0.8.2.1).

A setting of 0.8 that has no effect here causes a warning. Three kinds of settings are not Kafka's:

- `kafka.release` and what it sets choose between the behaviours of Kafka 0.8.2 and 1.1;
- each `fix.*` removes one historical weakness; all are off by default, and `docs/zookeeper-consumer.md` says which
  fault each removes and what it costs;
- `seed`, since every random choice here is repeatable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kernel.errors import ConfigurationError
from kernel.settings import Setting, boolean, in_range, one_of, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

_INT_MAX = 2**31 - 1
#: The characters that Kafka allows in a group id, a znode's name, and in a client id (ConsumerConfig.validateChars).
_LEGAL_ID = re.compile(r"[a-zA-Z0-9._-]+\Z")


def _required(value: object) -> str | None:
    return None if value else "must not be empty"


def _legal_characters(value: object) -> str | None:
    return None if _LEGAL_ID.match(str(value)) else "may contain only letters, digits, '.', '_' and '-'"


def _znode_name(value: object) -> str | None:
    return "must not be a relative path" if value in (".", "..") else _legal_characters(value)


def _integer(name: str, default: int | None, low: int, doc: str) -> Setting:
    return Setting(name=name, parse=int, default=default, doc=doc, valid=in_range(low, _INT_MAX))


def _fix(name: str, doc: str) -> Setting:
    return Setting(name=f"fix.{name}", parse=boolean, default=False, doc=doc)


def _word(name: str, words: tuple[str, ...], doc: str) -> Setting:
    """One of some words; the first is the default."""
    return Setting(name=name, parse=str, default=words[0], doc=doc, valid=one_of(*words))


_ALL = (
    Setting(name="zookeeper.connect", parse=str, default="", doc="host:port,...[/chroot]", valid=_required),
    Setting(name="group.id", parse=str, default="", doc="the group", valid=_znode_name),
    Setting(
        name="consumer.id",
        parse=str,
        default=None,
        doc="fixed second half of the consumer id; generated when unset",
        valid=_znode_name,
    ),
    _integer("zookeeper.session.timeout.ms", 6000, 1, "how long ZooKeeper waits for a silent member"),
    _integer(
        "zookeeper.connection.timeout.ms", None, 1, "timeout of the first connection; default: the session timeout"
    ),
    _integer("zookeeper.sync.time.ms", 2000, 0, "how far a follower may lag; used only as the default of the backoff"),
    _integer("rebalance.backoff.ms", None, 0, "wait after each failed attempt; default: zookeeper.sync.time.ms"),
    _integer("rebalance.max.retries", 4, 1, "attempts of a rebalance in all"),
    Setting(
        name="partition.assignment.strategy",
        parse=str,
        default="range",
        doc="`roundrobin`; any other value means range over threads, without an error, as in Kafka",
    ),
    Setting(
        name="auto.commit.enable", parse=boolean, default=True, doc="commit by timer, in R4 of a rebalance and on close"
    ),
    _integer("auto.commit.interval.ms", 60_000, 1, "time between two commits by the timer"),
    Setting(
        name="auto.offset.reset",
        parse=str,
        default="largest",
        doc="where a partition without a usable offset starts: smallest or largest",
        valid=one_of("smallest", "largest"),
    ),
    Setting(
        name="offsets.storage",
        parse=str.lower,
        default="zookeeper",
        doc="where committed offsets are kept: zookeeper or kafka",
        valid=one_of("zookeeper", "kafka"),
    ),
    Setting(
        name="dual.commit.enabled",
        parse=boolean,
        default=None,
        doc="with offsets.storage=kafka: start from the larger stored offset, commit to both; default there: true",
    ),
    _integer(
        "offsets.commit.max.retries",
        5,
        0,
        "retries of a commit to Kafka while closing; fetching offsets is retried forever",
    ),
    _integer("offsets.channel.backoff.ms", 1000, 0, "wait before a retry of offsets in Kafka"),
    _integer(
        "offsets.channel.socket.timeout.ms", 10_000, 1, "timeout of requests to the broker that keeps the offsets"
    ),
    _integer("consumer.timeout.ms", -1, -1, "an iterator that gets no message for this long raises; -1: never"),
    Setting(
        name="exclude.internal.topics",
        parse=boolean,
        default=True,
        doc="a pattern never matches __consumer_offsets",
    ),
    _integer(
        "queued.max.message.chunks",
        2,
        1,
        "fetched chunks queued for a stream; its fetcher waits while the queue is full",
    ),
    _integer("fetch.message.max.bytes", 1_048_576, 1, "maximum bytes of one partition in one fetch"),
    _integer("fetch.min.bytes", 1, 0, "a fetch waits until there are this many bytes"),
    _integer("fetch.wait.max.ms", 100, 0, "but no longer than this"),
    _integer("num.consumer.fetchers", 1, 1, "fetchers per broker"),
    _integer("refresh.leader.backoff.ms", 200, 0, "wait between two searches for leaders"),
    _integer("socket.timeout.ms", 30_000, 1, "timeout of requests to brokers"),
    _integer("socket.receive.buffer.bytes", 65_536, 1, "receive buffer requested for connections to brokers"),
    Setting(
        name="client.id",
        parse=str,
        default=None,
        doc="name sent to brokers; default: group.id",
        valid=_legal_characters,
    ),
    # Where 0.8.2 and 1.1 differ:
    _word(
        "kafka.release",
        ("0.8.2", "1.1"),
        "the consumer to behave as: 0.8.2, or 1.1 in everything that differs, also as default of the next four",
    ),
    Setting(
        name="rebalance.retries.while.closing",
        parse=boolean,
        default=True,
        doc="a shutdown waits for all attempts of a running rebalance (0.8.2.2); false: for the running attempt (1.1)",
    ),
    _word(
        "roundrobin.release",
        ("0.8.2", "1.1"),
        "round robin of 0.8.2 (equal subscriptions only) or of 1.1 (any; another order of partitions)",
    ),
    Setting(
        name="rebalance.listener.in.attempt",
        parse=boolean,
        default=False,
        doc="call the listener as 1.1 does, before the release and before the start; if it raises, the attempt fails",
    ),
    _word(
        "registration.conflict",
        ("wait", "fail"),
        "if another session holds our id: wait for its end, retrying every session timeout (0.8.2), or fail (1.1)",
    ),
    # Where a modern client would differ:
    _word(
        "rebalance.reads",
        ("one-by-one", "together"),
        "how a rebalance sends the reads of a step: one-by-one, each after the answer to the last (original), "
        "or together",
    ),
    _word(
        "zookeeper.reconnect",
        ("java", "soon"),
        "wait before connecting to ZooKeeper again: java (0.1 to 1.1 s at random, with one server 1.1 to 2.1 s, as "
        "the Java client of the original) or soon (at most 0.1 s, as kazoo)",
    ),
    _word(
        "watch.reads",
        ("zkclient", "one"),
        "how to set a watch: zkclient (exists, then data or children, as the original) or one (a single read)",
    ),
    # Weaknesses removed on request:
    _fix("claim.before.offsets", "read offsets after the claim, so that no other member can commit in between"),
    _fix("checked.release", "delete an owner node only if this session created it and it names our thread"),
    _fix("checked.claim", "a node with our thread id counts as ours only if this session created it"),
    _word(
        "fix.commit.fence",
        ("none", "session", "epoch"),
        "fence for commits to ZooKeeper: none; session: that of the claim; epoch: a node that each owner bumps",
    ),
    _fix("stop.on.disconnect", "while ZooKeeper is not reachable, fetch nothing and keep queues empty"),
    _fix("sync.before.reads", "sync() before reading brokers and group, so that no follower is stale"),
    _fix(
        "retry.when.free", "after the last failed attempt, check every backoff whether our part is free, and try again"
    ),
    _integer(
        "fix.quiet.ms", 0, 0, "wait until the group has been quiet for this long before a rebalance (damps the herd)"
    ),
    _fix(
        "skip.unreadable.members", "leave out a member whose znode cannot be read, instead of failing every rebalance"
    ),
    _integer("seed", 0, 0, "seed of the random order in which brokers are tried"),
)

ZK_CONSUMER_SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in _ALL})

#: What `kafka.release=1.1` changes of other settings' defaults; the rest of the differences has no setting of its own.
DEFAULTS_OF_1_1: Mapping[str, object] = MappingProxyType(
    {
        "rebalance.retries.while.closing": False,
        "roundrobin.release": "1.1",
        "rebalance.listener.in.attempt": True,
        "registration.conflict": "fail",
    }
)

#: Settings of the old consumer (0.8 to 1.1) that have no effect here.
KAFKA_OLD_CONSUMER_SETTINGS = frozenset(
    {
        "autooffset.reset",
        "fetch.size",
        "mirror.consumer.numthreads",
        "mirror.topics.blacklist",
        "mirror.topics.whitelist",
        "rebalance.retries.max",
        "socket.buffersize",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """The weaknesses of the original to remove (`fix.*`); none by default."""

    claim_before_offsets: bool = False
    checked_release: bool = False
    checked_claim: bool = False
    commit_fence: str = "none"  #: none, session or epoch
    stop_on_disconnect: bool = False
    sync_before_reads: bool = False
    retry_when_free: bool = False
    quiet_ms: int = 0
    skip_unreadable_members: bool = False


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
        values, warnings = resolve(ZK_CONSUMER_SETTINGS, given, known_elsewhere=KAFKA_OLD_CONSUMER_SETTINGS)
        if values["kafka.release"] == "1.1":
            values |= {name: value for name, value in DEFAULTS_OF_1_1.items() if name not in given}
        for name in ("zookeeper.connect", "group.id"):
            if not values[name]:
                raise ConfigurationError(f"{name} is required. Set {name}=...")
        config = cls._from_values(values)
        _refuse_contradictions(config)
        return config, warnings + _doubtful(config, given)

    @classmethod
    def _from_values(cls, values: Mapping[str, Any]) -> ZkConsumerConfig:
        session_timeout_ms = values["zookeeper.session.timeout.ms"]
        return cls(
            zookeeper_connect=values["zookeeper.connect"],
            group_id=values["group.id"],
            consumer_id=values["consumer.id"],
            client_id=values["client.id"] or values["group.id"],
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=_or(values["zookeeper.connection.timeout.ms"], session_timeout_ms),
            rebalance_backoff_ms=_or(values["rebalance.backoff.ms"], values["zookeeper.sync.time.ms"]),
            rebalance_max_retries=values["rebalance.max.retries"],
            release=values["kafka.release"],
            retry_while_closing=values["rebalance.retries.while.closing"],
            strategy=_strategy(values["partition.assignment.strategy"], values["roundrobin.release"]),
            listener_in_attempt=values["rebalance.listener.in.attempt"],
            registration_conflict=values["registration.conflict"],
            one_read_watches=values["watch.reads"] == "one",
            one_by_one=values["rebalance.reads"] == "one-by-one",
            pauses_to_reconnect=values["zookeeper.reconnect"] == "java",
            exclude_internal_topics=values["exclude.internal.topics"],
            consumer_timeout_ms=None if values["consumer.timeout.ms"] < 0 else values["consumer.timeout.ms"],
            offsets_storage=values["offsets.storage"],
            dual_commit_enabled=_dual(values["offsets.storage"], values["dual.commit.enabled"]),
            offsets_commit_max_retries=values["offsets.commit.max.retries"],
            offsets_channel_backoff_ms=values["offsets.channel.backoff.ms"],
            offsets_channel_socket_timeout_ms=values["offsets.channel.socket.timeout.ms"],
            auto_commit_enable=values["auto.commit.enable"],
            auto_commit_interval_ms=values["auto.commit.interval.ms"],
            auto_offset_reset=values["auto.offset.reset"],
            queued_max_message_chunks=values["queued.max.message.chunks"],
            fetch_message_max_bytes=values["fetch.message.max.bytes"],
            fetch_min_bytes=values["fetch.min.bytes"],
            fetch_wait_max_ms=values["fetch.wait.max.ms"],
            num_consumer_fetchers=values["num.consumer.fetchers"],
            refresh_leader_backoff_ms=values["refresh.leader.backoff.ms"],
            socket_timeout_ms=values["socket.timeout.ms"],
            socket_receive_buffer_bytes=values["socket.receive.buffer.bytes"],
            seed=values["seed"],
            fixes=Fixes(**{name: values[_setting_of(name)] for name in Fixes.__dataclass_fields__}),
        )


def _refuse_contradictions(config: ZkConsumerConfig) -> None:
    if config.fetch_wait_max_ms > config.socket_timeout_ms:
        raise ConfigurationError(
            f"fetch.wait.max.ms={config.fetch_wait_max_ms} is more than socket.timeout.ms="
            f"{config.socket_timeout_ms}: every empty fetch would time out; increase socket.timeout.ms"
        )


def _doubtful(config: ZkConsumerConfig, given: Mapping[str, str]) -> list[str]:
    """Warnings for settings that are legal but probably unintended."""
    warnings = []
    attempts_ms = config.rebalance_max_retries * config.rebalance_backoff_ms
    if attempts_ms <= config.session_timeout_ms:
        warnings.append(
            f"rebalance.max.retries x rebalance.backoff.ms is {attempts_ms} ms, not more than "
            f"zookeeper.session.timeout.ms={config.session_timeout_ms}: a rebalance gives up while a dead member "
            "still owns its partitions"
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
