"""Requests sent to a real broker and to ours, one after the other: administration, and refusals that may differ.

A request is (label, API, version, body). In bodies "@a" is topic `a` under the run's prefix, "#a" its topic id,
"now+5" and "now-5" are milliseconds from the run's clock, and {"records": [...]} is a batch
(`tests.kernel.broker.asking`). The order matters: later requests depend on what earlier ones changed or failed to
change.
"""

from __future__ import annotations

from typing import Any

TOPIC, BROKER, GROUP = 2, 4, 32  #: types of resources
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
HOUR_MS = 3_600_000
NO_ID = "00000000-0000-0000-0000-000000000000"
STRANGE_ID = "11111111-2222-4333-8444-555555555555"

Ask = tuple[str, str, int, dict[str, Any]]


def create(label: str, *topics: dict[str, Any], version: int = 7, **more: Any) -> Ask:
    filled = [{"num_partitions": 1, "replication_factor": 1, **topic} for topic in topics]
    return (f"create: {label}", "CreateTopics", version, {"topics": filled, "timeout": 10_000, **more})


def metadata(label: str, version: int, *topics: dict[str, Any], **more: Any) -> Ask:
    body = {"topics": list(topics), "allow_auto_topic_creation": False, **more}
    return (f"metadata: {label}", "Metadata", version, body)


def deletion(label: str, *topics: dict[str, Any]) -> Ask:
    return (f"delete: {label}", "DeleteTopics", 6, {"topics": list(topics), "timeout": 10_000})


def fetch(label: str, version: int, **given: Any) -> Ask:
    partition = {"partition": 0, "fetch_offset": 0, "current_leader_epoch": -1, "partition_max_bytes": 1000}
    top: dict[str, Any] = {key: given.pop(key) for key in ("session_id", "session_epoch") if key in given}
    topic = {"topic_id": given.pop("topic_id")} if "topic_id" in given else {"topic": given.pop("topic", "@a")}
    body = {
        "replica_id": -1,
        "max_wait": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "topics": [{**topic, "partitions": [{**partition, **given}]}],
        **top,
    }
    if version >= 15:
        del body["replica_id"]
    return (f"fetch: {label}", "Fetch", version, body)


def listed(version: int, timestamp: Any, topic: str = "@a") -> Ask:
    partition = {"partition_index": 0, "timestamp": timestamp}
    if version >= 4:
        partition["current_leader_epoch"] = -1
    body: dict[str, Any] = {"replica_id": -1, "topics": [{"name": topic, "partitions": [partition]}]}
    if version >= 2:
        body["isolation_level"] = 0
    return (f"list offsets: {timestamp} of {topic} in version {version}", "ListOffsets", version, body)


def produce(label: str, topic: str, *records: dict[str, Any], version: int = 9, **batch: Any) -> Ask:
    data = {"name": topic, "partition_data": [{"index": 0, "records": {"records": list(records), **batch}}]}
    return (f"produce: {label}", "Produce", version, {"acks": -1, "timeout": 5000, "topic_data": [data]})


def record(key: str | None = "k", value: str = "v", ms: Any = "now+0") -> dict[str, Any]:
    return {"key": key, "value": value, "ms": ms}


def described(label: str, *resources: tuple[int, str, Any], synonyms: bool = True, version: int = 4) -> Ask:
    rows = [{"resource_type": t, "resource_name": n, "configuration_keys": keys} for t, n, keys in resources]
    body = {"resources": rows, "include_synonyms": synonyms}
    if version >= 3:
        body["include_documentation"] = True
    return (f"describe configs: {label}", "DescribeConfigs", version, body)


def altered(label: str, *resources: tuple[int, str, list[tuple[str, int, Any]]], only: bool = False) -> Ask:
    rows = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "config_operation": how, "value": value} for key, how, value in configs],
        }
        for kind, name, configs in resources
    ]
    return (f"alter: {label}", "IncrementalAlterConfigs", 1, {"resources": rows, "validate_only": only})


