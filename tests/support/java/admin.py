"""Kafka's own Admin of 4.1.1, in the JVM of a child process: `python -m tests.support.java.admin BOOTSTRAP`.

Prints one JSON object: what it saw of a topic that it created, altered, described by id, emptied and deleted. Against a
real 4.1.1 it prints the same.
"""

from __future__ import annotations

import sys
import uuid
from typing import Any

from comparison.originals.java import logging_options
from kernel.waiting import wait_until
from tests.support.java.child import answer_from_jvm, answered_by

VERSION = "4.1.1"


def seen_by_java(bootstrap: str, *, timeout_s: float = 120) -> dict[str, Any]:
    """Run the JVM and wait for it. Call `tests.support.java.originals.require` first."""
    seen: dict[str, Any] = answered_by("tests.support.java.admin", bootstrap, timeout_s=timeout_s)
    return seen


class JavaAdmin:
    """The Admin, with Python arguments converted to Java's."""

    def __init__(self, bootstrap: str) -> None:
        import jpype

        self.bootstrap = bootstrap
        self.java = jpype.JClass
        self.exception = jpype.JException
        properties = self.java("java.util.Properties")()
        properties.setProperty("bootstrap.servers", bootstrap)
        properties.setProperty("request.timeout.ms", "20000")
        properties.setProperty("default.api.timeout.ms", "20000")
        self.admin = self.of("Admin").create(properties)

    def of(self, name: str) -> Any:
        return self.java(f"org.apache.kafka.clients.admin.{name}")

    def common(self, name: str) -> Any:
        return self.java(f"org.apache.kafka.common.{name}")

    def listed(self, *items: Any) -> Any:
        found = self.java("java.util.ArrayList")()
        for item in items:
            found.add(item)
        return found

    def mapped(self, **items: Any) -> Any:
        found = self.java("java.util.HashMap")()
        for key, value in items.items():
            found.put(key.replace("_", "."), value)
        return found

    def one(self, key: Any, value: Any) -> Any:
        return self.java("java.util.Collections").singletonMap(key, value)

    def refusal(self, future: Any) -> str:
        """The class of the exception that a future fails with."""
        try:
            future.get()
        except self.exception as error:
            return str(error.getCause().getClass().getSimpleName())
        return ""


