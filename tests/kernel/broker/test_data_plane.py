"""A live broker, by our own client: topics, produce, fetch, offsets."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from kernel.broker.client import EARLIEST, LATEST, fetch, list_offset
from kernel.broker.producer import Producer
from kernel.values import TopicPartition
from tests.support.brokers import client_of, create_topics, running_broker

if TYPE_CHECKING:
    from pathlib import Path


def test_records_are_fetched_as_they_were_produced(chroot: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with running_broker(chroot, tmp_path) as broker:
            await create_topics(broker, {"t": 2})
            async with client_of(broker) as client:
                await client.refresh(["t"])
                assert client.metadata.partitions_of("t") == (0, 1)
                tp = TopicPartition("t", 0)
                producer = Producer(client)
                offsets = await asyncio.gather(*(producer.send(tp, b"v%d" % n, key=b"k") for n in range(50)))
                assert offsets == list(range(50))
                assert await producer.send(TopicPartition("t", 1), b"other") == 0
                await producer.close()
                connection = await client.connection(client.leader_of(tp) or 0)
                got = (await fetch(connection, {tp: 10}))[tp]
                assert (got.error, got.high_watermark, got.next_offset) == ("", 50, 50)
                assert [record.value for record in got.records] == [b"v%d" % n for n in range(10, 50)]
                ends = await list_offset(connection, {tp: LATEST, TopicPartition("t", 1): EARLIEST})
                assert ends == {tp: ("", 50), TopicPartition("t", 1): ("", 0)}

    asyncio.run(test())
