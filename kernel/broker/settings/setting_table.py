"""A broker's settings: Kafka's names and defaults by release, and what there is to know about them.

Some defaults are ours, to be safe on a shared machine: the broker listens on 127.0.0.1 instead of everywhere,
`log.dirs` has no default, and queued.max.request.bytes is bounded. Kafka's settings that we do not implement are in
`kernel.broker.settings.kafka_settings`; using one is a warning.

Source: KafkaConfig.scala of 0.8.0 to 3.9.1, LogConfig.java of 3.6 to 4.1.1.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kernel.broker.settings.effective_configs import DYNAMIC_BROKER_SETTINGS
from kernel.broker.settings.group_setting_table import GROUP_SETTINGS
from kernel.broker.settings.ticket_settings import TICKET_SETTINGS
from kernel.broker.settings.topic_configs import ConfigType, TopicSetting, problem
from kernel.settings import INT_MAX, Setting, flag, number, text

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Kafka has no limit unless one is set. Ours: 200 MiB of requests, 128 MiB of responses.
REQUESTS_BYTES_MAX, RESPONSES_BYTES_MAX = 209_715_200, 134_217_728

LISTENER = re.compile(r"(?:PLAINTEXT://)?(?P<host>[^:/,]*):(?P<port>[0-9]{1,5})")
_ADDRESS = "PLAINTEXT://HOST:PORT"
#: 3.0 removed what was replaced by listeners, 4.0 ZooKeeper.
_BEFORE_3, _BEFORE_4 = "2.8", "3.9"
_LONG_MAX = 2**63 - 1

_START, _JOIN, _FAILOVER = "broker --set", "run join --design eager --set", "run coordinator-failover --design eager"


def _listener_problem(value: object) -> str | None:
    if value == "" or LISTENER.fullmatch(str(value)):
        return None
    return "only one listener, without encryption, is supported. Write PLAINTEXT://127.0.0.1:9092"


#: What is known of the defaults for topics, by the broker's name.
_OF_TOPICS: Mapping[str, Mapping[str, Any]] = {
    "log.cleanup.policy": {
        "kafka": {"0.8.1": "delete"},
        "advice": "Choose compact if records have keys, and only the newest one of each key matters.",
        "form": "delete, compact, or both with a comma",
    },
    "log.message.timestamp.after.max.ms": {
        "kafka": {"3.6": _LONG_MAX, "4.0": 3_600_000},
        "form": "0 or more",
        "advice": "No reason to change it: it refuses producers whose clocks are ahead; retention goes by them.",
        "source": "KIP-937, KIP-1030",
    },
    "log.message.timestamp.before.max.ms": {
        "kafka": {"3.6": _LONG_MAX},
        "advice": "No reason to change it: a bound refuses whoever writes old records again, for example in a replay.",
        "form": "0 or more",
        "source": "KIP-937",
    },
    "log.message.timestamp.type": {
        "kafka": {"0.10.0": "CreateTime"},
        "form": "CreateTime or LogAppendTime",
        "advice": (
            "Choose LogAppendTime if producers' clocks cannot be trusted and retention goes by the age of records."
        ),
        "source": "KIP-32",
    },
    "log.retention.bytes": {
        "kafka": {"0.8": -1},
        "advice": "Leave it at -1 unless the disk is small: what a group has not read yet is lost to it.",
        "form": "a number; -1 for no limit",
    },
    "log.retention.ms": {
        "kafka": {"0.8.2": None},
        "form": "-1 or more",
        "differs": "Kafka leaves it unset and takes log.retention.hours=168, which is the same",
        "see": ("log.retention.minutes", "log.retention.hours", "log.retention.check.interval.ms"),
        "advice": (
            "Make it longer than a group may be down: what is deleted before it is read is lost, and auto.offset.reset "
            "says where the group begins."
        ),
    },
}
_EXAMPLES = {
    "log.cleanup.policy": "compact",
    "log.message.timestamp.after.max.ms": "60000",
    "log.message.timestamp.before.max.ms": "86400000",
    "log.message.timestamp.type": "LogAppendTime",
    "log.retention.bytes": "100000",
    "log.retention.ms": "60000 --set log.retention.check.interval.ms=5000",
}


def _behind_topics(setting: TopicSetting) -> Setting:
    """The default for topics without this setting; kept as text, checked like the topic's."""
    name = setting.broker_name
    return Setting(
        name=name,
        parse=str,
        default=setting.default,
        doc=f"default {setting.name} of topics: {setting.doc}",
        valid=lambda value: problem(setting.name, str(value)),
        shown_by=f"{_START} {name}={_EXAMPLES[name]}" if name in _EXAMPLES else "",
        **_OF_TOPICS.get(name, {}),
    )


