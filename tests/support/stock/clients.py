"""Stock clients as child processes: kafka-python and librdkafka leave threads and sockets behind that would disturb
later tests. Run as `python -m tests.support.stock.clients CLIENT BOOTSTRAP TOPIC`; a conversation in JSON lines:

    child: {"0": [values...], "1": [...]}      what it has produced, by partition
    parent: {"0": 140, "1": 120}               how many records there are by now
    child: {"0": [values...], ...}             what it has read

The name `admin` creates, grows, lists and deletes a topic instead, and says what it saw.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from typing import Any

#: kafka-python needs extra packages for the other codecs, so those go to a partition that it does not read.
PLAIN, PACKED = 0, 1
CODECS = {"none": PLAIN, "gzip": PLAIN, "snappy": PACKED, "lz4": PACKED, "zstd": PACKED}
RECORDS = 20  #: for each codec

CLIENTS = ("kafka-python", "aiokafka", "confluent-kafka")


def values_of(client: str, codec: str) -> list[bytes]:
    return [f"{client} {codec} {number}".encode() for number in range(RECORDS)]


class KafkaPython:
    reads = (PLAIN,)

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic

    def produce(self, values: list[bytes], codec: str, partition: int) -> None:
        import kafka

        compression = None if codec == "none" else codec
        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, compression_type=compression, linger_ms=5)
        futures = [producer.send(self.topic, value, partition=partition, headers=[("h", b"x")]) for value in values]
        offsets = [future.get(timeout=60).offset for future in futures]
        assert offsets == sorted(set(offsets)), offsets
        producer.close()

    def fetch(self, partition: int, number: int) -> list[bytes]:
        import kafka

        consumer = kafka.KafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest", group_id=None)
        tp = kafka.TopicPartition(self.topic, partition)
        consumer.assign([tp])
        values: list[bytes] = []
        while len(values) < number:
            for records in consumer.poll(timeout_ms=5000).values():
                values += [record.value for record in records]
        assert consumer.end_offsets([tp]) == {tp: number}
        consumer.close()
        return values


class ConfluentKafka:
    reads = (PLAIN, PACKED)

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic

    def produce(self, values: list[bytes], codec: str, partition: int) -> None:
        import confluent_kafka

        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "compression.type": codec, "linger.ms": 5}
        )
        errors: list[Any] = []
        for value in values:
            producer.produce(self.topic, value, partition=partition, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(60) == 0
        assert errors == [None] * len(values), errors

    def fetch(self, partition: int, number: int) -> list[bytes]:
        import confluent_kafka

        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": "none", "enable.auto.commit": False}
        )
        tp = confluent_kafka.TopicPartition(self.topic, partition, confluent_kafka.OFFSET_BEGINNING)
        consumer.assign([tp])
        values: list[bytes] = []
        while len(values) < number:
            for message in consumer.consume(number - len(values), timeout=5):
                assert message.error() is None, message.error()
                values.append(message.value())
        assert consumer.get_watermark_offsets(tp) == (0, number)
        consumer.close()
        return values


class AioKafka:
    reads = (PLAIN, PACKED)

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic

    def produce(self, values: list[bytes], codec: str, partition: int) -> None:
        asyncio.run(self._produce(values, None if codec == "none" else codec, partition))

    async def _produce(self, values: list[bytes], compression: str | None, partition: int) -> None:
        import aiokafka

        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, enable_idempotence=True, compression_type=compression, linger_ms=5
        )
        async with producer:
            await asyncio.gather(*[await producer.send(self.topic, value, partition=partition) for value in values])

    def fetch(self, partition: int, number: int) -> list[bytes]:
        return asyncio.run(self._fetch(partition, number))

    async def _fetch(self, partition: int, number: int) -> list[bytes]:
        import aiokafka

        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=self.bootstrap, auto_offset_reset="earliest")
        consumer.assign([aiokafka.TopicPartition(self.topic, partition)])
        values: list[bytes] = []
        async with consumer:
            while len(values) < number:
                for records in (await consumer.getmany(timeout_ms=5000)).values():
                    values += [record.value for record in records]
        return values


def converse(client: str, bootstrap: str, topic: str) -> None:
    kind: Any = {"kafka-python": KafkaPython, "aiokafka": AioKafka, "confluent-kafka": ConfluentKafka}[client]
    stock = kind(bootstrap, topic)
    produced: dict[int, list[str]] = {}
    for codec, partition in CODECS.items():
        if partition in stock.reads:
            values = values_of(client, codec)
            stock.produce(values, codec, partition)
            produced.setdefault(partition, []).extend(map(bytes.decode, values))
    _say(produced)
    totals = {int(partition): number for partition, number in json.loads(sys.stdin.readline()).items()}
    _say({partition: [*map(bytes.decode, stock.fetch(partition, totals[partition]))] for partition in stock.reads})


def administrate(bootstrap: str, topic: str) -> None:
    import kafka.errors
    from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewTopic as PythonNewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result(60)
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(60)
    seen = admin.list_topics(timeout=60).topics
    _say({"partitions": sorted(seen[topic].partitions)})
    python = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        python.create_topics([PythonNewTopic(topic, 1, 1)])
    except kafka.errors.TopicAlreadyExistsError:
        _say({"created twice": False})
    python.delete_topics([topic])
    _say({"left": sorted(python.list_topics())})
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    _say({"made by need": producer.send("made-by-need", b"v").get(timeout=60).offset})
    producer.close()
    python.close()


def _say(what: Any) -> None:
    print(json.dumps(what), flush=True)  # noqa: T201 - stdout is the conversation


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # theirs, not ours
    if sys.argv[1] == "admin":
        administrate(*sys.argv[2:])
    else:
        converse(*sys.argv[1:])