def replaced(label: str, kind: int, name: str, configs: dict[str, Any], *, only: bool = False) -> Ask:
    rows = [{"name": key, "value": value} for key, value in configs.items()]
    body = {"resources": [{"resource_type": kind, "resource_name": name, "configs": rows}], "validate_only": only}
    return (f"replace configs: {label}", "AlterConfigs", 2, body)


def records_deleted(label: str, topic: str, partition: int, offset: int) -> Ask:
    row = {"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}
    return (f"delete records: {label}", "DeleteRecords", 2, {"topics": [row], "timeout": 5000})


def partitions_described(label: str, *topics: str, limit: int = 2000, cursor: Any = None) -> Ask:
    body = {"topics": [{"name": name} for name in topics], "response_partition_limit": limit, "cursor": cursor}
    return (f"describe partitions: {label}", "DescribeTopicPartitions", 0, body)


def elected(label: str, kind: int, topics: Any) -> Ask:
    body = {"election_type": kind, "topic_partitions": topics, "timeout": 5000}
    return (f"elect: {label}", "ElectLeaders", 2, body)


def listed_resources(label: str, version: int, *kinds: int) -> Ask:
    body: dict[str, Any] = {"resource_types": list(kinds)} if version else {}
    return (f"list config resources: {label}", "ListConfigResources", version, body)


def configs(*pairs: tuple[str, str | None]) -> list[dict[str, str | None]]:
    return [{"name": name, "value": value} for name, value in pairs]


CONFIGS = configs(("retention.ms", "60000"), ("cleanup.policy", "compact"))
LAGS = configs(("min.compaction.lag.ms", "5"), ("max.compaction.lag.ms", "4"))

CREATING = (
    create("answers its settings", {"name": "@a", "num_partitions": 2}),
    create("with settings", {"name": "@c", "configs": CONFIGS}, version=5),
    create("version 4", {"name": "@v4"}, version=4),
    create("validate only", {"name": "@vo", "configs": CONFIGS[:1]}, validate_only=True),
    create("named twice", {"name": "@twice"}, {"name": "@twice"}, {"name": "@once"}),
    create("exists", {"name": "@a"}),
    create("unknown setting", {"name": "@bad", "configs": configs(("nonesuch", "1"))}),
    create("wrong value", {"name": "@bad", "configs": configs(("retention.ms", "abc"))}),
    create("null value", {"name": "@bad", "configs": configs(("retention.ms", None))}),
    create("lags in conflict", {"name": "@bad", "configs": LAGS}),
    create("exists and wrong value", {"name": "@a", "configs": configs(("retention.ms", "abc"))}),
    create("invalid name", {"name": "no/name"}),
    create("too many replicas", {"name": "@bad", "replication_factor": 3}),
    create("no partitions", {"name": "@bad", "num_partitions": 0}),
    create("append time", {"name": "@lat", "configs": configs(("message.timestamp.type", "LogAppendTime"))}),
    create("small", {"name": "@small", "configs": configs(("max.message.bytes", "200"))}),
    create("old refused", {"name": "@old", "configs": configs(("message.timestamp.before.max.ms", "600000"))}),
)  # fmt: skip

METADATA = (
    metadata("by id with an empty name", 12, {"topic_id": "#a", "name": ""}),
    metadata("by id with a null name", 12, {"topic_id": "#a", "name": None}),
    metadata("by id and name", 12, {"topic_id": "#a", "name": "@a"}),
    metadata("by the id of one and the name of another", 12, {"topic_id": "#a", "name": "@c"}),
    metadata("by a strange id", 12, {"topic_id": STRANGE_ID, "name": None}),
    metadata("by a strange id and a name", 12, {"topic_id": STRANGE_ID, "name": "@a"}),
    metadata("by id in version 11", 11, {"topic_id": "#a", "name": "@a"}),
    metadata("without id and name", 12, {"topic_id": NO_ID, "name": ""}),
    metadata("null name, no id", 12, {"topic_id": NO_ID, "name": None}),
    metadata("empty name", 9, {"name": ""}),
    metadata("invalid name", 9, {"name": "no/name"}),
    metadata("unknown name", 9, {"name": "@nobody"}),
    metadata("the same twice", 9, {"name": "@a"}, {"name": "@a"}),
    metadata("no topics", 9),
    metadata("with a topic's operations", 12, {"name": "@a"}, include_topic_authorized_operations=True),
    metadata("unknown, with operations", 12, {"name": "@nobody"}, include_topic_authorized_operations=True),
    metadata("with all operations", 8, {"name": "@a"}, include_topic_authorized_operations=True,
             include_cluster_authorized_operations=True),
    metadata("creates", 9, {"name": "@auto"}, allow_auto_topic_creation=True),
    metadata("creates an invalid name", 9, {"name": "no/name"}, allow_auto_topic_creation=True),
)  # fmt: skip

DELETING = (
    deletion("by name and id", {"name": "@once", "topic_id": "#once"}),
    deletion("by neither", {"name": None, "topic_id": NO_ID}),
    deletion("unknown id", {"name": None, "topic_id": STRANGE_ID}),
    deletion("unknown name", {"name": "@nobody", "topic_id": NO_ID}),
    deletion("invalid name", {"name": "no/name", "topic_id": NO_ID}),
    deletion("named twice", {"name": "@once", "topic_id": NO_ID}, {"name": "@once", "topic_id": NO_ID}),
    deletion("identified twice", {"name": None, "topic_id": "#once"}, {"name": None, "topic_id": "#once"}),
    deletion(
        "by name and by id in one request", {"name": "@once", "topic_id": NO_ID}, {"name": None, "topic_id": "#once"}
    ),
    metadata("is still there", 12, {"name": "@once"}),
    deletion("by id", {"name": None, "topic_id": "#v4"}),
    ("grow: named twice", "CreatePartitions", 3,
     {"topics": [{"name": "@a", "count": 3}, {"name": "@a", "count": 4}], "timeout": 5000}),
    ("grow: fewer", "CreatePartitions", 3, {"topics": [{"name": "@a", "count": 1}], "timeout": 5000}),
    ("grow: as many", "CreatePartitions", 3, {"topics": [{"name": "@a", "count": 2}], "timeout": 5000}),
    ("grow: unknown", "CreatePartitions", 3, {"topics": [{"name": "@nobody", "count": 2}], "timeout": 5000}),
)  # fmt: skip

RECORDS = (
    produce("plain", "@a", record(), record(value="w")),
    produce("ten hours ahead", "@a", record(ms=f"now+{10 * HOUR_MS}")),
    produce("half an hour ahead", "@a", record(ms=f"now+{HOUR_MS // 2}")),
    produce("one of two ahead", "@a", record(), record(ms=f"now+{10 * HOUR_MS}")),
    produce("one of two ahead, packed", "@a", record(), record(ms=f"now+{10 * HOUR_MS}"), codec="gzip"),
    produce("long ago", "@a", record(ms=1000)),
    produce("long ago where that is refused", "@old", record(ms="now-3600000")),
    produce("now where long ago is refused", "@old", record()),
    produce("log append time", "@lat", record(ms=1000), record(ms=f"now+{10 * HOUR_MS}")),
    produce("log append time, packed", "@lat", record(ms=1000), codec="gzip"),
    produce("null key in a compacted topic", "@c", record(key=None)),
    produce("one null key of two, packed", "@c", record(), record(key=None), codec="gzip"),
    produce("keys in a compacted topic", "@c", record()),
    produce("above max.message.bytes", "@small", record(value="x" * 200)),
    produce("below max.message.bytes", "@small", record(value="x" * 20)),
    *(listed(10, timestamp) for timestamp in (-1, -2, -3, -4, -5)),
    *(listed(version, timestamp) for version, timestamp in (
        (1, -3), (6, -3), (7, -3), (7, -4), (8, -4), (8, -5), (9, -5), (9, -6), (10, -6), (10, -7), (1, -7), (10, -100),
    )),
    listed(10, "now-100000"),
    listed(10, -3, "@lat"),
    listed(10, -1, "@nobody"),
    fetch("unknown topic", 12, topic="@nobody"),
    fetch("unknown id", 13, topic_id=STRANGE_ID),
    fetch("out of range", 12, fetch_offset=99),
    fetch("partition out of range", 12, partition=9),
    fetch("epoch ahead", 12, current_leader_epoch=9),
    fetch("epoch without a session", 12, session_id=0, session_epoch=3),
    fetch("unknown session", 12, session_id=77, session_epoch=3),
    fetch("session closed", 12, session_id=77, session_epoch=-1),
    fetch("at the end", 12, fetch_offset=4),
)  # fmt: skip

DELETING_RECORDS = (
    records_deleted("below", "@a", 0, 1),
    records_deleted("again below", "@a", 0, 0),
    records_deleted("above the end", "@a", 0, 99),
    records_deleted("negative", "@a", 0, -2),
    records_deleted("unknown partition", "@a", 9, 0),
    records_deleted("unknown topic", "@nobody", 0, 0),
    records_deleted("compacted topic", "@c", 0, 1),
    records_deleted("empty partition", "@a", 1, 0),
    listed(10, -2),
    fetch("below the start", 12, fetch_offset=0),
    records_deleted("all", "@a", 0, -1),
    listed(10, -2),
    listed(10, -1),
    produce("behind deleted records", "@a", record()),
)

CONFIG_REQUESTS = (
    described("a topic", (TOPIC, "@c", None)),
    described("a topic without synonyms", (TOPIC, "@c", None), synonyms=False),
    described("version 1", (TOPIC, "@c", ["retention.ms"]), version=1),
    described("some keys", (TOPIC, "@c", ["retention.ms", "nonesuch", "max.message.bytes"])),
    described("no keys", (TOPIC, "@c", [])),
    described("unknown topic", (TOPIC, "@nobody", None)),
    described("invalid topic", (TOPIC, "no/name", None)),
    described("empty topic", (TOPIC, "", None)),
    described("the same topic twice", (TOPIC, "@c", ["retention.ms"]), (TOPIC, "@c", ["max.message.bytes"])),
    described("another broker", (BROKER, "9", ["message.max.bytes"])),
    described("no broker id", (BROKER, "x", ["message.max.bytes"])),
    described("the broker", (BROKER, "1", ["message.max.bytes", "broker.id", "nonesuch"])),
    described("the brokers' default", (BROKER, "", None)),
    described("strange type", (77, "x", None)),
    described("unknown type", (0, "x", None)),
    altered("set", (TOPIC, "@a", [("retention.ms", SET, "70000")])),
    altered("set wrong", (TOPIC, "@a", [("retention.ms", SET, "abc")])),
    altered("set unknown", (TOPIC, "@a", [("nonesuch", SET, "1")])),
    altered("delete unknown", (TOPIC, "@a", [("nonesuch", DELETE, None)])),
    altered("set null", (TOPIC, "@a", [("retention.ms", SET, None)])),
    altered("one wrong of two", (TOPIC, "@a", [("retention.ms", SET, "80000"), ("max.message.bytes", SET, "-5")])),
    altered("a name twice", (TOPIC, "@a", [("retention.ms", SET, "80000"), ("retention.ms", SET, "90000")])),
    altered("a name set and deleted", (TOPIC, "@a", [("retention.ms", SET, "80000"), ("retention.ms", DELETE, None)])),
    altered("a topic twice", (TOPIC, "@a", [("retention.ms", SET, "80000")]), (TOPIC, "@a", [("flush.ms", SET, "5")])),
    altered("only validated", (TOPIC, "@a", [("retention.ms", SET, "80000")]), only=True),
    altered("append to no list", (TOPIC, "@a", [("retention.ms", APPEND, "1")])),
    altered("append", (TOPIC, "@a", [("cleanup.policy", APPEND, "compact")])),
    altered("append again", (TOPIC, "@a", [("cleanup.policy", APPEND, "compact")])),
    described("after appending", (TOPIC, "@a", ["cleanup.policy", "retention.ms"])),
    altered("subtract", (TOPIC, "@a", [("cleanup.policy", SUBTRACT, "compact")])),
    altered("unknown operation", (TOPIC, "@a", [("retention.ms", 9, "1")])),
    altered("unknown topic", (TOPIC, "@nobody", [("retention.ms", SET, "1")])),
    altered("invalid topic", (TOPIC, "no/name", [("retention.ms", SET, "1")])),
    altered("nothing", (TOPIC, "@a", [])),
    described("after altering", (TOPIC, "@a", ["cleanup.policy", "retention.ms", "flush.ms", "max.message.bytes"])),
    altered("delete", (TOPIC, "@a", [("retention.ms", DELETE, None), ("cleanup.policy", DELETE, None)])),
    described("after deleting", (TOPIC, "@a", ["cleanup.policy", "retention.ms"])),
    replaced("set", TOPIC, "@a", {"max.message.bytes": "5000"}),
    replaced("set wrong", TOPIC, "@a", {"max.message.bytes": "x"}),
    replaced("null", TOPIC, "@a", {"max.message.bytes": None}),
    replaced("only validated", TOPIC, "@a", {"flush.ms": "5"}, only=True),
    described("after replacing", (TOPIC, "@a", ["max.message.bytes", "flush.ms"])),
    replaced("nothing", TOPIC, "@a", {}),
    described("after replacing by nothing", (TOPIC, "@a", ["max.message.bytes"])),
    altered("the brokers' largest batch", (BROKER, "", [("message.max.bytes", SET, "2000000")])),
    described("a topic, below the brokers' default", (TOPIC, "@a", ["max.message.bytes"])),
    described("the brokers' default, set", (BROKER, "", None)),
    altered("this broker's largest batch", (BROKER, "1", [("message.max.bytes", SET, "3000000")])),
    described("the broker, set twice", (BROKER, "1", ["message.max.bytes"])),
    altered("the broker, wrong", (BROKER, "1", [("message.max.bytes", SET, "x")])),
    altered("the broker, what is fixed", (BROKER, "1", [("socket.request.max.bytes", SET, "1000000")])),
    altered("another broker", (BROKER, "9", [("message.max.bytes", SET, "3000000")])),
    altered("no broker id", (BROKER, "x", [("message.max.bytes", SET, "3000000")])),
    altered("this broker's back", (BROKER, "1", [("message.max.bytes", DELETE, None)])),
    altered("the brokers' back", (BROKER, "", [("message.max.bytes", DELETE, None)])),
    described("the broker, back", (BROKER, "1", ["message.max.bytes"])),
)  # fmt: skip

CLUSTER = (
    ("cluster: version 0", "DescribeCluster", 0, {}),
    ("cluster: with operations", "DescribeCluster", 2, {"include_cluster_authorized_operations": True}),
    ("cluster: controllers", "DescribeCluster", 1, {"endpoint_type": 2}),
    ("cluster: strange endpoints", "DescribeCluster", 1, {"endpoint_type": 9}),
    partitions_described("one", "@a"),
    partitions_described("in another order, one unknown", "@small", "@nobody", "@a"),
    partitions_described("invalid name", "no/name"),
    partitions_described("limited", "@a", "@c", "@small", limit=2),
    partitions_described("limited inside a topic", "@a", "@c", limit=1),
    partitions_described("limit 0", "@a", "@c", limit=0),
    partitions_described("cursor", "@a", "@c", cursor={"topic_name": "@a", "partition_index": 1}),
    partitions_described("cursor behind a topic", "@a", "@c", cursor={"topic_name": "@b", "partition_index": 0}),
    partitions_described("cursor behind all", "@a", cursor={"topic_name": "@z", "partition_index": 0}),
    partitions_described("negative cursor", "@a", cursor={"topic_name": "@a", "partition_index": -1}),
    partitions_described("the same twice", "@a", "@a"),
    ("log dirs: one topic", "DescribeLogDirs", 4, {"topics": [{"topic": "@a", "partitions": [0, 1]}]}),
    ("log dirs: unknown topic", "DescribeLogDirs", 4, {"topics": [{"topic": "@nobody", "partitions": [0]}]}),
    ("log dirs: no topic", "DescribeLogDirs", 4, {"topics": []}),
    elected("led by the preferred one", 0, [{"topic": "@a", "partitions": [0, 1]}]),
    elected("unknown", 0, [{"topic": "@nobody", "partitions": [0]}, {"topic": "@a", "partitions": [9]}]),
    elected("unclean, not needed", 1, [{"topic": "@a", "partitions": [0]}]),
    elected("strange kind", 7, [{"topic": "@a", "partitions": [0]}]),
    elected("nothing", 0, []),
)

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
BOTH = [SESSION, HEARTBEAT]

#: Descriptions name the settings: ours has none of share and streams groups.
GROUPS = (
    described("a group, unset", (GROUP, "@g", BOTH)),
    described("no group", (GROUP, "", BOTH)),
    altered("a group", (GROUP, "@g", [(HEARTBEAT, SET, "6000")])),
    described("the group", (GROUP, "@g", BOTH)),
    described("the group, without synonyms", (GROUP, "@g", [HEARTBEAT]), synonyms=False),
    altered("heartbeats too often", (GROUP, "@g", [(HEARTBEAT, SET, "4999")])),
    altered("heartbeats too seldom", (GROUP, "@g", [(HEARTBEAT, SET, "15001")])),
    altered("session too short", (GROUP, "@g", [(SESSION, SET, "44999")])),
    altered("session too long", (GROUP, "@g", [(SESSION, SET, "60001")])),
    altered("group, one right and one wrong", (GROUP, "@g", [(HEARTBEAT, SET, "7000"), (SESSION, SET, "1")])),
    altered("group, both", (GROUP, "@g", [(SESSION, SET, " 50000 "), (HEARTBEAT, SET, "7000")])),
    altered("group, no number", (GROUP, "@g", [(SESSION, SET, "abc")])),
    altered("group, empty", (GROUP, "@g", [(SESSION, SET, "")])),
    altered("group, 0", (GROUP, "@g", [(SESSION, SET, "0")])),
    altered("group, null", (GROUP, "@g", [(SESSION, SET, None)])),
    altered("group, unknown setting", (GROUP, "@g", [("nonesuch", SET, "1")])),
    altered("group, unknown setting back", (GROUP, "@g", [("nonesuch", DELETE, None)])),
    altered("group, append", (GROUP, "@g", [(SESSION, APPEND, "1")])),
    altered("group, twice", (GROUP, "@g", [(SESSION, SET, "50000"), (SESSION, SET, "50001")])),
    altered("no group", (GROUP, "", [(SESSION, SET, "50000")])),
    altered("group, only validated", (GROUP, "@v", [(SESSION, SET, "50000")]), only=True),
    altered("group, only validated and wrong", (GROUP, "@v", [(SESSION, SET, "1")]), only=True),
    altered("group with an odd name", (GROUP, "@/ *%ü", [(SESSION, SET, "50000")])),
    described("groups", (GROUP, "@g", BOTH), (GROUP, "@v", BOTH), (GROUP, "@/ *%ü", BOTH)),
    altered("group, back", (GROUP, "@g", [(HEARTBEAT, DELETE, None)])),
    described("the group, one back", (GROUP, "@g", BOTH)),
    replaced("a group", GROUP, "@g", {HEARTBEAT: "8000"}),
    replaced("a group, wrong", GROUP, "@g", {HEARTBEAT: "1"}),
    described("the group, replaced", (GROUP, "@g", BOTH)),
    listed_resources("groups", 1, GROUP),
    listed_resources("groups, twice", 1, GROUP, GROUP),
    listed_resources("client metrics", 1, 16),
    listed_resources("brokers", 1, BROKER),
    listed_resources("brokers and their loggers", 1, BROKER, 8),
    listed_resources("an unknown type", 1, 99),
    listed_resources("groups and an unknown type", 1, GROUP, 1),
    listed_resources("version 0", 0),
    replaced("the group, nothing", GROUP, "@g", {}),
    listed_resources("groups, one without settings", 1, GROUP),
)

ASKED: tuple[Ask, ...] = (
    *CREATING, *METADATA, *DELETING, *RECORDS, *DELETING_RECORDS, *CONFIG_REQUESTS, *CLUSTER, *GROUPS,
)  # fmt: skip
