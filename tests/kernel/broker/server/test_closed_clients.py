"""Clients that send and close: whole requests are carried out, in order, though no client waits for an answer."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coordinator.service import mount as service
from kernel.broker.broker import Broker
from kernel.client.client import ClusterClient
from kernel.client.connection import BrokerConnection
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.kernel.broker.apis.test_data_plane import batch
from tests.kernel.broker.server.test_server import HEARTBEAT, Stub, raw, serving
from tests.support.brokers.live import broker_thread, client_of, create_topics, running_broker

PARTITIONS = 20


def send_and_close(broker: Broker, frames: bytes) -> threading.Thread:
    """Send on a thread, since a blocking send waits for a broker that reads on this event loop."""

    def work() -> None:
        with socket.create_connection((broker.address.host, broker.address.port)) as client:
            client.sendall(frames)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


async def stored(client: ClusterClient) -> int:
    """How many records are in all partitions."""
    connection = await client.any_connection()
    wanted = [{"partition_index": n, "timestamp": -1} for n in range(PARTITIONS)]
    answer = await connection.call(Api.ListOffsets, {"replica_id": -1, "topics": [{"name": "t", "partitions": wanted}]})
    return sum(p.offset for p in answer.topics[0].partitions)


async def until_stored(client: ClusterClient, number: int) -> None:
    async def are_stored() -> bool:
        return await stored(client) >= number

    await until(are_stored, 60, f"{number} records to be stored")
    assert await stored(client) == number


@pytest.mark.parametrize(("number", "record_bytes"), [(100, 100), (500, 20_000)])
async def test_records_without_acks_of_a_client_that_closes_are_all_stored(
    chroot: str, tmp_path: Path, number: int, record_bytes: int
) -> None:
    """Less than the broker reads ahead while it serves a request, and many times as much."""

    def request(n: int) -> bytes:
        data = [{"index": n % PARTITIONS, "records": batch(bytes(record_bytes))}]
        body = {"acks": 0, "timeout": 1000, "topic_data": [{"name": "t", "partition_data": data}]}
        return codec.encode_request(Api.Produce, 9, n, "c", body)

    async with running_broker(chroot, tmp_path) as broker, client_of(broker) as client:
        await create_topics(broker, {"t": PARTITIONS})
        sender = send_and_close(broker, b"".join(map(request, range(number))))
        await until(lambda: not sender.is_alive(), 30, "the client to close")
        await until_stored(client, number)


async def test_commit_and_leave_of_a_client_that_closes_without_reading_are_processed(
    chroot: str, tmp_path: Path
) -> None:
    """A real 4.1.1 empties the group and stores the offset, ten times out of ten."""
    offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]

    async def joined(connection: BrokerConnection, group: str) -> tuple[int, str]:
        """(generation, member id)"""
        join = {"group_id": group, "session_timeout": 30_000, "rebalance_timeout": 30_000, "protocol_type": "consumer"}
        join["protocols"] = [{"name": "range", "metadata": b""}]
        member = await connection.call(Api.JoinGroup, join, version=3)
        assert member.error_code is ErrorCode.none
        sync = {"group_id": group, "generation_id": member.generation_id, "member_id": member.member_id}
        sync["assignments"] = [{"member_id": member.member_id, "assignment": b""}]
        await connection.call(Api.SyncGroup, sync, version=3)
        return member.generation_id, member.member_id

    async def leave(broker: Broker, connection: BrokerConnection, group: str) -> None:
        generation, member_id = await joined(connection, group)
        commit = {"group_id": group, "generation_id_or_member_epoch": generation, "member_id": member_id}
        frames = codec.encode_request(Api.OffsetCommit, 5, 1, "c", {**commit, "topics": offsets})
        frames += codec.encode_request(Api.LeaveGroup, 1, 2, "c", {"group_id": group, "member_id": member_id})
        sender = send_and_close(broker, frames)
        await until(lambda: not sender.is_alive(), 60, "the client to close")

        async def is_empty() -> bool:
            described = await connection.call(Api.DescribeGroups, {"groups": [group]}, version=4)
            return described.groups[0].group_state == "Empty"

        await until(is_empty, 60, "the member to leave")
        wanted = {"group_id": group, "topics": [{"name": "t", "partition_indexes": [0]}]}
        fetched = await connection.call(Api.OffsetFetch, wanted, version=5)
        assert fetched.topics[0].partitions[0].committed_offset == 7

    async with running_broker(chroot, tmp_path, mount=(service.mount,)) as broker, client_of(broker) as client:
        await create_topics(broker, {"t": 1})
        connection = await client.any_connection()

        async def is_coordinator() -> bool:
            answer = await connection.call(Api.FindCoordinator, {"key": "g"}, version=0)
            listed = await connection.call(Api.ListGroups, {}, version=0)
            return answer.error_code is ErrorCode.none and listed.error_code is ErrorCode.none

        await until(is_coordinator, 60, "the coordinator")
        for number in range(10):
            await leave(broker, connection, f"g{number}")


PRODUCES = """
import sys, confluent_kafka
bootstrap, number = sys.argv[1], int(sys.argv[2])
producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "acks": 0, "linger.ms": 0, "log_level": 2})
for n in range(number):
    producer.produce("t", b"%d" % n, partition=n % 20)
    producer.poll(0)
