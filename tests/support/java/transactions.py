"""Transactions with Kafka 4.1.1's own producer and consumer, in the JVM of a child process:

    observed = observe("127.0.0.1:9092", "t")
    observed["zombie"]             # the exception of a producer whose successor has been initialised
    observed["read_committed"]     # the values of t-0 up to the last stable offset; "read_uncommitted": all

Run as a module it is that child.
"""

from __future__ import annotations

import sys
from typing import Any

from comparison.originals.java import logging_options
from tests.support.java.child import answer_from_jvm, answered_by
from tests.support.stock.transactions import ENDS, LEVELS

VERSION = "4.1.1"
_SERIALIZATION = "org.apache.kafka.common.serialization.String"


def observe(bootstrap: str, topic: str, *, timeout_s: float = 120) -> dict[str, Any]:
    """Run the JVM and wait for it. Call `tests.support.java.originals.require` first."""
    observed: dict[str, Any] = answered_by("tests.support.java.transactions", bootstrap, topic, timeout_s=timeout_s)
    return observed


class Clients:
    """Clients for partition 0 of one topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        import jpype

        self._java = jpype
        self._bootstrap = bootstrap
        self._topic = topic

    def _configured(self, **settings: str) -> Any:
        properties = self._java.JClass("java.util.HashMap")()
        for name, value in {"bootstrap_servers": self._bootstrap, **settings}.items():
            properties.put(name.replace("_", "."), value)
        return properties

    def producer(self) -> Any:
        serializer = f"{_SERIALIZATION}Serializer"
        properties = self._configured(
            key_serializer=serializer, value_serializer=serializer, transactional_id=f"java-{self._topic}"
        )
        producer = self._java.JClass("org.apache.kafka.clients.producer.KafkaProducer")(properties)
        producer.initTransactions()
        return producer

    def send(self, producer: Any, value: str) -> None:
        record = self._java.JClass("org.apache.kafka.clients.producer.ProducerRecord")
        producer.send(record(self._topic, self._java.JInt(0), None, value)).get()

    def read(self, level: str) -> list[str]:
        deserializer = f"{_SERIALIZATION}Deserializer"
        properties = self._configured(
            key_deserializer=deserializer, value_deserializer=deserializer, isolation_level=level
        )
        consumer = self._java.JClass("org.apache.kafka.clients.consumer.KafkaConsumer")(properties)
        tp = self._java.JClass("org.apache.kafka.common.TopicPartition")(self._topic, 0)
        wait = self._java.JClass("java.time.Duration").ofMillis(500)
        partitions = self._java.JClass("java.util.List").of(tp)
        consumer.assign(partitions)
        consumer.seekToBeginning(partitions)
        end = consumer.endOffsets(partitions).get(tp)
        values: list[str] = []
        while consumer.position(tp) < end:
            values += [str(record.value()) for record in consumer.poll(wait)]
        consumer.close()
        return values


def _play(clients: Clients) -> dict[str, Any]:
    import jpype

    zombie = clients.producer()
    for values, commits in ENDS:
        zombie.beginTransaction()
        for value in values:
            clients.send(zombie, value)
        zombie.commitTransaction() if commits else zombie.abortTransaction()
    zombie.beginTransaction()
    clients.send(zombie, "of the zombie")
    successor = clients.producer()
    observed: dict[str, Any] = {"zombie": "committed"}
    try:
        zombie.commitTransaction()
    except jpype.JException as error:
        observed["zombie"] = str(error.getClass().getSimpleName())
    successor.beginTransaction()
    clients.send(successor, "of its successor")
    successor.commitTransaction()
    successor.beginTransaction()  # waits until the previous one is complete
    clients.send(successor, "open")
    return observed | {level: clients.read(level) for level in LEVELS}


if __name__ == "__main__":
    answer_from_jvm(VERSION, lambda: _play(Clients(*sys.argv[1:])), *logging_options("WARN"))
