"""A broker's settings for groups, offsets and transactions. `setting_table` has the others, and all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.settings import INT_MAX, Setting, number, one_of, text
from kernel.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable

_START, _FAILOVER = "broker --set", "run coordinator-failover --design eager"
_CRASH, _JOIN = "run crash --design consumer --set", "run join --design consumer --set"

#: The words of group.coordinator.rebalance.protocols, group.consumer.assignors and group.consumer.migration.policy.
CLASSIC_PROTOCOL, CONSUMER_PROTOCOL = "classic", "consumer"
_PROTOCOLS = (CLASSIC_PROTOCOL, CONSUMER_PROTOCOL, "streams", "share")
_ASSIGNORS = ("uniform", "range")
_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")


def _words(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """A parser of lists of these words."""

    def parse(text: str) -> tuple[str, ...]:
        words = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
        for word in words:
            if word not in known:
                raise ValueError(f"{word!r} is none of {', '.join(known)}{did_you_mean(word, known)}")
        return words

    return parse


def _protocols_problem(value: object) -> str | None:
    assert isinstance(value, tuple)
    if CLASSIC_PROTOCOL in value:
        return None
    return "the classic protocol cannot be disabled. Write classic or classic,consumer"


def _assignors_problem(value: object) -> str | None:
    return None if value else f"name at least one of {', '.join(_ASSIGNORS)}"


_SESSIONS = "group.consumer.session.timeout.ms"
_HEARTBEATS = "group.consumer.heartbeat.interval.ms"

#: Of groups whose members let the coordinator assign (KIP-848).
_CONSUMER_GROUPS = (
    Setting(
        name="group.coordinator.rebalance.protocols",
        parse=_words(_PROTOCOLS),
        default=(CLASSIC_PROTOCOL, CONSUMER_PROTOCOL),
        doc="the protocols of groups that this broker coordinates; without consumer, it answers members of that "
        "protocol with UNSUPPORTED_VERSION",
        valid=_protocols_problem,
        form="classic or classic,consumer; streams and share change nothing",
        kafka={"3.7": "classic", "4.0": "classic,consumer", "4.1": "classic,consumer,streams"},
        differs="there are no streams groups here",
        advice=(
            "Use the same on all brokers: any of them may coordinate a group. Without consumer, clients with "
            "group.protocol=consumer fail at their first heartbeat, and do not fall back to the classic protocol."
        ),
        see=("group.consumer.migration.policy",),
        source="KIP-848",
        shown_by=f"{_START} group.coordinator.rebalance.protocols=classic",
    ),
    number(
        _SESSIONS,
        45_000,
        "how long a member of a consumer group may be silent before it is removed",
        low=1,
        kafka={"3.5": 45_000},
        advice=(
            "Make it three heartbeats or more. Members do not choose it: the broker does, for all groups that have no "
            "consumer.session.timeout.ms of their own."
        ),
        see=(_HEARTBEATS, "group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
        source="KIP-848",
        shown_by=f"run crash --design consumer --set {_SESSIONS}=6000",
    ),
    number(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "the shortest session of a consumer group",
        low=1,
        kafka={"3.5": 45_000},
        advice="Lower it before you lower group.consumer.session.timeout.ms.",
        see=(_SESSIONS, "group.consumer.max.session.timeout.ms"),
        source="KIP-848",
        shown_by=f"{_CRASH} group.consumer.min.session.timeout.ms=6000 --set {_SESSIONS}=6000",
    ),
    number(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "the longest session of a consumer group",
        low=1,
        kafka={"3.5": 60_000},
        advice="Raise it before you raise group.consumer.session.timeout.ms; it bounds how long a dead member's "
        "partitions can stand still.",
        see=(_SESSIONS, "group.consumer.min.session.timeout.ms"),
        source="KIP-848",
        shown_by=f"{_CRASH} group.consumer.max.session.timeout.ms=6000 --set {_SESSIONS}=6000",
    ),
    number(
        _HEARTBEATS,
        5_000,
        "how often members of consumer groups should send heartbeats",
        low=1,
        kafka={"3.5": 5_000},
        advice="A member learns what it has to give up, and what it may take, from answers to its heartbeats: a "
        "rebalance takes two or three intervals. Each heartbeat costs the broker time.",
        see=(_SESSIONS, "group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
        source="KIP-848",
        shown_by=f"run join --design consumer --set {_HEARTBEATS}=300",
    ),
    number(
        "group.consumer.min.heartbeat.interval.ms",
        5_000,
        "the shortest heartbeat interval of a consumer group",
        low=1,
        kafka={"3.5": 5_000},
        advice="Lower it before you lower group.consumer.heartbeat.interval.ms.",
        see=(_HEARTBEATS, "group.consumer.max.heartbeat.interval.ms"),
        source="KIP-848",
        shown_by=f"{_JOIN} group.consumer.min.heartbeat.interval.ms=300 --set {_HEARTBEATS}=300",
    ),
    number(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "the longest heartbeat interval of a consumer group",
        low=1,
        kafka={"3.5": 15_000},
        advice="Raise it before you raise group.consumer.heartbeat.interval.ms; it bounds how long a member can "
        "take to hear of a change.",
        see=(_HEARTBEATS, "group.consumer.min.heartbeat.interval.ms"),
        source="KIP-848",
        shown_by=f"{_JOIN} group.consumer.max.heartbeat.interval.ms=2000 --set {_HEARTBEATS}=2000",
    ),
    number(
        "group.consumer.max.size",
        INT_MAX,
        "the most members of a consumer group",
        low=1,
        kafka={"3.5": INT_MAX},
        advice="A bound for applications that start consumers in a loop.",
        see=("group.max.size",),
        source="KIP-848",
        shown_by=f"{_START} group.consumer.max.size=2",
    ),
    Setting(
        name="group.consumer.assignors",
        parse=_words(_ASSIGNORS),
        default=_ASSIGNORS,
        doc="the coordinator's assignors; the first one assigns to groups whose members prefer none",
        valid=_assignors_problem,
        form="uniform, range or both, in order of preference",
        kafka={"3.5": "", "3.7": "classes of uniform and range", "4.0": "uniform,range"},
        advice=(
            "Use the same ones on all brokers. uniform balances all topics together and keeps partitions where "
            "they are; range gives each member the same partition numbers of every topic, for joins."
        ),
        see=("group.server.assignment.strategy",),
        source="KIP-848",
        shown_by="run rolling-restart --design consumer --set group.consumer.assignors=range,uniform",
    ),
    Setting(
        name="group.consumer.migration.policy",
        parse=str.lower,
        default="bidirectional",
        doc="whether a classic group becomes a consumer group when a member of that protocol joins (upgrade), and "
        "returns when its last one leaves (downgrade)",
        valid=one_of(*_POLICIES),
        kafka={"3.8": "disabled", "4.0": "bidirectional"},
        advice="An empty group changes its type under every policy.",
        see=("group.coordinator.rebalance.protocols",),
        source="KIP-848",
        shown_by="run group-protocol-migration --design consumer --set group.consumer.migration.policy=bidirectional",
    ),
    number(
        "group.consumer.regex.refresh.interval.ms",
        600_000,
        "how often the topics that match regular expressions of consumer groups are searched again, at the latest",
        low=10_000,
        kafka={"4.1": 600_000},
        advice=(
            "A group with a regular expression may notice a new topic this much later. A shorter interval costs more "
            "searches in all topics."
        ),
        source="KIP-848",
        shown_by=f"{_START} group.consumer.regex.refresh.interval.ms=10000",
    ),
)

GROUP_SETTINGS = (
    number(
        "group.initial.rebalance.delay.ms",
        3_000,
        "how long an empty group of the classic protocol waits for more members",
        kafka={"0.11": 3_000},
        advice=(
            "Make it as long as all members take to start: one rebalance then, instead of one for each that "
            "comes later. Each member prolongs it, up to max.poll.interval.ms; a group of one waits, too. 0 "
            "in tests."
        ),
        see=("fix.quiet.ms",),
        source="KIP-134",
        shown_by="run mass-start --design eager --set group.initial.rebalance.delay.ms=3000",
    ),
    number(
        "group.min.session.timeout.ms",
        6_000,
        "the shortest session that a member may ask for",
        kafka={"0.9": 6_000},
        advice=(
            "Lower it before a member's session.timeout.ms: otherwise its JoinGroup is refused "
            "(INVALID_SESSION_TIMEOUT)."
        ),
        see=("session.timeout.ms", "group.max.session.timeout.ms"),
        shown_by="run crash --design eager --set session.timeout.ms=2000 --set heartbeat.interval.ms=500 "
        "--set group.min.session.timeout.ms=2000",
    ),
    number(
        "group.max.session.timeout.ms",
        1_800_000,
        "the longest session that a member may ask for",
        kafka={"0.9": 30_000, "0.10.0": 300_000, "2.3": 1_800_000},
        advice="It bounds how long a static member may be away.",
        see=("session.timeout.ms", "group.min.session.timeout.ms"),
        source="KIP-345",
        shown_by="run crash --design eager --set group.max.session.timeout.ms=10000",
    ),
    number(
        "group.max.size",
        INT_MAX,
        "the most members of a group of the classic protocol",
        low=1,
        kafka={"2.2": INT_MAX},
        advice=(
            "A bound for applications that start consumers in a loop; a member too many gets GROUP_MAX_SIZE_REACHED."
        ),
        source="KIP-389",
        shown_by=f"{_START} group.max.size=2",
    ),
    number(
        "group.member.metadata.max.bytes",
        0,
        "the largest ids and subscriptions of one member, in bytes; 0 is half of message.max.bytes",
        advice="Raise it only if members subscribe to thousands of topics; what is larger is refused.",
        see=("message.max.bytes", "group.metadata.max.bytes"),
        shown_by=f"{_START} group.member.metadata.max.bytes=1000",
    ),
    number(
        "group.metadata.max.bytes",
        0,
        "the largest ids and subscriptions of all members of a group together, in bytes; 0 is three quarters of "
        "message.max.bytes",
        advice="No reason to change it: a group must fit into one record, so raise message.max.bytes first; a "
        "member too many is refused.",
        see=("message.max.bytes", "group.member.metadata.max.bytes"),
        shown_by=f"{_START} group.metadata.max.bytes=5000",
    ),
    number(
        "offsets.topic.num.partitions",
        50,
        "partitions of __consumer_offsets",
        low=1,
        kafka={"0.8.2": 50},
        advice="Never change it while groups exist: which partition, and so which broker, coordinates a group is the "
        "hash of its name modulo this number.",
        shown_by=f"{_FAILOVER} --set offsets.topic.num.partitions=4",
    ),
    number(
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
    number(
        "offset.metadata.max.bytes",
        4_096,
        "the longest metadata of a committed offset, in bytes",
        kafka={"0.8.1": 1_024, "0.8.2": 4_096},
        advice="No reason to change it: applications that commit longer notes get OFFSET_METADATA_TOO_LARGE.",
        shown_by=f"{_START} offset.metadata.max.bytes=100",
    ),
    number(
        "offsets.retention.minutes",
        10_080,
        "how long the offsets of an empty group are kept",
        low=1,
        kafka={"0.8.2": 1_440, "2.0": 10_080},
        advice="Make it longer than a group may be down: afterwards it begins as auto.offset.reset says.",
        see=("auto.offset.reset", "offsets.retention.check.interval.ms"),
        source="KIP-186, KIP-211",
        shown_by=f"{_START} offsets.retention.minutes=1 --set offsets.retention.check.interval.ms=5000",
    ),
    number(
        "offsets.retention.check.interval.ms",
        600_000,
        "how often expired offsets are looked for",
        low=1,
        kafka={"0.8.2": 600_000},
        advice="Offsets live longer by up to this time. Shorten it only to watch expiry at work.",
        see=("offsets.retention.minutes",),
        shown_by=f"{_START} offsets.retention.minutes=1 --set offsets.retention.check.interval.ms=5000",
    ),
    text(
        "group.server.assignment.strategy",
        "range",
        "server design: the strategy by which this broker assigns",
        form="range, roundrobin, sticky or a plug-in",
        advice="Use the same on all brokers: any of them may coordinate a group.",
        see=("partition.assignment.strategy", "group.server.rebalance.timeout.ms"),
        shown_by="run join --design server --set group.server.assignment.strategy=sticky",
    ),
    number(
        "group.server.rebalance.timeout.ms",
        30_000,
        "server design: the time members have to stop or start consuming",
        low=1,
        advice=(
            "Keep it above the slowest callback of an application. A round goes on without a member that takes longer."
        ),
        see=("max.poll.interval.ms",),
        shown_by="run pause --design server --set group.server.rebalance.timeout.ms=2000",
    ),
    number(
        "transaction.max.timeout.ms",
        900_000,
        "the longest transaction timeout that a producer may request",
        low=1,
        kafka={"0.11": 900_000},
        advice="It bounds how long a producer that hangs keeps read_committed consumers waiting.",
        see=("isolation.level",),
        source="KIP-98",
        shown_by="run read-process-write --design eager --set transaction.max.timeout.ms=60000",
    ),
    *_CONSUMER_GROUPS,
)
