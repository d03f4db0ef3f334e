"""The settings of Kafka's 0.8.2 consumer: names, defaults and what there is to know about them.

Source: ConsumerConfig.scala and ZKConfig (ZkUtils.scala) of 0.8.0 to 1.1.1. No default changed in that time.
"""

from __future__ import annotations

import re
from typing import Any

from kernel.settings import Setting, flag, number, one_of, required, text

#: The last release with this consumer; 2.0.0 removed it (KAFKA-2983).
LAST_RELEASE = "1.1"
#: The characters that Kafka allows in a group id, a znode's name, and in a client id (ConsumerConfig.validateChars).
_LEGAL_ID = re.compile(r"[a-zA-Z0-9._-]+\Z")
_ID = "letters, digits, '.', '_' and '-'"

_BY_HAND = "consume --design zookeeper --group g --topic orders"
_IN_KAFKA = f"{_BY_HAND} --set offsets.storage=kafka"


def _legal_characters(value: object) -> str | None:
    return None if _LEGAL_ID.match(str(value)) else "may contain only letters, digits, '.', '_' and '-'"


def _znode_name(value: object) -> str | None:
    return "must not be a relative path" if value in (".", "..") else _legal_characters(value)


def _integer(name: str, default: int | None, low: int, doc: str, **known: Any) -> Setting:
    """A number. Kafka's default is the same since 0.8, unless `known` says otherwise."""
    facts = {"kafka": {"0.8": default}, "until": LAST_RELEASE} | known
    return number(name, default, doc, low=low, **facts)