_NETWORK = (
    number(
        "broker.id",
        -1,
        "the broker's number; -1 takes the next free one above 1000",
        low=-1,
        kafka={"0.8": "no default", "0.9": -1},
        advice="Leave it out: a restarted broker takes the id of its data folder.",
        shown_by="broker --port 9093 --set broker.id=2",
    ),
    text(
        "listeners",
        "",
        "the address to listen on; the host has to be a loopback address",
        valid=_listener_problem,
        form=_ADDRESS,
        kafka={"0.9": None, "3.0": "PLAINTEXT://:9092"},
        differs="host.name and port say where: on 127.0.0.1 only, since the machine may be shared",
        advice="Leave it unset and choose a port: nothing is encrypted, and nobody has to log in.",
        shown_by=f"{_START} listeners=PLAINTEXT://127.0.0.1:9093",
    ),
    text(
        "advertised.listeners",
        "",
        "the address that clients connect to instead, for example through a proxy",
        valid=_listener_problem,
        form=_ADDRESS,
        kafka={"0.9": None},
        advice="Set it only if clients have to go through a proxy or a forwarded port.",
        shown_by=f"{_START} advertised.listeners=PLAINTEXT://127.0.0.1:19092",
    ),
    number(
        "port",
        9092,
        "the port if listeners is not set; 0 chooses a free one",
        high=65535,
        kafka={"0.8": 6667, "0.8.2": 9092},
        until=_BEFORE_3,
        advice="Each broker of a machine needs its own.",
        shown_by="broker --port 9093",
    ),
    text(
        "host.name",
        "127.0.0.1",
        "the host if listeners is not set",
        kafka={"0.8": None},
        until=_BEFORE_3,
        differs="Kafka listens on all interfaces",
        advice="There is no reason to change it, except to use another loopback address.",
        shown_by=f"{_START} host.name=127.0.0.1",
    ),
    number(
        "socket.request.max.bytes",
        104_857_600,
        "the largest request, in bytes",
        low=1,
        kafka={"0.8": 104_857_600},
        advice="No reason to change it: a request beyond it closes the connection, and message.max.bytes bounds "
        "what a producer may send.",
        shown_by=f"{_JOIN} socket.request.max.bytes=10000000",
    ),
    number(
        "queued.max.request.bytes",
        REQUESTS_BYTES_MAX,
        "bytes of requests held by all connections together; at least socket.request.max.bytes",
        low=1,
        kafka={"1.0": -1},
        differs="Kafka has no limit; a few clients could fill a shared machine's memory",
        advice="Raise it if producers with large batches wait for each other: beyond it, the broker reads no "
        "further until requests are answered.",
        see=("socket.request.max.bytes",),
        source="KIP-72",
        shown_by=f"{_JOIN} queued.max.request.bytes=104857600",
    ),
    number(
        "queued.max.response.bytes",
        RESPONSES_BYTES_MAX,
        "bytes of responses not yet read by clients, of all connections together",
        low=1,
        advice="No reason to change it: beyond it, the broker reads no further requests until clients have read "
        "their responses.",
        shown_by=f"{_JOIN} queued.max.response.bytes=10000000",
    ),
    number(
        "max.connections",
        INT_MAX,
        "the most connections at a time",
        kafka={"2.3": INT_MAX},
        advice="A member has a connection to its coordinator and to each broker that it reads from.",
        source="KIP-402",
        shown_by=f"{_START} max.connections=100",
    ),
    number(
        "connections.max.idle.ms",
        600_000,
        "idle connections are closed after this time",
        low=-1,
        kafka={"0.8.2": 600_000},
        advice="Make it longer than producers may have nothing to send; a client that is cut off connects again.",
        shown_by=f"{_JOIN} connections.max.idle.ms=5000",
    ),
    text(
        "zookeeper.connect",
        "",
        "the ZooKeeper servers, and the chroot of the cluster",
        form="host:port,...[/chroot]",
        kafka={"0.8": "no default", "2.8": None},
        until=_BEFORE_4,
        advice="Use the same servers and chroot for all brokers of a cluster, and for consumers that use ZooKeeper.",
        shown_by="broker --zookeeper 127.0.0.1:2181",
    ),
    number(
        "zookeeper.session.timeout.ms",
        18_000,
        "the broker's session: after this time its death is noticed",
        low=1,
        kafka={"0.8": 6_000, "2.5": 18_000},
        until=_BEFORE_4,
        advice=(
            "Keep it below the members' session.timeout.ms: then a group outlives its coordinator's death without a "
            "rebalance."
        ),
        see=("session.timeout.ms",),
        source="KIP-537",
        shown_by=f"{_FAILOVER} --set zookeeper.session.timeout.ms=6000",
    ),
    number(
        "zookeeper.connection.timeout.ms",
        18_000,
        "how long the start waits for ZooKeeper",
        low=1,
        kafka={"0.8": None},
        until=_BEFORE_4,
        differs="where Kafka takes the session timeout: the same value",
        advice=(
            "Make it longer if ZooKeeper starts together with the brokers; one that cannot reach it ends with an error."
        ),
        shown_by=f"{_START} zookeeper.connection.timeout.ms=3000",
    ),
)

