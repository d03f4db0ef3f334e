"""The settings of a classic consumer: names, Kafka's defaults by release, and what there is to know about them.

This module imports neither sockets nor message schemas, so that a command can list the settings at once. Kafka's
settings that we do not implement are in `kafka_settings`.

Source: ConsumerConfig.java of kafka-clients 0.9.0.0 to 4.1.1; DistributedConfig.java of Connect for the delay.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from coordinator.client.ticket_settings import TICKET_SETTINGS
from coordinator.membership.classic.delayed_leader import PROTOCOL as DELAYED
from kernel.assignors.registry import assignor_name
from kernel.assignors.sticky import EXACT_PARTITIONS_MAX
from kernel.decimals import decimal
from kernel.errors import ConfigurationError
from kernel.settings import Setting, flag, number, one_of, required, text

if TYPE_CHECKING:
    from collections.abc import Mapping

#: isolation.level: READ_COMMITTED returns records of a transaction after its commit (KIP-98).
READ_UNCOMMITTED, READ_COMMITTED = "read_uncommitted", "read_committed"

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_BY_HAND = "consume --design eager --group g --topic orders"


def _instance_id(value: object) -> str | None:
    """As JoinGroupRequest.validateGroupInstanceId of kafka-clients 4.1: what a topic's name may be."""
    if isinstance(value, str) and _NAME.fullmatch(value) and value not in (".", ".."):
        return None
    return "must have 1 to 249 letters, digits, '.', '_' or '-', and not be '.' or '..'"


def _number(name: str, default: int, low: int, doc: str, **known: Any) -> Setting:
    """A number. Kafka's default is the same since 0.9, unless `known` says otherwise."""
    return number(name, default, doc, low=low, **{"kafka": {"0.9": default}} | known)


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
        if not colon or not host or not 0 < (number := decimal(port) or 0) < 65536:
            raise ValueError(f"{part!r} is not an address. Write host:port")
        addresses.append((host.strip("[]"), number))
    return tuple(addresses)