assert producer.flush(60) == 0
"""


def test_librdkafka_loses_nothing_without_acks(chroot: str, tmp_path: Path) -> None:
    scripts, number = 5, 1_000

    async def check(host: str, port: str) -> None:
        client = ClusterClient([(host, int(port))], "test")
        try:
            await until_stored(client, scripts * number)
        finally:
            await client.close()

    with broker_thread(chroot, tmp_path, topics={"t": PARTITIONS}) as bootstrap:
        for _ in range(scripts):
            subprocess.run([sys.executable, "-c", PRODUCES, bootstrap, str(number)], check=True, timeout=300)
        asyncio.run(check(*bootstrap.split(":")))


# -- the server by itself --------------------------------------------------------------------------------------------


async def test_requests_behind_a_fetch_of_a_closed_client_are_served_and_the_fetch_is_cancelled() -> None:
    stub = Stub()
    async with serving(stub) as server:
        async with raw(server) as (_, writer):
            writer.write(codec.encode_request(Api.Fetch, 5, 1, "c", {"max_wait": 1000, "topics": ()}))
            writer.write(codec.encode_request(Api.Heartbeat, 3, 2, "c", HEARTBEAT))
            await until(lambda: stub.waiting, 60, "the fetch")
        await until(lambda: not server.connections, 60, "the connection to close")
        assert stub.waiting[0].cancelled()
        assert [context.api for context in stub.seen] == [Api.Fetch, Api.Heartbeat]


async def test_requests_behind_a_join_of_a_closed_client_are_served_after_the_join() -> None:
    stub = Stub()
    async with serving(stub) as server:
        async with raw(server) as (_, writer):
            writer.write(codec.encode_request(Api.JoinGroup, 5, 1, "c", {}))
            writer.write(codec.encode_request(Api.Heartbeat, 3, 2, "c", HEARTBEAT))
            await until(lambda: stub.waiting, 60, "the join")
        (connection,) = server.connections
        await until(lambda: connection._has_ended, 60, "the server to see the end")
        assert [context.api for context in stub.seen] == [Api.JoinGroup], "still in order"
        stub.release({"error_code": 0})
        await until(lambda: not server.connections, 60, "the connection to close")
        assert [context.api for context in stub.seen] == [Api.JoinGroup, Api.Heartbeat]


async def test_incomplete_request_of_a_closed_client_is_dropped() -> None:
    stub = Stub()
    async with serving(stub) as server:
        async with raw(server) as (_, writer):
            writer.write(codec.encode_request(Api.JoinGroup, 5, 1, "c", {}))
            writer.write(codec.encode_request(Api.Heartbeat, 3, 2, "c", HEARTBEAT)[:-1])
            await until(lambda: stub.waiting, 60, "the join")
        await until(lambda: not server.connections, 60, "the connection to close")
        assert [context.api for context in stub.seen] == [Api.JoinGroup]
        assert not stub.waiting[0].done(), "the join stays parked"


async def test_requests_whose_responses_can_no_longer_be_sent_are_all_served() -> None:
    """A client that closes with unread answers resets the connection; what it sent is still in our receive buffer."""
    number = 300  # 30 MB of answers
    stub = Stub()
    async with serving(stub) as server:
        async with raw(server) as (reader, writer):
            reader._transport.pause_reading()  # type: ignore[attr-defined]  # asyncio has no public way to do it
            writer.write(codec.encode_request(Api.SyncGroup, 3, 2, "c", {}) * number)
            await until(lambda: any(c.is_unread for c in server.connections), 60, "answers to be unread")
            assert len(stub.seen) < number
        await until(lambda: not server.connections, 60, "the connection to close")
        assert len(stub.seen) == number


async def test_client_that_only_stops_sending_is_answered() -> None:
    """`printf ... | nc`."""
    async with serving(Stub()) as server, raw(server) as (reader, writer):
        writer.write(codec.encode_request(Api.Heartbeat, 4, 1, "c", HEARTBEAT) * 3)
        writer.write_eof()
        answers = await reader.read()
        one = codec.encode_response(Api.Heartbeat, 4, 1, {"error_code": 0})
        assert answers == one * 3