KAFKA_SETTINGS = (
    text(
        "zookeeper.connect",
        "",
        "the ZooKeeper servers, and the chroot of the group",
        valid=required,
        form="host:port,...[/chroot]",
        kafka={"0.8": "no default"},
        until=LAST_RELEASE,
        advice="Name all servers of the ensemble, in the same chroot for all members and brokers: a member in another "
        "chroot is in another group.",
        shown_by=f"{_BY_HAND} --zookeeper 127.0.0.1:2181",
    ),
    text(
        "group.id",
        "",
        "the name of the group",
        valid=_znode_name,
        form=_ID,
        kafka={"0.8": "no default"},
        until=LAST_RELEASE,
        advice="Two applications that both need every record need two groups: it names a znode under /consumers.",
        shown_by=_BY_HAND,
    ),
    text(
        "consumer.id",
        None,
        "fixed second half of the consumer id; generated when unset",
        valid=_znode_name,
        form=_ID,
        kafka={"0.8": None},
        until=LAST_RELEASE,
        advice=(
            "Leave it unset: a process that is back before its old session has ended waits for that, and two "
            "with one id block each other."
        ),
        see=("registration.conflict", "group.instance.id"),
        source="KAFKA-992, KAFKA-1387",
        shown_by=f"{_BY_HAND} --set consumer.id=first",
    ),
    _integer(
        "zookeeper.session.timeout.ms",
        6000,
        1,
        "how long ZooKeeper waits for a silent member",
        advice=(
            "Make it longer than the longest garbage collection pause. A dead member's partitions stand still "
            "for as long. ZooKeeper bounds it to 2 to 20 ticks."
        ),
        see=("rebalance.backoff.ms", "rebalance.max.retries", "session.timeout.ms"),
        shown_by="run crash --design zookeeper --set zookeeper.session.timeout.ms=6000 --set rebalance.backoff.ms=2000",
    ),
    _integer(
        "zookeeper.connection.timeout.ms",
        None,
        1,
        "timeout of the first connection; default: the session timeout",
        advice="Make it longer if ZooKeeper starts together with its consumers.",
        see=("zookeeper.session.timeout.ms",),
        shown_by=f"{_BY_HAND} --set zookeeper.connection.timeout.ms=2000",
    ),
    _integer(
        "zookeeper.sync.time.ms",
        2000,
        0,
        "how far a follower may lag; used only as the default of the backoff",
        advice="Set rebalance.backoff.ms instead: nothing is synchronised by this one.",
        see=("rebalance.backoff.ms", "fix.sync.before.reads"),
        shown_by=f"{_BY_HAND} --set zookeeper.sync.time.ms=500",
    ),
    _integer(
        "rebalance.backoff.ms",
        None,
        0,
        "wait after each failed attempt; default: zookeeper.sync.time.ms",
        advice=(
            "Make rebalance.max.retries times this more than the session timeout, by a backoff: otherwise a "
            "member gives up while a dead one still owns its partitions."
        ),
        see=("rebalance.max.retries", "zookeeper.session.timeout.ms", "fix.retry.when.free"),
        shown_by="run rebalance-failed --design zookeeper --set rebalance.backoff.ms=2000",
    ),
    _integer(
        "rebalance.max.retries",
        4,
        1,
        "attempts of a rebalance in all",
        advice=(
            "The first attempt counts: 4 means 4 tries. Of 24 members that started at once, some gave up with "
            "one try, none with four (docs/sweeps.md)."
        ),
        see=("rebalance.backoff.ms", "zookeeper.session.timeout.ms"),
        source="KAFKA-4228",
        shown_by="run rebalance-failed --design zookeeper --set rebalance.max.retries=40",
    ),
    text(
        "partition.assignment.strategy",
        "range",
        "range (over threads) or roundrobin; any other value means range, without an error, as in Kafka",
        form="range or roundrobin",
        kafka={"0.8.2": "range"},
        until=LAST_RELEASE,
        advice=(
            "Give all members the same one: each decides by itself, so members with different strategies claim the "
            "same partitions. To change it, stop the whole group."
        ),
        see=("roundrobin.release",),
        source="KAFKA-687, KAFKA-2434",
        shown_by="run join --design zookeeper --set partition.assignment.strategy=roundrobin",
    ),
    flag(
        "auto.commit.enable",
        True,
        "commit by timer, in R4 of a rebalance and on close",
        kafka={"0.8": True},
        until=LAST_RELEASE,
        advice="With false, a rebalance commits nothing either: whoever gets the partition starts at the last commit "
        "of the application.",
        see=("auto.commit.interval.ms", "enable.auto.commit"),
        shown_by=f"{_BY_HAND} --set auto.commit.enable=false",
    ),
    _integer(
        "auto.commit.interval.ms",
        60_000,
        1,
        "time between two commits by the timer",
        advice="What was delivered since the last commit is delivered again after a crash: with the default up to a "
        "minute of records.",
        see=("auto.commit.enable",),
        shown_by="run crash --design zookeeper --set auto.commit.interval.ms=5000",
    ),
    text(
        "auto.offset.reset",
        "largest",
        "where a partition without a usable offset starts: smallest or largest",
        valid=one_of("smallest", "largest"),
        kafka={"0.8": "largest"},
        until=LAST_RELEASE,
        advice=(
            "With largest, records that come before a partition's first commit are skipped silently. Later consumers "
            "call the two earliest and latest."
        ),
        see=("offsets.retention.minutes",),
        shown_by=f"{_BY_HAND} --set auto.offset.reset=smallest",
    ),
    Setting(
        name="offsets.storage",
        parse=str.lower,
        default="zookeeper",
        doc="where committed offsets are kept: zookeeper or kafka",
        valid=one_of("zookeeper", "kafka"),
        kafka={"0.8.2": "zookeeper"},
        until=LAST_RELEASE,
        advice=(
            "To migrate to the consumers of 0.9, first set kafka and dual.commit.enabled=true in a rolling restart."
        ),
        see=("dual.commit.enabled",),
        source="KAFKA-1012",
        shown_by="run offset-migration --design eager",
    ),
    flag(
        "dual.commit.enabled",
        None,
        (
            "with offsets.storage=kafka, where the default is true: start from the larger stored offset, and commit to "
            "both"
        ),
        kafka={"0.8.2": None},
        until=LAST_RELEASE,
        advice="Keep it until every member of the group stores its offsets in Kafka.",
        see=("offsets.storage", "fix.commit.fence"),
        source="KAFKA-1012",
        shown_by="run offset-migration --design eager",
    ),
    _integer(
        "offsets.commit.max.retries",
        5,
        0,
        "retries of a commit to Kafka while closing; fetching offsets is retried forever",
        kafka={"0.8.2": 5},
        advice=(
            "Raise it if a shutdown must not lose its commit while the broker with the offsets is being "
            "replaced; each retry prolongs it by offsets.channel.backoff.ms."
        ),
        see=("offsets.storage",),
        shown_by=f"{_IN_KAFKA} --set offsets.commit.max.retries=1",
    ),
    _integer(
        "offsets.channel.backoff.ms",
        1000,
        0,
        "wait before a retry of offsets in Kafka",
        kafka={"0.8.2": 1000},
        advice="Make it as long as another broker needs to take over; a shorter one only repeats requests that fail.",
        see=("offsets.storage",),
        shown_by=f"{_IN_KAFKA} --set offsets.channel.backoff.ms=200",
    ),
    _integer(
        "offsets.channel.socket.timeout.ms",
        10_000,
        1,
        "timeout of requests to the broker that keeps the offsets",
        kafka={"0.8.2": 10_000},
        advice=(
            "Lower it if a broker that hangs must not hold up commits; below what a busy broker needs, "
            "commits are sent twice."
        ),
        see=("offsets.storage",),
        shown_by=f"{_IN_KAFKA} --set offsets.channel.socket.timeout.ms=3000",
    ),
    _integer(
        "consumer.timeout.ms",
        -1,
        -1,
        "an iterator that gets no message for this long raises; -1: never",
        advice="Set it if the application has something else to do now and then; it may iterate again afterwards.",
        shown_by=f"{_BY_HAND} --set consumer.timeout.ms=60000",
    ),
    flag(
        "exclude.internal.topics",
        True,
        "a pattern never matches __consumer_offsets",
        kafka={"0.8.2": True},
        until=LAST_RELEASE,
        advice="No reason to change it: those records are in no application's format.",
        shown_by="consume --design zookeeper --group g --whitelist '.*' --set exclude.internal.topics=false",
    ),
    _integer(
        "queued.max.message.chunks",
        2,
        1,
        "fetched chunks queued for a stream; its fetcher waits while the queue is full",
        advice="Each chunk may have fetch.message.max.bytes. What is queued when a rebalance begins is thrown away, "
        "and fetched again by the next owner.",
        see=("fetch.message.max.bytes",),
        shown_by="run join --design zookeeper --set queued.max.message.chunks=10",
    ),
    _integer(
        "fetch.message.max.bytes",
        1_048_576,
        1,
        "maximum bytes of one partition in one fetch",
        advice="Keep it at or above the brokers' message.max.bytes: a larger message stops its partition for good.",
        see=("message.max.bytes", "max.partition.fetch.bytes"),
        shown_by="run join --design zookeeper --set fetch.message.max.bytes=65536",
    ),
    _integer(
        "fetch.min.bytes",
        1,
        0,
        "a fetch waits until there are this many bytes",
        advice="A higher value makes fewer and fuller fetches, and delays records by up to fetch.wait.max.ms.",
        see=("fetch.wait.max.ms",),
        shown_by="run join --design zookeeper --set fetch.min.bytes=10000",
    ),
    _integer(
        "fetch.wait.max.ms",
        100,
        0,
        "how long a fetch waits for fetch.min.bytes",
        advice="A value above socket.timeout.ms is refused, since every empty fetch would time out.",
        see=("fetch.min.bytes", "socket.timeout.ms", "fetch.max.wait.ms"),
        shown_by="run join --design zookeeper --set fetch.wait.max.ms=1000",
    ),
    _integer(
        "num.consumer.fetchers",
        1,
        1,
        "fetchers per broker",
        kafka={"0.8.1": 1},
        advice="Raise it only if one connection to a broker is the bottleneck.",
        shown_by="run join --design zookeeper --set num.consumer.fetchers=2",
    ),
    _integer(
        "refresh.leader.backoff.ms",
        200,
        0,
        "wait between two searches for leaders",
        advice="It decides how soon reading goes on after a broker has died, once another one leads its partitions.",
        shown_by="run coordinator-failover --design zookeeper --set refresh.leader.backoff.ms=1000",
    ),
    _integer(
        "socket.timeout.ms",
        30_000,
        1,
        "timeout of requests to brokers",
        advice=(
            "The partitions of a broker that hangs stand still for this long before another leader is looked for. Keep "
            "it above fetch.wait.max.ms, or fetches time out."
        ),
        see=("fetch.wait.max.ms", "request.timeout.ms"),
        shown_by="run coordinator-failover --design zookeeper --set socket.timeout.ms=3000",
    ),
    _integer(
        "socket.receive.buffer.bytes",
        65_536,
        1,
        "receive buffer requested for connections to brokers",
        advice="Raise it only for links with long round trips and much bandwidth.",
        shown_by="run join --design zookeeper --set socket.receive.buffer.bytes=8192",
    ),
    text(
        "client.id",
        None,
        "name sent to brokers; default: group.id",
        valid=_legal_characters,
        form=_ID,
        kafka={"0.8": None},
        until=LAST_RELEASE,
        advice="Name the application, to tell its requests apart in a broker's log; nothing depends on it.",
        shown_by="run join --design zookeeper --set client.id=billing",
    ),
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
