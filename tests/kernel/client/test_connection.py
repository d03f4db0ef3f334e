"""Our connections: negotiation, pipelining, and what happens when the other side is late, gone or garbled."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kernel.broker.server.handlers import RequestContext
from kernel.broker.server.server import BrokerServer
from kernel.client.client import ClusterClient
from kernel.client.connection import BrokerConnection, Disconnected, RequestTimedOut, UnsupportedByBroker
from kernel.errors import Unavailable
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.errors import ErrorCode, ProtocolError
from kernel.wire.versions import Api
from tests.support.trace.tracers import ListTracer
from tests.support.wire.frames import read_frame
from tests.support.wire.servers import serving

HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
Reply = Callable[[bytes], bytes | None]


@asynccontextmanager
async def replying(reply: Reply) -> AsyncIterator[int]:
    """A server that answers each frame with `reply(frame)`, or closes on None; yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (answer := reply(await read_frame(reader))) is not None:
                writer.write(answer)
        except (EOFError, ConnectionError):
            pass
        finally:  # also when the test ends first
            writer.close()

    async with serving(serve) as port:
        yield port


def versions(frame: bytes, *rows: tuple[int, int, int]) -> bytes:
    _, version, correlation_id = struct.unpack_from(">hhi", frame)
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in rows]
    return codec.encode_response(Api.ApiVersions, version, correlation_id, {"api_keys": keys})


async def closed(connection: BrokerConnection) -> None:
    connection.close()
    await connection.wait_closed()


async def test_versions_are_the_highest_that_both_sides_speak() -> None:
    offered = ((18, 0, 3), (12, 1, 2), (0, 0, 2), (1, 0, 3), (11, 5, 99))
    async with replying(lambda frame: versions(frame, *offered)) as port:
        connection = await BrokerConnection.open("127.0.0.1", port, "c")
        assert connection.version_of(Api.Heartbeat) == 2
        assert connection.version_of(Api.JoinGroup) == 9
        assert connection.version_of(Api.Fetch) == 3
        for api in (Api.Produce, Api.Metadata):  # too old for us; not offered
            with pytest.raises(UnsupportedByBroker, match=api.name):
                connection.version_of(api)
        await closed(connection)


@pytest.mark.parametrize("highest", [0, 1, 2])
async def test_broker_with_only_old_api_versions_gets_another_request(highest: int) -> None:
    asked = []

    def reply(frame: bytes) -> bytes:
        _, version, correlation_id = struct.unpack_from(">hhi", frame)
        asked.append(version)
        if version <= highest:
            return versions(frame, (18, 0, highest), (12, 0, 4))
        keys = [{"api_key": 18, "min_version": 0, "max_version": highest}] if highest else []
        return codec.encode_response(Api.ApiVersions, 0, correlation_id, {"error_code": 35, "api_keys": keys})

    async with replying(reply) as port:
        connection = await BrokerConnection.open("127.0.0.1", port, "c")
        assert connection.version_of(Api.Heartbeat) == 4
        assert asked == [3, highest]
        await closed(connection)


async def test_late_answer_closes_the_connection_with_an_error_that_names_the_wait() -> None:
    def reply(frame: bytes) -> bytes:
        return versions(frame, (12, 0, 4)) if frame[:2] == b"\0\x12" else b""

    tracer = ListTracer()
    async with replying(reply) as port:
        connection = await BrokerConnection.open("127.0.0.1", port, "c", tracer=tracer)
        connection.member = "m1"
        other = asyncio.create_task(connection.call(Api.Heartbeat, HEARTBEAT))
        with pytest.raises(RequestTimedOut, match=r"Heartbeat was not answered .* within 50 ms"):
            await connection.call(Api.Heartbeat, HEARTBEAT, timeout_ms=50, group="g")
        with pytest.raises(RequestTimedOut):
            await other
        assert connection.closed
        with pytest.raises(Disconnected):
            await connection.call(Api.Heartbeat, HEARTBEAT)
        await connection.wait_closed()
    last = tracer.of("request_answered")[1:]
    assert [(e["api"], e["error"], e["member"]) for e in last] == [("Heartbeat", "TIMED_OUT", "m1")] * 2
    assert {event.get("group") for event in last} == {"g", None}


async def test_answer_that_arrived_in_time_counts_though_the_process_was_stopped_past_the_timeout() -> None:
    """As in Kafka's clients, which handle what they have received before they look for what is late."""
    answer_now = threading.Event()

    def serve(listening: socket.socket) -> None:
        client, _ = listening.accept()
        with client, client.makefile("rb") as reader:
            for _ in range(2):
                frame = reader.read(int.from_bytes(reader.read(4)))
                if frame[:2] == b"\0\x12":
                    client.sendall(versions(frame, (12, 0, 4)))
            answer_now.wait(30)
            correlation_id = struct.unpack_from(">i", frame, 4)[0]
            client.sendall(codec.encode_response(Api.Heartbeat, 4, correlation_id, {"error_code": 27}))
            reader.read()  # until the client has closed

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = threading.Thread(target=serve, args=(listening,), daemon=True)
        server.start()
        connection = await BrokerConnection.open("127.0.0.1", listening.getsockname()[1], "c")
        timed = asyncio.create_task(connection.call(Api.Heartbeat, HEARTBEAT, timeout_ms=1000))
        await asyncio.sleep(0)  # the request is sent
        answer_now.set()
        assert connection._transport is not None
        answered = select.select([connection._transport.get_extra_info("socket")], [], [], 30)
        time.sleep(1.1)  # noqa: ASYNC251  # the fault: the loop stands still past the timeout
        assert answered[0]
        assert (await timed).error_code is ErrorCode.rebalance_in_progress
        assert not connection.closed
        await closed(connection)
        server.join(30)


