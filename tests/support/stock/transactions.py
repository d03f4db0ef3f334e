"""Stock clients' transactions, as child processes (see `stock_clients`): `python -m tests.support.stock.transactions`

ends CLIENT BOOTSTRAP TOPIC       commits two, aborts one, commits one; says what was committed
zombie CLIENT BOOTSTRAP TOPIC     a second producer of the same transactional id; prints the error of the first
read CLIENT BOOTSTRAP TOPIC       reads up to the value "end" at both levels; says what it has read
copy CLIENT BOOTSTRAP NAME        copies topic `in` to `out` in transactions, in group `copiers`, until stdin ends;
                                  says how many records each transaction took
"""

from __future__ import annotations

import asyncio
import json
import select
import sys
import warnings
from typing import Any

LEVELS = ("read_committed", "read_uncommitted")
GROUP = "copiers"
#: The most records copied in one transaction: several rebalances fit between the first and the last record.
PER_TRANSACTION = 5


class Confluent:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _producer(self, transactional_id: str) -> Any:
        import confluent_kafka

        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "transactional.id": transactional_id, "linger.ms": 0}
        )
        producer.init_transactions(60)
        return producer

    def _consumer(self, level: str, **settings: Any) -> Any:
        import confluent_kafka

        return confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": level,
                **settings,
            }
        )

    def ends(self, topic: str) -> None:
        producer = self._producer(f"ends-{topic}")
        for values, commits in ENDS:
            producer.begin_transaction()
            for value in values:
                producer.produce(topic, value.encode(), partition=0)
            producer.flush(60)  # otherwise an abort would drop unsent records
            producer.commit_transaction(60) if commits else producer.abort_transaction(60)

    def zombie(self, topic: str) -> str:
        import confluent_kafka

        old = self._producer(f"zombie-{topic}")
        old.begin_transaction()
        old.produce(topic, b"of the zombie", partition=0)
        old.flush(60)
        new = self._producer(f"zombie-{topic}")
        new.begin_transaction()
        new.produce(topic, b"of its successor", partition=0)
        error = "committed"
        try:
            old.commit_transaction(60)
        except confluent_kafka.KafkaException as failure:
            error = failure.args[0].name()
        new.produce(topic, b"end", partition=0)
        new.commit_transaction(60)
        return error

    def read(self, topic: str, level: str) -> list[str]:
        import confluent_kafka

        consumer = self._consumer(level)
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
        values: list[str] = []
        while "end" not in values:
            for message in consumer.consume(100, timeout=5):
                assert message.error() is None, message.error()
                values.append(message.value().decode())
        consumer.close()
        return values

    def copy(self, name: str) -> None:
        import confluent_kafka

        consumer = self._consumer("read_committed", **{"group.id": GROUP})
        consumer.subscribe(["in"])
        producer = self._producer(name)
        while not _is_over():
            messages = [m for m in consumer.consume(PER_TRANSACTION, timeout=0.2) if m.error() is None]
            if not messages:
                continue
            try:
                producer.begin_transaction()
                for message in messages:
                    producer.produce("out", message.value(), partition=0)
                positions = consumer.position(consumer.assignment())
                known = [tp for tp in positions if tp.offset >= 0]
                producer.send_offsets_to_transaction(known, consumer.consumer_group_metadata(), 60)
                producer.commit_transaction(60)
            except confluent_kafka.KafkaException as failure:
                if not failure.args[0].txn_requires_abort():
                    raise
                producer.abort_transaction(60)
                for tp in consumer.committed(consumer.assignment(), 60):
                    consumer.seek(confluent_kafka.TopicPartition(tp.topic, tp.partition, max(tp.offset, 0)))
                continue
            _say(len(messages))
        consumer.close()


class KafkaPython:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _producer(self, transactional_id: str) -> Any:
        import kafka

        producer = kafka.KafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=transactional_id)
        producer.init_transactions()
        return producer

    def _consumer(self, level: str, **settings: Any) -> Any:
        import kafka

        return kafka.KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            isolation_level=level,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **settings,
        )

    def ends(self, topic: str) -> None:
        producer = self._producer(f"ends-{topic}")
        for values, commits in ENDS:
            producer.begin_transaction()
            for value in values:
                producer.send(topic, value.encode(), partition=0).get(timeout=60)
            producer.commit_transaction() if commits else producer.abort_transaction()
        producer.close()

    def zombie(self, topic: str) -> str:
        import kafka.errors

        old = self._producer(f"zombie-{topic}")
        old.begin_transaction()
        old.send(topic, b"of the zombie", partition=0).get(timeout=60)
        new = self._producer(f"zombie-{topic}")
        new.begin_transaction()
        new.send(topic, b"of its successor", partition=0).get(timeout=60)
        error = "committed"
        try:
            old.commit_transaction()
        except kafka.errors.KafkaError as failure:
            error = type(failure).__name__
        new.send(topic, b"end", partition=0).get(timeout=60)
        new.commit_transaction()
        old.close(timeout=1)
        new.close()
        return error

    def read(self, topic: str, level: str) -> list[str]:
        import kafka

        consumer = self._consumer(level, group_id=None)
        consumer.assign([kafka.TopicPartition(topic, 0)])
        values: list[str] = []
        while "end" not in values:
            for records in consumer.poll(timeout_ms=5000).values():
                values += [record.value.decode() for record in records]
        consumer.close()
        return values

    def copy(self, name: str) -> None:
        import kafka
        import kafka.errors

        consumer = self._consumer("read_committed", group_id=GROUP, max_poll_records=PER_TRANSACTION)
        consumer.subscribe(["in"])
        producer = self._producer(name)
        while not _is_over():
            polled = consumer.poll(timeout_ms=200)
            if not polled:
                continue
            try:
                producer.begin_transaction()
                for records in polled.values():
                    for record in records:
                        producer.send("out", record.value, partition=0)
                offsets = {
                    tp: kafka.structs.OffsetAndMetadata(records[-1].offset + 1, "", -1)
                    for tp, records in polled.items()
                }
                producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
                producer.commit_transaction()
            except (
                kafka.errors.CommitFailedError,
                kafka.errors.IllegalGenerationError,
                kafka.errors.UnknownMemberIdError,
            ):
                producer.abort_transaction()
                for tp in polled:
                    if tp in consumer.assignment():
                        consumer.seek(tp, consumer.committed(tp) or 0)
                continue
            _say(sum(map(len, polled.values())))
        consumer.close()
        producer.close()