_TOPICS = (
    text(
        "log.dirs",
        "",
        "the data folder, which all brokers of a cluster share",
        form="a folder",
        kafka={"0.8": "/tmp/kafka-logs"},
        differs="the command chooses a folder in its state folder",
        advice="One folder for all brokers of a cluster, on a local file system: SQLite needs its locks. A broker with"
        " another one does not start.",
        shown_by="broker --folder data",
    ),
    number(
        "num.partitions",
        1,
        "partitions of a topic created without a number",
        low=1,
        kafka={"0.8": 1},
        advice="Use as many as the most members that may share the topic. `rebalance-lab broker` starts with 6.",
        shown_by=f"{_START} num.partitions=12",
    ),
    number(
        "default.replication.factor",
        1,
        "replicas of a topic created without a number",
        low=1,
        high=32767,
        kafka={"0.8": 1},
        advice="Use two or more: with one, a broker's death stops its partitions until it is back.",
        see=("offsets.topic.replication.factor",),
        shown_by=f"{_FAILOVER} --brokers 3 --set default.replication.factor=3",
    ),
    flag(
        "auto.create.topics.enable",
        True,
        "create an unknown topic when Metadata asks for it",
        kafka={"0.8": True},
        advice=(
            "Choose false if a misspelt topic should be an error, not an empty topic with num.partitions partitions."
        ),
        see=("allow.auto.create.topics", "num.partitions"),
        shown_by=f"{_START} auto.create.topics.enable=false",
    ),
    flag(
        "delete.topic.enable",
        True,
        "DeleteTopics is allowed",
        kafka={"0.8.1": False, "1.0": True},
        advice="No reason to change it, unless nobody may delete topics: a deleted topic takes its committed "
        "offsets with it.",
        shown_by=f"{_START} delete.topic.enable=false",
    ),
    number(
        "message.max.bytes",
        1_048_588,
        "the largest record batch, in bytes",
        kafka={"0.8": 1_000_012, "2.5": 1_048_588},
        advice=(
            "Keep it at or below the fetch.message.max.bytes of `zookeeper` members. A group is stored as one record: "
            "a large one with long subscriptions needs more."
        ),
        see=("fetch.message.max.bytes", "group.metadata.max.bytes"),
        shown_by=f"{_START} message.max.bytes=65536",
    ),
    *(_behind_topics(setting) for setting in DYNAMIC_BROKER_SETTINGS.values() if setting.type is not ConfigType.INT),
    number(
        "log.retention.minutes",
        -1,
        "retention of topics if log.retention.ms is not set",
        low=-1,
        kafka={"0.8.1": None},
        differs="-1 says that it is not set",
        advice="Set log.retention.ms instead: it wins over this one.",
        see=("log.retention.ms",),
        shown_by=f"{_START} log.retention.minutes=1",
    ),
    number(
        "log.retention.hours",
        168,
        "retention of topics if neither of the other two is set",
        low=-1,
        kafka={"0.8": 168},
        advice="Set log.retention.ms instead: it wins over this one.",
        see=("log.retention.ms",),
        shown_by=f"{_START} log.retention.hours=1",
    ),
    number(
        "log.retention.check.interval.ms",
        300_000,
        "how often retention is checked",
        low=1,
        kafka={"0.8.1": 300_000},
        advice="Records live longer by up to this time. Shorten it only to watch retention at work.",
        see=("log.retention.ms",),
        shown_by=f"{_START} log.retention.ms=60000 --set log.retention.check.interval.ms=5000",
    ),
    number(
        "fetch.max.bytes",
        57_671_680,
        "the most that one Fetch returns, in bytes",
        low=1024,
        kafka={"2.5": 57_671_680},
        advice="Lower it to bound what one fetch can make the broker hold; a large lag is then read in more steps.",
        source="KIP-541",
        shown_by="run scale-out-under-lag --design eager --set fetch.max.bytes=100000",
    ),
)

BROKER_SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {setting.name: setting for setting in (*_NETWORK, *_TOPICS, *GROUP_SETTINGS, *TICKET_SETTINGS)}
)
