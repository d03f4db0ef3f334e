"""Znodes that we did not write: garbage, and what Kafka's older tools write. Other topics go on, nothing is lost.

Here the test writes the same znodes as those tools; `tests/originals/test_tools.py` runs the tools.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.broker.broker import Broker
from kernel.broker.cluster.cluster_view import NO_LEADER
from kernel.client.connection import BrokerConnection
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import error_name
from kernel.wire.versions import Api
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.brokers.live import read_values, running_broker, send_values
from tests.support.zookeeper.sessions import gone, opened

WAIT_MS = 30_000
TP = TopicPartition("t", 0)
DEEP = b"[" * 100_000
LONG = "9" * 5_000

BAD_BROKERS = {
    "7": DEEP,
    "8": b'{"host":"h","port":10000000000}',
    "9": json.dumps({"host": "h" * 100_000, "port": 1}).encode(),
    "10": b'{"host":"\\ud800","port":1}',
    "11": b'{"host":"a\\nb","port":1}',
    "12": b'{"endpoints":["PLAINTEXT://h:0"],"listener_security_protocol_map":[]}',
    "²": b'{"host":"h","port":1}',
    LONG: b'{"host":"h","port":1}',
    "007": b'{"host":"h","port":1}',
    "4294967296": b'{"host":"h","port":1}',
}
GOOD_REPLICAS = b'{"version":1,"partitions":{"0":[1]}}'
BAD_TOPICS = {
    "deep": DEEP,
    "ids": b'{"partitions":{"0":[1000000000000000000000000000000]}}',
    "negative": b'{"partitions":{"0":[-5]}}',
    "nobody": b'{"partitions":{"0":[]}}',
    "floats": b'{"partitions":{"0":[1.5]}}',
    "number": b'{"partitions":{"0":[' + LONG.encode() + b"]}}",
    "text-id": b'{"partitions":{"0":[1]},"topic_id":"!!!!!!!!!!!!!!!!!!!!!!!!!!"}',
    "zero-id": b'{"partitions":{"0":[1]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAA"}',
    "number-id": b'{"partitions":{"0":[1]},"topic_id":7}',
    "many": json.dumps({"partitions": {str(n): [1] for n in range(20_000)}}).encode(),
    "n" * 40_000: GOOD_REPLICAS,
    "ü": GOOD_REPLICAS,
    "a b": GOOD_REPLICAS,
}


@asynccontextmanager
async def connected(broker: Broker) -> AsyncIterator[BrokerConnection]:
    connection = await BrokerConnection.open("127.0.0.1", broker.address.port, "test")
    try:
        yield connection
    finally:
        connection.close()


async def created(broker: Broker, name: str, **how: Any) -> None:
    await broker.cluster.create_topic(name, **{"partitions": 1, "replication_factor": 1, **how})
    await led(broker, TopicPartition(name, 0))


async def led(broker: Broker, tp: TopicPartition) -> None:
    await until(lambda: broker.cluster.leads(tp) is not None, WAIT_MS / 1000, f"{tp} to be led by {broker.address}")


@pytest.mark.parametrize(("folder", "bad"), [(paths.BROKER_IDS, BAD_BROKERS), (paths.BROKER_TOPICS, BAD_TOPICS)])
async def test_bad_znodes_are_ignored_by_name_and_their_neighbours_are_served(
    chroot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, folder: str, bad: dict[str, bytes]
) -> None:
    async with running_broker(chroot, tmp_path) as broker, opened(chroot) as session, connected(broker) as client:
        await created(broker, "before")
        for name, data in bad.items():
            await session.create(f"{folder}/{name}", data)
        await created(broker, "after")
        answer = await client.call(Api.Metadata, {"topics": None})
        assert [topic.name for topic in answer.topics] == ["after", "before"]
        assert [one.node_id for one in answer.brokers] == [1]
        assert {partition.leader_id for topic in answer.topics for partition in topic.partitions} == {1}
        for name in bad:
            path = f"{folder}/{name}"[:300]
            (said,) = [text for text in caplog.messages if text.startswith(f"ignoring {path}: ")]
            assert len(said) < 1500
        # Also for a broker that starts when all of it exists.
        async with running_broker(chroot, tmp_path, node_id=2) as second:
            assert set(second.cluster.snapshot.topics) == {"before", "after"}


@pytest.mark.parametrize(
    "data",
    [
        DEEP,
        b"",
        b'{"leader":1,"leader_epoch":99999999999,"controller_epoch":1,"isr":[1]}',
        b'{"leader":-7,"leader_epoch":0,"controller_epoch":1,"isr":[1]}',
    ],
)
async def test_bad_state_of_a_partition_stops_only_that_partition_and_is_not_overwritten(
    chroot: str, tmp_path: Path, data: bytes
) -> None:
    state = paths.partition_state("t", 0)
    async with running_broker(chroot, tmp_path) as broker, opened(chroot) as session:
        await created(broker, "t", partitions=2)
        good, _ = await session.get(state)
        stat = await session.set(state, data)
        assert await broker.cluster.until(lambda s: s.topics["t"].partitions[0].leader == NO_LEADER, WAIT_MS)
        await created(broker, "neighbour")
        assert broker.cluster.leads(TopicPartition("t", 1)) is not None
        assert (await session.get(state)) == (data, stat)
        await session.set(state, good)
        await led(broker, TP)


async def test_topic_with_another_ones_id_is_ignored_until_the_other_is_deleted(chroot: str, tmp_path: Path) -> None:
    async with running_broker(chroot, tmp_path) as broker, opened(chroot) as session:
        await created(broker, "t")
        data, _ = await session.get(paths.topic("t"))
        await session.create(paths.topic("a-copy"), data)
        await created(broker, "u")
        assert set(broker.cluster.snapshot.topics) == {"t", "u"}
        await broker.cluster.delete_topic("t")
        assert await broker.cluster.until(lambda s: set(s.topics) == {"a-copy", "u"}, WAIT_MS)


@pytest.mark.parametrize(
    "block", [b"garbage", DEEP, b'{"block_end":"\xc2\xb2"}', b'{"block_end":"' + LONG.encode() + b'"}']
)
async def test_bad_block_of_producer_ids_is_an_error_without_closing_the_connection(
    chroot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, block: bytes
) -> None:
    asked = {"transactional_id": None, "transaction_timeout": 1000}
    async with running_broker(chroot, tmp_path) as broker, opened(chroot) as session, connected(broker) as client:
        await session.set(paths.PRODUCER_ID_BLOCK, block)
        answer = await client.call(Api.InitProducerId, asked)
        assert (error_name(answer.error_code), answer.producer_id) == ("UNKNOWN_SERVER_ERROR", -1)
        assert paths.PRODUCER_ID_BLOCK in caplog.text
        assert (await session.get(paths.PRODUCER_ID_BLOCK))[0] == block
        await session.set(paths.PRODUCER_ID_BLOCK, b"")
        assert (await client.call(Api.InitProducerId, asked)).producer_id == 0


def without_id(data: bytes, partitions: int) -> bytes:
    """As TopicCommand --alter of 0.8.2.2 and 1.1.1 writes it."""
    assert "topic_id" in json.loads(data)
    return json.dumps({"version": 1, "partitions": {str(n): [1] for n in range(partitions)}}).encode()


async def has_id(session: ZooKeeperSession, topic_id: str) -> None:
    async def written() -> bool:
        return json.loads((await session.get(paths.topic("t")))[0]).get("topic_id") == topic_id

    await until(written, WAIT_MS / 1000, "the controller to write the id back")


@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "while no broker runs"])
async def test_topic_grown_by_an_old_tool_keeps_its_id_and_records(chroot: str, tmp_path: Path, running: bool) -> None:
    async with opened(chroot) as session, AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path))
        await created(broker, "t", partitions=3)
        await send_values(broker, TP, [b"%d" % n for n in range(30)])
        data, _ = await session.get(paths.topic("t"))
        topic_id = json.loads(data)["topic_id"]
        if not running:
            await stack.aclose()
        await session.set(paths.topic("t"), without_id(data, 5))
        if not running:
            broker = await stack.enter_async_context(running_broker(chroot, tmp_path))
        await has_id(session, topic_id)
        await led(broker, TopicPartition("t", 4))
        await led(broker, TP)
        assert await read_values(broker, TP) == [b"%d" % n for n in range(30)]
        await send_values(broker, TP, [b"on"])
        assert len(await read_values(broker, TP)) == 31


async def test_topic_recreated_by_an_old_tool_is_another_topic(chroot: str, tmp_path: Path) -> None:
    async with opened(chroot) as session, AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path))
        await created(broker, "t")
        await send_values(broker, TP, [b"old"])
        before = broker.cluster.snapshot.topics["t"].topic_id
        await session.create(paths.topic_deletion("t"), b"")
        await gone(session, paths.topic_deletion("t"))
        await session.create(paths.topic("t"), GOOD_REPLICAS)
        # Until its view changes, the broker still leads the deleted topic.
        assert await broker.cluster.until(lambda now: "t" in now.topics and now.topics["t"].topic_id != before, WAIT_MS)
        await led(broker, TP)
        assert await read_values(broker, TP) == []


async def test_deletion_by_znode_deletes_unknown_children_and_obeys_the_setting(chroot: str, tmp_path: Path) -> None:
    async with opened(chroot) as session, running_broker(chroot, tmp_path) as broker:
        await created(broker, "t")
        await created(broker, "u")
        await session.create("/brokers/topics/t/partitions/0/state/odd", b"")
        await session.create("/brokers/topics/t/notes", b"")
        for name in ("t", "nosuch", "a b"):
            await session.create(paths.topic_deletion(name), b"")
        for path in (paths.topic("t"), *map(paths.topic_deletion, ("t", "nosuch", "a b"))):
            await gone(session, path)
        assert await broker.cluster.until(lambda now: set(now.topics) == {"u"}, WAIT_MS)
    settings = {"delete.topic.enable": "false"}
    async with opened(chroot) as session, running_broker(chroot, tmp_path, settings=settings) as broker:
        await led(broker, TopicPartition("u", 0))
        await session.create(paths.topic_deletion("u"), b"")
        await gone(session, paths.topic_deletion("u"))
        assert set(broker.cluster.snapshot.topics) == {"u"}
        await created(broker, "v")


async def test_preferred_replica_election_by_znode_is_carried_out_and_the_node_removed(
    chroot: str, tmp_path: Path
) -> None:
    wish = {"version": 1, "partitions": [{"topic": "t", "partition": 0}, {"topic": "none", "partition": 0}]}
    async with opened(chroot) as session, running_broker(chroot, tmp_path) as one:
        async with running_broker(chroot, tmp_path, node_id=2) as two:
            assert await one.cluster.until(lambda s: set(s.brokers) == {1, 2}, WAIT_MS)
            await one.cluster.create_topic("t", partitions=-1, replication_factor=-1, assignment=[[2, 1], [2, 1]])
            await led(two, TP)
            await send_values(two, TP, [b"kept"])
        for number in (0, 1):
            await led(one, TopicPartition("t", number))
        async with running_broker(chroot, tmp_path, node_id=2) as two:
            assert await one.cluster.until(lambda s: set(s.topics["t"].partitions[0].isr) == {1, 2}, WAIT_MS)
            await session.create(paths.PREFERRED_ELECTION, json.dumps(wish).encode())
            await gone(session, paths.PREFERRED_ELECTION)
            await led(two, TP)
            assert await read_values(two, TP) == [b"kept"]
            assert [p.leader for p in two.cluster.snapshot.topics["t"].partitions] == [2, 1]
            await session.create(paths.PREFERRED_ELECTION, b"garbage")
            await gone(session, paths.PREFERRED_ELECTION)


async def test_reassignment_by_znode_is_carried_out_and_waits_for_stopped_brokers(
    chroot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def wish(*items: tuple[str, int, list[int]]) -> bytes:
        listed = [{"topic": topic, "partition": number, "replicas": to} for topic, number, to in items]
        return json.dumps({"version": 1, "partitions": listed}).encode()

    async with opened(chroot) as session, running_broker(chroot, tmp_path) as one:
        await created(one, "t", partitions=3)
        await send_values(one, TP, [b"kept"])
        async with running_broker(chroot, tmp_path, node_id=2) as two:
            assert await one.cluster.until(lambda s: set(s.brokers) == {1, 2}, WAIT_MS)
            await session.create(
                paths.REASSIGNMENT, wish(("t", 0, [2]), ("t", 1, [2, 1]), ("t", 2, [3]), ("none", 0, [1]))
            )
            await led(two, TP)
            assert await read_values(two, TP) == [b"kept"]

            async def waits() -> bool:
                return json.loads((await session.get(paths.REASSIGNMENT))[0]) == json.loads(wish(("t", 2, [3])))

            await until(waits, WAIT_MS / 1000, "the feasible part to be done and the rest to wait")
            partitions = two.cluster.snapshot.topics["t"].partitions
            assert [p.replicas for p in partitions] == [(2,), (2, 1), (1,)]
            assert [p.leader for p in partitions] == [2, 1, 1]
            assert "wait for brokers [3]" in caplog.text
            async with running_broker(chroot, tmp_path, node_id=3) as three:
                await gone(session, paths.REASSIGNMENT)
                await led(three, TopicPartition("t", 2))
            await session.create(paths.REASSIGNMENT, b"garbage")
            await created(two, "on", partitions=-1, replication_factor=-1, assignment=[[2]])
            assert (await session.get(paths.REASSIGNMENT))[0] == b"garbage"