_ALL = (
    Setting(
        name="bootstrap.servers",
        parse=_addresses,
        default=(),
        doc="some brokers, from which the others are found",
        valid=required,
        form="host:port,...",
        kafka={"0.9": "no default", "1.1": None},
        advice="Name several: one that is down is skipped, and the others are found from any that answers.",
        shown_by=f"{_BY_HAND} --bootstrap-server 127.0.0.1:9092",
    ),
    text(
        "group.id",
        "",
        "the name of the group",
        valid=required,
        form="a text",
        kafka={"0.9": None},
        advice="One group for each application that needs every record. Its name also decides which broker "
        "coordinates it.",
        see=("offsets.topic.num.partitions",),
        shown_by=_BY_HAND,
    ),
    text(
        "client.id",
        "rebalance-lab",
        "sent to brokers; ids of members in the classic designs begin with it, unless they are static",
        kafka={"0.9": ""},
        differs="member ids begin with it, and an empty one would make them hard to tell apart",
        advice="Name the application and the host: logs show member ids, and strategies order members by them. In "
        "server an id begins with the group and the host, in consumer it is random.",
        see=("group.instance.id",),
        shown_by="run join --design eager --set client.id=billing",
    ),
    _number(
        "session.timeout.ms",
        45_000,
        1,
        "a member without heartbeats for this long is considered dead",
        kafka={"0.9": 30_000, "0.10.1": 10_000, "3.0": 45_000},
        advice=(
            "Make it three heartbeats or more, within the brokers' bounds. A dead member's partitions stand "
            "still for as long, and a shorter pause costs nobody its place. Make it longer than the brokers' "
            "ZooKeeper session, so that the group outlives its coordinator, and for static members longer "
            "than a restart."
        ),
        see=("heartbeat.interval.ms", "group.min.session.timeout.ms", "max.poll.interval.ms", "group.instance.id"),
        source="KIP-62, KIP-735",
        shown_by="run crash --design eager --set session.timeout.ms=6000 --set heartbeat.interval.ms=2000",
    ),
    _number(
        "heartbeat.interval.ms",
        3_000,
        1,
        "time between two heartbeats",
        advice=(
            "Make it a third of session.timeout.ms or less: a member survives two lost heartbeats. It may learn of a "
            "rebalance this much later. A value that is not below the session is refused."
        ),
        see=("session.timeout.ms",),
        shown_by="run join --design eager --set heartbeat.interval.ms=300",
    ),
    _number(
        "max.poll.interval.ms",
        300_000,
        1,
        "a member without polls for this long leaves the group",
        kafka={"0.10.1": 300_000},
        advice=(
            "Keep it above the slowest batch: max.poll.records times the slowest record. A rebalance waits this long "
            "for a busy member: the whole group in the classic designs, in consumer only those that get its "
            "partitions. Prefer smaller batches."
        ),
        see=("max.poll.records", "session.timeout.ms", "group.server.rebalance.timeout.ms"),
        source="KIP-62",
        shown_by="run slow-member --design eager --set max.poll.interval.ms=8000",
    ),
    text(
        "group.instance.id",
        None,
        "makes the member static: a restart within the session timeout causes no rebalance",
        valid=_instance_id,
        form="letters, digits, '.', '_' and '-', at most 249",
        kafka={"2.3": None},
        advice=(
            "Use a name that outlives the process and is no other's: the host's, or the pod's ordinal, with a "
            "number for each consumer of a process. Not a random one (every restart is a new member), nor one "
            "that processes share: in a classic group the newer fences the older, in consumer it is refused "
            "(UNRELEASED_INSTANCE_ID)."
        ),
        see=("session.timeout.ms",),
        source="KIP-345",
        shown_by="run duplicate-instance-id --design static",
    ),
    _number(
        "max.poll.records",
        500,
        1,
        "records per poll, at most",
        kafka={"0.10.0": 2_147_483_647, "0.10.1": 500},
        advice=(
            "Lower it when a batch takes long: the member polls sooner, and so takes part in a rebalance sooner "
            "(except in server, which rebalances between polls). Records are prefetched, so it costs no requests."
        ),
        see=("max.poll.interval.ms",),
        source="KIP-41",
        shown_by="run scale-out-under-lag --design eager --set max.poll.records=100",
    ),
    Setting(
        name="partition.assignment.strategy",
        parse=_strategies,
        default=("range",),
        doc="the strategies that the member offers, the preferred one first; Kafka's class names work too",
        form="range, roundrobin, sticky, cooperative-sticky, a plug-in, or delayed alone",
        kafka={"0.9": "range", "3.0": "range,cooperative-sticky"},
        differs="a design under comparison offers one strategy; Kafka adds cooperative-sticky for a later migration",
        advice=(
            "Prefer cooperative-sticky: only what moves is stopped. With Kafka's default a group is still "
            "eager. All members need one in common: to change it, use two rolling restarts, the first with "
            "both."
        ),
        see=("scheduled.rebalance.max.delay.ms", "group.server.assignment.strategy"),
        source="KIP-54, KIP-429, KAFKA-13023",
        shown_by="run join --design eager --set partition.assignment.strategy=sticky",
    ),
    _number(
        "scheduled.rebalance.max.delay.ms",
        300_000,
        0,
        "strategy delayed: how long a lost member's partitions wait",
        kafka={"2.3": 300_000},
        advice=(
            "Make it longer than a process needs to come back, and no longer than its partitions may stand still. It "
            "begins when the member's session has ended. Kafka has it in Connect, not in consumers."
        ),
        see=("session.timeout.ms", "group.instance.id"),
        source="KIP-415",
        shown_by="run crash-and-return --design delayed --set scheduled.rebalance.max.delay.ms=6000",
    ),
    _number(
        "sticky.exact.partitions.max",
        EXACT_PARTITIONS_MAX,
        0,
        (
            "sticky and cooperative-sticky, members with different topics: groups with more partitions than "
            "this use a faster algorithm than Kafka's"
        ),
        kafka={},
        advice="No reason to change it, unless a leader's assignment must equal Kafka's in larger groups too.",
        shown_by="run mixed-subscriptions --design cooperative --set sticky.exact.partitions.max=0",
    ),
    flag(
        "enable.auto.commit",
        True,
        "commit automatically: in polls, before a rebalance, and when closing",
        kafka={"0.9": True},
        advice="A poll commits what earlier polls returned: process a whole batch before the next, or commit yourself.",
        see=("auto.commit.interval.ms", "auto.commit.enable"),
        shown_by=f"{_BY_HAND} --set enable.auto.commit=false",
    ),
    _number(
        "auto.commit.interval.ms",
        5_000,
        0,
        "least time between two automatic commits",
        advice="What was delivered since the last commit is delivered again after a crash.",
        see=("enable.auto.commit",),
        shown_by="run crash --design eager --set auto.commit.interval.ms=5000",
    ),
    text(
        "auto.offset.reset",
        "latest",
        "where a partition without a usable offset starts: earliest, latest, or none (an error)",
        valid=one_of("earliest", "latest", "none"),
        kafka={"0.9": "latest"},
        advice="With latest, what comes before the first commit is skipped and, after offsets.retention.minutes "
        "without members, everything that was missed. With earliest the group begins again instead; with none the "
        "application decides.",
        see=("offsets.retention.minutes",),
        shown_by=f"{_BY_HAND} --set auto.offset.reset=earliest",
    ),
    text(
        "isolation.level",
        READ_UNCOMMITTED,
        "read_committed: skip aborted transactions, and stop before the first open one",
        valid=one_of(READ_UNCOMMITTED, READ_COMMITTED),
        kafka={"0.11": READ_UNCOMMITTED},
        advice="Choose read_committed if producers are transactional; a transaction that hangs then stops the "
        "reader until transaction.max.timeout.ms at the latest.",
        see=("transaction.max.timeout.ms",),
        source="KIP-98",
        shown_by="run crash --design eager --set isolation.level=read_committed",
    ),
    _number(
        "fetch.min.bytes",
        1,
        0,
        "how much data a fetch waits for",
        kafka={"0.9": 1_024, "0.10.0": 1},
        advice="A higher value makes fewer and fuller fetches, and delays records by up to fetch.max.wait.ms.",
        see=("fetch.max.wait.ms",),
        shown_by="run join --design eager --set fetch.min.bytes=10000",
    ),
    _number(
        "fetch.max.wait.ms",
        500,
        0,
        "how long a fetch waits for fetch.min.bytes",
        advice="Keep it below request.timeout.ms, or a fetch that finds nothing counts as failed.",
        see=("fetch.min.bytes", "request.timeout.ms", "fetch.wait.max.ms"),
        shown_by="run join --design eager --set fetch.max.wait.ms=100",
    ),
    _number(
        "fetch.max.bytes",
        52_428_800,
        0,
        "maximum size of one fetch",
        kafka={"0.10.1": 52_428_800},
        advice="Lower it where memory is short; then fetches of many partitions take turns.",
        see=("max.partition.fetch.bytes",),
        source="KIP-74",
        shown_by="run join --design eager --set fetch.max.bytes=100000",
    ),
    _number(
        "max.partition.fetch.bytes",
        1_048_576,
        1,
        "maximum size for one partition in one fetch",
        advice="Since 0.10.1 a larger batch is still delivered, alone; in 0.8 such a record could not be read.",
        see=("fetch.max.bytes", "fetch.message.max.bytes"),
        shown_by="run join --design eager --set max.partition.fetch.bytes=65536",
    ),
    _number(
        "request.timeout.ms",
        30_000,
        1,
        "how long to wait for a broker's response",
        kafka={"0.9": 40_000, "0.10.1": 305_000, "2.0": 30_000},
        advice="JoinGroup waits longer by itself. From 0.10.1 to 1.1 this one had to be above max.poll.interval.ms.",
        see=("max.poll.interval.ms", "default.api.timeout.ms", "socket.timeout.ms"),
        source="KIP-62, KIP-266",
        shown_by="run coordinator-failover --design eager --set request.timeout.ms=5000",
    ),
    _number(
        "default.api.timeout.ms",
        60_000,
        1,
        "how long an explicit commit may take, with retries",
        kafka={"2.0": 60_000},
        advice="Make it longer than it takes to replace a coordinator; otherwise explicit commits fail meanwhile.",
        see=("request.timeout.ms",),
        source="KIP-266",
        shown_by="run coordinator-failover --design eager --set default.api.timeout.ms=20000",
    ),
    _number(
        "socket.connection.setup.timeout.ms",
        10_000,
        1,
        "how long to wait for a connection",
        kafka={"2.7": 10_000},
        advice="Lower it if brokers vanish without a reset; not below a slow network's round trip.",
        source="KIP-601",
        shown_by="run coordinator-failover --design eager --set socket.connection.setup.timeout.ms=2000",
    ),
    _number(
        "retry.backoff.ms",
        100,
        0,
        "how long to wait before a retry",
        advice="No reason to change it: longer delays every recovery, shorter repeats requests that fail.",
        shown_by="run coordinator-failover --design eager --set retry.backoff.ms=500",
    ),
    _number(
        "metadata.max.age.ms",
        300_000,
        1,
        "how often to refresh topics and partitions",
        advice=(
            "The leader of a classic group notices new partitions and topics up to this much later. In consumer the "
            "coordinator notices partitions at once, but members new topics of their patterns only when they refresh."
        ),
        shown_by="run partition-increase --design eager --set metadata.max.age.ms=3000",
    ),
    flag(
        "allow.auto.create.topics",
        True,
        "subscribing by name may create a topic, if the broker's auto.create.topics.enable allows it",
        kafka={"2.3": True},
        advice="Choose false if a misspelt name should not become a topic.",
        see=("auto.create.topics.enable",),
        source="KIP-361",
        shown_by=f"{_BY_HAND} --set allow.auto.create.topics=false",
    ),
    flag(
        "exclude.internal.topics",
        True,
        "patterns that members match do not match Kafka's own topics; those that the coordinator matches do",
        kafka={"0.10.0": True},
        advice="No reason to change it: those records are in no application's format.",
        shown_by="consume --design eager --group g --whitelist '.*' --set exclude.internal.topics=false",
    ),
    *TICKET_SETTINGS,
)

CONSUMER_SETTINGS: Mapping[str, Setting] = MappingProxyType({setting.name: setting for setting in _ALL})