def converse(admin: JavaAdmin, topic: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    new_topic, resource_of = admin.of("NewTopic"), admin.common("config.ConfigResource")
    short = admin.java("java.lang.Short").valueOf("1")
    new = new_topic(topic, 2, short.shortValue()).configs(admin.mapped(retention_ms="70000"))
    created = admin.admin.createTopics(admin.listed(new))
    created.all().get()
    seen["created"] = [int(created.numPartitions(topic).get()), created.config(topic).get().get("retention.ms").value()]
    wrong = new_topic("wrong", 1, short.shortValue()).configs(admin.mapped(retention_ms="abc"))
    seen["wrong"] = admin.refusal(admin.admin.createTopics(admin.listed(wrong)).all())
    topic_id = created.topicId(topic).get()
    topics = admin.common("TopicCollection")

    def name_by_id() -> str:
        """'' until the broker has learned what the controller has answered."""
        try:
            found = admin.admin.describeTopics(topics.ofTopicIds(admin.listed(topic_id))).allTopicIds().get()
        except admin.exception as error:
            kind = str(error.getCause().getClass().getSimpleName())
            if kind not in ("UnknownTopicIdException", "InvalidTopicException"):
                raise
            return ""
        return str(found.get(topic_id).name())

    seen["by id"] = wait_until(name_by_id, 60, "the topic by its id") == topic
    options = admin.of("DescribeTopicsOptions")().includeAuthorizedOperations(True)
    described = admin.admin.describeTopics(topics.ofTopicNames(admin.listed(topic)), options)
    by_name = described.allTopicNames().get().get(topic)
    seen["topic"] = [by_name.partitions().size(), by_name.authorizedOperations().size()]
    produce(admin, topic)
    resource = resource_of(admin.java("org.apache.kafka.common.config.ConfigResource$Type").TOPIC, topic)
    entry = admin.of("ConfigEntry")("max.message.bytes", "5000")
    change = admin.of("AlterConfigOp")(entry, admin.java("org.apache.kafka.clients.admin.AlterConfigOp$OpType").SET)
    admin.admin.incrementalAlterConfigs(admin.one(resource, admin.listed(change))).all().get()
    asked = admin.of("DescribeConfigsOptions")().includeSynonyms(True).includeDocumentation(True)

    def altered() -> list[Any]:
        """The settings, once the broker has learned what the controller has answered."""
        config = admin.admin.describeConfigs(admin.listed(resource), asked).all().get().get(resource)
        return [config] if config.get("max.message.bytes").value() == "5000" else []

    (config,) = wait_until(altered, 60, "the altered setting")
    entry = config.get("max.message.bytes")
    seen["config"] = [
        entry.value(),
        str(entry.source()),
        str(entry.type()),
        [str(synonym.source()) for synonym in entry.synonyms()],
        bool(entry.documentation()),
        config.entries().size(),
    ]
    cluster = admin.admin.describeCluster(admin.of("DescribeClusterOptions")().includeAuthorizedOperations(True))
    seen["cluster"] = [cluster.nodes().get().size(), cluster.authorizedOperations().get().size()]
    records(admin, topic, seen)
    admin.admin.deleteTopics(topics.ofTopicIds(admin.listed(topic_id))).all().get()
    seen["deleted twice"] = admin.refusal(admin.admin.deleteTopics(admin.listed(topic)).all())
    return seen


def produce(admin: JavaAdmin, topic: str) -> None:
    producer_of = admin.java("org.apache.kafka.clients.producer.KafkaProducer")
    record_of = admin.java("org.apache.kafka.clients.producer.ProducerRecord")
    serializer = admin.java("org.apache.kafka.common.serialization.StringSerializer")
    properties = admin.java("java.util.Properties")()
    properties.setProperty("bootstrap.servers", admin.bootstrap)
    producer = producer_of(properties, serializer(), serializer())
    for _ in range(5):
        producer.send(record_of(topic, admin.java("java.lang.Integer").valueOf(0), None, "v")).get()
    producer.close()


def records(admin: JavaAdmin, topic: str, seen: dict[str, Any]) -> None:
    """Requests about single partitions."""
    partition = admin.common("TopicPartition")(topic, 0)
    before = admin.of("RecordsToDelete").beforeOffset(2)
    deleted = admin.admin.deleteRecords(admin.one(partition, before)).lowWatermarks().get(partition).get()
    seen["low watermark"] = int(deleted.lowWatermark())
    specs = admin.of("OffsetSpec")
    for name, spec in (("earliest", specs.earliest()), ("latest", specs.latest()), ("largest", specs.maxTimestamp())):
        listed = admin.admin.listOffsets(admin.one(partition, spec)).partitionResult(partition).get()
        seen[name] = int(listed.offset()) if name != "largest" else int(listed.offset()) >= 2
    integer = admin.java("java.lang.Integer").valueOf(1)
    folders = admin.admin.describeLogDirs(admin.listed(integer)).allDescriptions().get().get(integer)
    sizes = [folders.get(name).replicaInfos().get(partition) for name in folders.keySet()]
    seen["size"] = [int(size.size()) > 0 for size in sizes]
    kinds = admin.common("ElectionType")
    asked = admin.java("java.util.Collections").singleton(partition)
    elected = admin.admin.electLeaders(kinds.PREFERRED, asked).partitions().get().get(partition)
    seen["elected"] = str(elected.get().getClass().getSimpleName()) if elected.isPresent() else ""


if __name__ == "__main__":
    answer_from_jvm(
        VERSION, lambda: converse(JavaAdmin(sys.argv[1]), f"java-{uuid.uuid4().hex[:8]}"), *logging_options("ERROR")
    )
