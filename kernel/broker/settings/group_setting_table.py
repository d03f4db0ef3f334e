"""A broker's settings for groups, offsets and transactions. `setting_table` has the others, and all together."""

from __future__ import annotations

from typing import Any

from kernel.settings import INT_MAX, Setting, in_range

_START, _FAILOVER = "broker --set", "run coordinator-failover --design eager"


def _number(name: str, default: int, doc: str, *, low: int = 0, high: int = INT_MAX, **known: Any) -> Setting:
    return Setting(name=name, parse=int, default=default, doc=doc, valid=in_range(low, high), **known)


GROUP_SETTINGS = (
    _number(
        "group.initial.rebalance.delay.ms",
        3_000,
        "how long an empty group waits for more members",
        kafka={"0.11": 3_000},
        advice="About as long as it takes all members to start: one rebalance instead of one for each that comes "
        "later. It begins anew with each member, up to max.poll.interval.ms; a group of one pays it too. 0 in tests.",
        see=("fix.quiet.ms",),
        source="KIP-134",
        shown_by="run mass-start --design eager --set group.initial.rebalance.delay.ms=3000",
    ),
    _number(
        "group.min.session.timeout.ms",
        6_000,
        "the shortest session that a member may ask for",
        kafka={"0.9": 6_000},
        advice="Lower it before you lower a member's session.timeout.ms: otherwise its JoinGroup is refused "
        "(INVALID_SESSION_TIMEOUT).",
        see=("session.timeout.ms", "group.max.session.timeout.ms"),
        shown_by="run crash --design eager --set session.timeout.ms=2000 --set heartbeat.interval.ms=500 "
        "--set group.min.session.timeout.ms=2000",
    ),
    _number(
        "group.max.session.timeout.ms",
        1_800_000,
        "the longest session that a member may ask for",
        kafka={"0.9": 30_000, "0.10.0": 300_000, "2.3": 1_800_000},
        advice="It bounds how long a static member may be away.",
        see=("session.timeout.ms", "group.min.session.timeout.ms"),
        source="KIP-345",
        shown_by="run crash --design eager --set group.max.session.timeout.ms=10000",
    ),
    _number(
        "group.max.size",
        INT_MAX,
        "the most members of a group",
        low=1,
        kafka={"2.2": INT_MAX},
        advice="A bound for applications that start consumers in a loop; who comes too late gets "
        "GROUP_MAX_SIZE_REACHED.",
        source="KIP-389",
        shown_by=f"{_START} group.max.size=2",
    ),
    _number(
        "group.member.metadata.max.bytes",
        0,
        "the largest ids and subscriptions of one member, in bytes; 0 is half of message.max.bytes",
        see=("message.max.bytes", "group.metadata.max.bytes"),
        shown_by=f"{_START} group.member.metadata.max.bytes=1000",
    ),
    _number(
        "group.metadata.max.bytes",
        0,
        "the largest ids and subscriptions of all members of a group together, in bytes; 0 is three quarters of "
        "message.max.bytes",
        see=("message.max.bytes", "group.member.metadata.max.bytes"),
        shown_by=f"{_START} group.metadata.max.bytes=5000",
    ),
    _number(
        "offsets.topic.num.partitions",
        50,
        "partitions of __consumer_offsets",
        low=1,
        kafka={"0.8.2": 50},
        advice="Never change it while groups exist: which partition, and so which broker, coordinates a group is the "
        "hash of its name modulo this number.",
        shown_by=f"{_FAILOVER} --set offsets.topic.num.partitions=4",
    ),
    _number(
        "offsets.topic.replication.factor",
        3,
        "replicas of __consumer_offsets",
        low=1,
        high=32767,
        kafka={"0.8.2": 3},
        advice="With 1, a group has no coordinator while its broker is down. `rebalance-lab broker` starts with 1, so "
        "that one broker is enough.",
        see=("default.replication.factor",),
        shown_by=f"{_FAILOVER} --brokers 3 --set offsets.topic.replication.factor=3",
    ),
    _number(
        "offset.metadata.max.bytes",
        4_096,
        "the longest metadata of a committed offset, in bytes",
        kafka={"0.8.1": 1_024, "0.8.2": 4_096},
        shown_by=f"{_START} offset.metadata.max.bytes=100",
    ),
    _number(
        "offsets.retention.minutes",
        10_080,
        "how long the offsets of an empty group are kept",
        low=1,
        kafka={"0.8.2": 1_440, "2.0": 10_080},
        advice="Longer than the longest time that a group may be down. Afterwards it begins as auto.offset.reset says.",
        see=("auto.offset.reset", "offsets.retention.check.interval.ms"),
        source="KIP-186, KIP-211",
        shown_by=f"{_START} offsets.retention.minutes=1 --set offsets.retention.check.interval.ms=5000",
    ),
    _number(
        "offsets.retention.check.interval.ms",
        600_000,
        "how often expired offsets are looked for",
        low=1,
        kafka={"0.8.2": 600_000},
        see=("offsets.retention.minutes",),
        shown_by=f"{_START} offsets.retention.minutes=1 --set offsets.retention.check.interval.ms=5000",
    ),
    Setting(
        name="group.server.assignment.strategy",
        parse=str,
        default="range",
        doc="server design: the strategy by which this broker assigns",
        form="range, roundrobin, sticky or a plug-in",
        advice="The same on all brokers: any of them may coordinate a group.",
        see=("partition.assignment.strategy", "group.server.rebalance.timeout.ms"),
        shown_by="run join --design server --set group.server.assignment.strategy=sticky",
    ),
    _number(
        "group.server.rebalance.timeout.ms",
        30_000,
        "server design: the time members have to stop or start consuming",
        low=1,
        advice="Above the slowest callback of an application. A round goes on without a member that takes longer.",
        see=("max.poll.interval.ms",),
        shown_by="run pause --design server --set group.server.rebalance.timeout.ms=2000",
    ),
    _number(
        "transaction.max.timeout.ms",
        900_000,
        "the longest transaction timeout that a producer may request",
        low=1,
        kafka={"0.11": 900_000},
        advice="It bounds how long a producer that hangs keeps read_committed consumers waiting.",
        see=("isolation.level",),
        source="KIP-98",
        shown_by=f"{_START} transaction.max.timeout.ms=60000",
    ),
)