async def test_answer_to_a_cancelled_call_is_dropped_and_the_next_one_is_received() -> None:
    waiting: list[asyncio.Future[Mapping[str, Any] | None]] = []

    def parked(_context: RequestContext, _body: Any) -> asyncio.Future[Mapping[str, Any] | None]:
        waiting.append(asyncio.get_running_loop().create_future())
        return waiting[-1]

    server = BrokerServer({Api.JoinGroup: parked, Api.Heartbeat: lambda _c, _b: {"error_code": 27}})
    await server.start()
    connection = await BrokerConnection.open(server.host, server.port, "c")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(connection.call(Api.JoinGroup, {}), 0.05)
    heartbeat = asyncio.create_task(connection.call(Api.Heartbeat, HEARTBEAT))
    await until(lambda: waiting, 30, "the request to arrive")
    waiting[0].set_result({"error_code": 0})
    assert (await heartbeat).error_code is ErrorCode.rebalance_in_progress
    assert not connection.closed
    await closed(connection)
    await server.stop()


async def test_closed_connection_fails_waiting_calls() -> None:
    async with replying(lambda frame: versions(frame, (12, 0, 4)) if frame[:2] == b"\0\x12" else None) as port:
        connection = await BrokerConnection.open("127.0.0.1", port, "c")
        with pytest.raises(Disconnected, match="closed by the broker"):
            await connection.call(Api.Heartbeat, HEARTBEAT)
        assert connection.closed
        await connection.wait_closed()


@pytest.mark.parametrize(
    "nonsense",
    [b"\0\0\0\x04\0\0\0\x63", b"\xff\xff\xff\xff", b"\0\0\0\x06\0\0\0\x02\0\0", b"\0\0\0\x02\0\0"],
    ids=["a request that was never sent", "a negative size", "a body cut short", "no correlation id"],
)
async def test_nonsense_from_a_broker_ends_the_connection(nonsense: bytes) -> None:
    async with replying(lambda frame: versions(frame, (12, 0, 4)) if frame[:2] == b"\0\x12" else nonsense) as port:
        connection = await BrokerConnection.open("127.0.0.1", port, "c")
        with pytest.raises((ProtocolError, Disconnected)):
            await connection.call(Api.Heartbeat, HEARTBEAT, timeout_ms=5000)
        assert connection.closed
        await connection.wait_closed()


async def test_refused_connection_is_unavailable_and_names_the_address(unused_port: int) -> None:
    with pytest.raises(Unavailable, match=f"127.0.0.1:{unused_port}"):
        await BrokerConnection.open("127.0.0.1", unused_port, "c")
    client = ClusterClient([("127.0.0.1", unused_port)], "c")
    with pytest.raises(Unavailable, match=f"127.0.0.1:{unused_port}"):
        await client.refresh()
    await client.close()


async def test_silent_broker_is_unavailable_in_time() -> None:
    async with replying(lambda _: b"") as port:
        with pytest.raises(Unavailable, match="did not answer within 60 ms"):
            await BrokerConnection.open("127.0.0.1", port, "c", timeout_ms=60)


async def test_cluster_client_tries_the_next_broker_and_reopens_broken_connections(unused_port: int) -> None:
    server = BrokerServer({})

    def metadata(_context: RequestContext, _body: Any) -> Mapping[str, Any]:
        partition = {"partition_index": 0, "leader_id": 7, "leader_epoch": 3}
        return {
            "brokers": [{"node_id": 7, "host": server.host, "port": server.port}],
            "topics": [
                {"name": "t", "partitions": [partition]},
                {"name": "u", "error_code": ErrorCode.unknown_topic_or_partition},
            ],
        }

    server.mount({Api.Metadata: metadata})
    await server.start()
    client = ClusterClient([("127.0.0.1", unused_port), (server.host, server.port)], "c")
    await client.refresh(["t", "u"])
    assert client.metadata.errors == {"u": "UNKNOWN_TOPIC_OR_PARTITION"}
    first = await client.connection(7)
    assert await client.connection(7) is first
    client.member = "m"
    assert first.member == "m"
    first.close()
    second = await client.connection(7)
    assert second is not first
    assert second.member == "m"
    with pytest.raises(Unavailable, match="broker 8 is not in the metadata"):
        await client.connection(8)
    await client.close()
    await server.stop()


async def test_receive_buffer_size_is_set():
    server = BrokerServer({})
    await server.start()
    sizes = []
    for asked in (None, 50_000):
        connection = await BrokerConnection.open(server.host, server.port, "test", receive_buffer_bytes=asked)
        socket_ = connection._transport.get_extra_info("socket")
        sizes.append(socket_.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
        connection.close()
        await connection.wait_closed()
    await server.stop()
    left_alone, asked_for = sizes
    assert asked_for in (50_000, 100_000)  # Linux doubles it for its own use
    assert left_alone != asked_for


async def test_concurrent_calls_of_a_cluster_client_open_one_connection():
    server = BrokerServer({})
    await server.start()
    client = ClusterClient([(server.host, server.port)], "c")
    first, second = await asyncio.gather(client.any_connection(), client.any_connection())
    await client.close()
    await server.stop()
    assert first is second
    assert first.closed