class AioKafka:
    """Its send_offsets_to_transaction names the group only (no generation): partitions are given up between copies."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def _producer(self, transactional_id: str) -> Any:
        import aiokafka

        return aiokafka.AIOKafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=transactional_id)

    def ends(self, topic: str) -> None:
        asyncio.run(self._ends(topic))

    async def _ends(self, topic: str) -> None:
        async with self._producer(f"ends-{topic}") as producer:
            for values, commits in ENDS:
                await producer.begin_transaction()
                for value in values:
                    await producer.send_and_wait(topic, value.encode(), partition=0)
                await (producer.commit_transaction() if commits else producer.abort_transaction())

    def zombie(self, topic: str) -> str:
        return asyncio.run(self._zombie(topic))

    async def _zombie(self, topic: str) -> str:
        import aiokafka.errors

        old, new = self._producer(f"zombie-{topic}"), self._producer(f"zombie-{topic}")
        await old.start()
        await old.begin_transaction()
        await old.send_and_wait(topic, b"of the zombie", partition=0)
        await new.start()
        await new.begin_transaction()
        await new.send_and_wait(topic, b"of its successor", partition=0)
        error = "committed"
        try:
            await old.commit_transaction()
        except aiokafka.errors.KafkaError as failure:
            error = type(failure).__name__
        await new.send_and_wait(topic, b"end", partition=0)
        await new.commit_transaction()
        await new.stop()
        return error  # the zombie's own stop() would wait for its broken sender

    def read(self, topic: str, level: str) -> list[str]:
        return asyncio.run(self._read(topic, level))

    async def _read(self, topic: str, level: str) -> list[str]:
        import aiokafka

        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap, auto_offset_reset="earliest", isolation_level=level
        )
        consumer.assign([aiokafka.TopicPartition(topic, 0)])
        values: list[str] = []
        async with consumer:
            while "end" not in values:
                for records in (await consumer.getmany(timeout_ms=5000)).values():
                    values += [record.value.decode() for record in records]
        return values

    def copy(self, name: str) -> None:
        asyncio.run(self._copy(name))

    async def _copy(self, name: str) -> None:
        import aiokafka

        copying = asyncio.Lock()

        class BetweenCopies(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                async with copying:
                    pass

            async def on_partitions_assigned(self, assigned: Any) -> None: ...

        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=GROUP,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        consumer.subscribe(["in"], listener=BetweenCopies())
        async with consumer, self._producer(name) as producer:
            while not await asyncio.to_thread(_is_over):
                async with copying:
                    polled = await consumer.getmany(timeout_ms=0, max_records=PER_TRANSACTION)
                    if not polled:
                        continue
                    async with producer.transaction():
                        for records in polled.values():
                            for record in records:
                                await producer.send("out", record.value, partition=0)
                        offsets = {tp: records[-1].offset + 1 for tp, records in polled.items()}
                        await producer.send_offsets_to_transaction(offsets, GROUP)
                _say(sum(map(len, polled.values())))


CLIENTS: dict[str, Any] = {"confluent-kafka": Confluent, "kafka-python": KafkaPython, "aiokafka": AioKafka}
#: The values that `ends` writes, and whether they are committed.
ENDS = ((("a", "b"), True), (("c",), False), (("d", "end"), True))


def _is_over() -> bool:
    return bool(select.select([sys.stdin], [], [], 0.01)[0]) and not sys.stdin.readline()


def _say(what: Any) -> None:
    print(json.dumps(what), flush=True)  # noqa: T201 - stdout is the conversation


def main(story: str, client: str, bootstrap: str, name: str) -> None:
    stock = CLIENTS[client](bootstrap)
    match story:
        case "ends":
            stock.ends(name)
            _say("done")
        case "zombie":
            _say(stock.zombie(name))
        case "read":
            _say({level: stock.read(name, level) for level in LEVELS})
        case "copy":
            stock.copy(name)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # theirs, not ours
    main(*sys.argv[1:])
