"""Stock admin clients as child processes: `python -m tests.support.stock.admins CLIENT BOOTSTRAP`.

Prints one JSON object: what the client saw of a topic that it created, altered, emptied and deleted. Against a real
4.1.1 it prints the same.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
import warnings
from typing import Any

RECORDS = 5


def by_confluent(bootstrap: str, topic: str) -> dict[str, Any]:
    import confluent_kafka as ck
    from confluent_kafka import admin as ca

    seen: dict[str, Any] = {}
    admin = ca.AdminClient({"bootstrap.servers": bootstrap})
    new = ca.NewTopic(topic, 2, 1, config={"retention.ms": "70000"})
    admin.create_topics([new])[topic].result(60)
    try:
        admin.create_topics([ca.NewTopic("wrong", 1, 1, config={"retention.ms": "abc"})])["wrong"].result(60)
    except ck.KafkaException as error:
        seen["wrong"] = error.args[0].name()
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    for _ in range(RECORDS):
        producer.produce(topic, b"v", partition=0)
    assert producer.flush(60) == 0
    resource = ca.ConfigResource(ca.ResourceType.TOPIC, topic)
    resource.add_incremental_config(ca.ConfigEntry("max.message.bytes", "5000", incremental_operation=SET_OF(ca)))
    admin.incremental_alter_configs([resource])[resource].result(60)
    asked = ca.ConfigResource(ca.ResourceType.TOPIC, topic)
    configs = admin.describe_configs([asked])[asked].result(60)
    seen["configs"] = {name: configs[name].value for name in ("retention.ms", "max.message.bytes", "cleanup.policy")}
    seen["default"] = [configs["cleanup.policy"].is_default, configs["max.message.bytes"].is_default]
    cluster = admin.describe_cluster(include_authorized_operations=True).result(60)
    seen["cluster"] = [len(cluster.nodes), cluster.controller.id, len(cluster.authorized_operations)]
    names = ck.TopicCollection([topic])
    described = admin.describe_topics(names, include_authorized_operations=True)[topic].result(60)
    seen["topic"] = [len(described.partitions), len(described.authorized_operations)]
    first = ck.TopicPartition(topic, 0, 2)
    seen["low watermark"] = admin.delete_records([first])[first].result(60).low_watermark
    spec = {ck.TopicPartition(topic, 0): ca.OffsetSpec.earliest()}
    seen["earliest"] = [future.result(60).offset for future in admin.list_offsets(spec).values()]
    elected = admin.elect_leaders(ck.ElectionType.PREFERRED, [ck.TopicPartition(topic, 0)]).result(60)
    seen["elected"] = [error.name() for error in elected.values()]
    admin.delete_topics([topic])[topic].result(60)
    return seen


def SET_OF(ca: Any) -> Any:  # noqa: N802 - an enum's member that depends on the release
    return ca.AlterConfigOpType.SET


def by_kafka_python(bootstrap: str, topic: str) -> dict[str, Any]:
    import kafka
    from kafka import admin as ka
    from kafka.errors import InvalidConfigurationError

    seen: dict[str, Any] = {}
    admin = ka.KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([ka.NewTopic(topic, 2, 1, topic_configs={"retention.ms": "70000"})])
    try:
        admin.create_topics([ka.NewTopic("wrong", 1, 1, topic_configs={"retention.ms": "abc"})])
    except InvalidConfigurationError:
        seen["wrong"] = "INVALID_CONFIG"
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for _ in range(RECORDS):
        producer.send(topic, b"v", partition=0).get(timeout=60)
    producer.close()
    kind = ka.ConfigResourceType.TOPIC
    admin.alter_configs([ka.ConfigResource(kind, topic, configs={"max.message.bytes": "5000"})])
    answer = admin.describe_configs([ka.ConfigResource(kind, topic)], include_synonyms=True)
    (modified,) = next(iter(answer.values())).values()
    # Where a quorum keeps it, min.insync.replicas counts as modified, too.
    seen["configs"] = {name: row["value"] for name, row in modified.items() if name != "min.insync.replicas"}
    cluster = admin.describe_cluster()
    seen["cluster"] = [len(cluster["brokers"]), cluster["controller_id"]]
    by_id = admin.describe_topics([topic])[0]["topic_id"]
    seen["by id"] = admin.describe_topics([uuid.UUID(str(by_id))])[0]["name"] == topic
    described = admin.describe_topic_partitions([topic], response_partition_limit=1)
    seen["partitions"] = [len(described["topics"][0]["partitions"]), described["next_cursor"]["partition_index"]]
    deleted = admin.delete_records({kafka.TopicPartition(topic, 0): 2})
    seen["low watermark"] = [row["low_watermark"] for row in deleted.values()]
    (broker,) = admin.describe_log_dirs({topic: [0, 1]})
    rows = [row for folder in broker["log_dirs"] for found in folder["topics"] for row in found["partitions"]]
    seen["sizes"] = [row["partition_size"] > 0 for row in sorted(rows, key=lambda row: row["partition_index"])]
    admin.elect_leaders(0, {topic: [0]}, raise_errors=False)
    admin.delete_topics([topic])
    admin.close()
    return seen


def by_aiokafka(bootstrap: str, topic: str) -> dict[str, Any]:
    return asyncio.run(_by_aiokafka(bootstrap, topic))


async def _by_aiokafka(bootstrap: str, topic: str) -> dict[str, Any]:
    import aiokafka
    from aiokafka import admin as aa
    from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

    seen: dict[str, Any] = {}
    admin = aa.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    created = await admin.create_topics([aa.NewTopic(topic, 2, 1, topic_configs={"retention.ms": "70000"})])
    seen["created"] = [row[1] for row in created.topic_errors]
    wrong = await admin.create_topics([aa.NewTopic("wrong", 1, 1, topic_configs={"retention.ms": "abc"})])
    seen["wrong"] = [row[1] for row in wrong.topic_errors]
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for _ in range(RECORDS):
            await producer.send_and_wait(topic, b"v", partition=0)
    changed = {"max.message.bytes": "5000"}  # AlterConfigs: what is not named goes
    await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=changed)])
    names = {"retention.ms": None, "max.message.bytes": None}
    asked = ConfigResource(ConfigResourceType.TOPIC, topic, configs=names)
    (answer,) = await admin.describe_configs([asked], include_synonyms=True)
    seen["configs"] = {row[0]: row[1] for resource in answer.resources for row in resource[4]}
    cluster = await admin.describe_cluster()
    seen["cluster"] = [len(cluster["brokers"]), cluster["controller_id"]]
    (described,) = await admin.describe_topics([topic])
    seen["topic"] = len(described["partitions"])
    first = aiokafka.TopicPartition(topic, 0)
    deleted = await admin.delete_records({first: aa.RecordsToDelete(before_offset=2)})
    seen["low watermark"] = deleted[first]
    await admin.delete_topics([topic])
    await admin.close()
    return seen


ADMINS = {"confluent-kafka": by_confluent, "kafka-python": by_kafka_python, "aiokafka": by_aiokafka}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # theirs, not ours
    name, address = sys.argv[1:]
    print(json.dumps(ADMINS[name](address, f"admin-{uuid.uuid4().hex[:8]}"), sort_keys=True))  # noqa: T201
