"""The server with stub handlers: order, muting, bounds, and bad input that affects only its connection."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from kernel.broker.loop import readiness
from kernel.broker.loop.poller import SelectorPoller, poller
from kernel.broker.server.handlers import Encoded, RequestContext
from kernel.broker.server.served_connection import READ_AHEAD_BYTES
from kernel.broker.server.server import BrokerServer, ServerLimits
from kernel.client.connection import BrokerConnection
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.errors import ErrorCode, ProtocolError
from kernel.wire.versions import Api
from tests.support.wire.frames import read_frame

HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}
FETCH = {"max_wait": 1000, "topics": ()}


@pytest.fixture(autouse=True, params=[poller, SelectorPoller], ids=["of-this-system", "of-any-system"])
def _polls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "poller", request.param)


class Stub:
    """Heartbeats are answered at once; everything else waits for `release`."""

    def __init__(self) -> None:
        self.seen: list[RequestContext] = []
        self.waiting: list[asyncio.Future[Mapping[str, Any] | None]] = []

    def at_once(self, context: RequestContext, _body: Any) -> Mapping[str, Any]:
        self.seen.append(context)
        return {"error_code": ErrorCode.none}

    def at_length(self, context: RequestContext, _body: Any) -> Mapping[str, Any]:
        self.seen.append(context)
        return {"error_code": ErrorCode.none, "assignment": bytes(100_000)}

    def parked(self, context: RequestContext, _body: Any) -> asyncio.Future[Mapping[str, Any] | None]:
        self.seen.append(context)
        future: asyncio.Future[Mapping[str, Any] | None] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        return future

    def release(self, answer: Mapping[str, Any] | None) -> None:
        self.waiting.pop(0).set_result(answer)


@asynccontextmanager
async def serving(stub: Stub, **limits: int) -> AsyncIterator[BrokerServer]:
    handlers = {
        Api.Heartbeat: stub.at_once,
        Api.SyncGroup: stub.at_length,
        Api.JoinGroup: stub.parked,
        Api.Fetch: stub.parked,
    }
    server = BrokerServer(handlers, limits=ServerLimits(**limits))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def raw(server: BrokerServer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection(server.host, server.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def run(test: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(test(), 300))


async def test_responses_keep_the_order_of_requests_while_one_waits() -> None:
    stub = Stub()
    async with serving(stub) as server, raw(server) as (reader, writer):
        writer.write(codec.encode_request(Api.JoinGroup, 5, 1, "c", {}))
        writer.write(codec.encode_request(Api.Heartbeat, 3, 2, "c", HEARTBEAT))
        await until(lambda: stub.waiting, 60, "the join to be parked")
        assert [context.api for context in stub.seen] == [Api.JoinGroup], "the heartbeat is not even read"
        stub.release({"error_code": 27, "member_id": "m"})
        assert codec.decode_response(Api.JoinGroup, 5, await read_frame(reader))[0] == 1
        assert codec.decode_response(Api.Heartbeat, 3, await read_frame(reader))[0] == 2
        assert stub.seen[1] == (stub.seen[0].connection_id, "c", "127.0.0.1", Api.Heartbeat, 3, 2)


async def test_many_pipelined_requests_are_all_answered_in_order() -> None:
    async with serving(Stub()) as server, raw(server) as (reader, writer):
        writer.write(b"".join(codec.encode_request(Api.Heartbeat, 4, n, "c", HEARTBEAT) for n in range(500)))
        answered = [codec.decode_response(Api.Heartbeat, 4, await read_frame(reader))[0] for _ in range(500)]
        assert answered == list(range(500))


async def test_closed_connection_cancels_a_fetch_but_leaves_a_join_parked() -> None:
    stub = Stub()
    async with serving(stub) as server:
        for api, body in ((Api.Fetch, FETCH), (Api.JoinGroup, {})):
            async with raw(server) as (_, writer):
                writer.write(codec.encode_request(api, 5, 1, "c", body))
                await until(lambda api=api: stub.seen and stub.seen[-1].api is api, 60, "the request")
        await until(lambda: not server.connections, 60, "both connections to close")
        fetch, join = stub.waiting
        assert fetch.cancelled()
        assert not join.done()
        join.set_result({"error_code": 0})  # its answer cannot be sent, and nothing happens


@pytest.mark.parametrize("turns", range(4))
async def test_connection_accepted_while_the_server_stops_is_closed(turns: int) -> None:
    """Accepted, but not yet known when all others are closed: original consumers reconnect at that moment."""
    loop = asyncio.get_running_loop()
    server = BrokerServer({})
    await server.start()
    clients = [socket.create_connection((server.host, server.port)) for _ in range(5)]
    for _ in range(turns):
        await asyncio.sleep(0)
    await server.stop()
    for client in clients:
        client.setblocking(False)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(loop.sock_recv(client, 1), 60) == b""
        client.close()


async def test_no_answer_is_sent_for_none() -> None:
    stub = Stub()
    async with serving(stub) as server, raw(server) as (reader, writer):
        writer.write(codec.encode_request(Api.Fetch, 5, 1, "c", FETCH))
        writer.write(codec.encode_request(Api.Heartbeat, 0, 2, "c", HEARTBEAT))
        await until(lambda: stub.waiting, 60, "the fetch")
        stub.release(None)
        assert codec.decode_response(Api.Heartbeat, 0, await read_frame(reader))[0] == 2


@pytest.mark.parametrize("later", [False, True])
async def test_encoded_answer_is_written_behind_the_correlation_id(later: bool) -> None:
    async def waits(context: RequestContext, _body: Any) -> Encoded:
        await asyncio.sleep(0)
        return at_once(context, _body)

    def at_once(context: RequestContext, _body: Any) -> Encoded:
        return Encoded(codec.encode_response(context.api, context.version, 0, {"error_code": 27})[8:])

    server = BrokerServer({Api.Heartbeat: waits if later else at_once})
    await server.start()
    async with raw(server) as (reader, writer):
        for version in range(5):
            writer.write(codec.encode_request(Api.Heartbeat, version, 7, "c", HEARTBEAT))
            expected = codec.encode_response(Api.Heartbeat, version, 7, {"error_code": 27})
            assert await read_frame(reader) == expected[4:]
    await server.stop()


async def test_api_versions_names_what_is_mounted() -> None:
    async with serving(Stub()) as server:
        connection = await BrokerConnection.open(server.host, server.port, "c")
        assert connection.offered == {1: (0, 17), 11: (0, 9), 12: (0, 4), 14: (0, 5), 18: (0, 4)}
        answer = await connection.call(Api.ApiVersions, {"client_software_name": "no spaces!"}, version=3)
        assert answer.error_code is ErrorCode.invalid_request
        connection.close()
        await connection.wait_closed()


async def test_unknown_version_of_api_versions_is_answered_in_version_zero() -> None:
    async with serving(Stub()) as server, raw(server) as (reader, writer):
        frame = struct.pack(">hhih", 18, 99, 5, -1) + b"\0whatever"
        writer.write(struct.pack(">i", len(frame)) + frame)
        correlation_id, answer = codec.decode_response(Api.ApiVersions, 0, await read_frame(reader))
        assert (correlation_id, answer.error_code) == (5, ErrorCode.unsupported_version)
        assert [(k.api_key, k.min_version, k.max_version) for k in answer.api_keys] == [(18, 0, 4)]
        writer.write(codec.encode_request(Api.Heartbeat, 0, 6, "c", HEARTBEAT))
        assert codec.decode_response(Api.Heartbeat, 0, await read_frame(reader))[0] == 6, "it goes on after that"


BAD_FRAMES = {
    "version that we do not speak": struct.pack(">ihhih", 10, 12, 99, 1, -1),
    "API that we do not know": struct.pack(">ihhih", 10, 9999, 0, 1, -1),
    "API without a handler": codec.encode_request(Api.Metadata, 5, 1, "c", {}),
    "negative size": struct.pack(">i", -5),
    "size above the limit": struct.pack(">i", 20_000),
    "empty frame": struct.pack(">i", 0),
    "body cut short": struct.pack(">ihhih", 10, 12, 0, 1, -1),
    "HTTP": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TLS hello": bytes.fromhex("16030100ba010000b60303") + bytes(60),
}


@pytest.mark.parametrize("sent", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
async def test_bad_frame_closes_only_its_own_connection(sent: bytes) -> None:
    async with (
        serving(Stub(), frame_bytes_max=10_000) as server,
        raw(server) as (reader, writer),
        raw(server) as (other_reader, other_writer),
    ):
        writer.write(sent)
        assert await reader.read() == b"", "closed without an answer"
        other_writer.write(codec.encode_request(Api.Heartbeat, 0, 1, "c", HEARTBEAT))
        await read_frame(other_reader)


async def test_mutated_frames_never_stop_the_server() -> None:
    rng = random.Random(7)
    stub = Stub()
    good = [
        codec.encode_request(Api.Heartbeat, 4, 1, "client", HEARTBEAT),
        codec.encode_request(Api.JoinGroup, 7, 1, "client", {"protocols": [{"name": "range", "metadata": b"x"}]}),
        codec.encode_request(Api.Fetch, 12, 1, "client", FETCH),
        codec.encode_request(Api.ApiVersions, 3, 1, "client", {"client_software_name": "x"}),
    ]
    async with serving(stub, frame_bytes_max=10_000) as server:
        for _ in range(150):
            frame = bytearray(rng.choice(good))
            for _ in range(rng.randint(1, 5)):
                frame[rng.randrange(len(frame))] = rng.randrange(256)
            async with raw(server) as (_, writer):
                writer.write(bytes(frame))
                await writer.drain()
        async with raw(server) as (reader, writer):
            writer.write(codec.encode_request(Api.Heartbeat, 0, 1, "c", HEARTBEAT))
            await read_frame(reader)
        await until(lambda: len(server.connections) <= 1, 60, "the others to leave")
        for future in stub.waiting:
            future.cancel()


async def test_muted_connection_is_read_ahead_up_to_its_bound() -> None:
    stub = Stub()
    async with serving(stub) as server, raw(server) as (reader, writer):
        writer.write(codec.encode_request(Api.JoinGroup, 5, 1, "c", {}))
        await until(lambda: stub.waiting, 60, "the join")
        (connection,) = server.connections
        flood = codec.encode_request(Api.Heartbeat, 4, 2, "c", HEARTBEAT) * 40_000  # 1.6 MB
        writer.write(flood)
        await until(lambda: len(connection._buffer) > READ_AHEAD_BYTES, 60, "the bound to be reached")
        held = len(connection._buffer)
        assert held <= READ_AHEAD_BYTES + 512 * 1024, "at most one read beyond the bound"
        stub.release({"error_code": 0})
        assert codec.decode_response(Api.JoinGroup, 5, await read_frame(reader))[0] == 1
        for _ in range(40_000):
            await read_frame(reader)


#: So many requests have 30 MB of answers.
UNREAD = 300


async def leave_unread(server: BrokerServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Request so much, without reading, that the server waits for its client."""
    reader._transport.pause_reading()  # type: ignore[attr-defined]  # asyncio has no public way to it
    writer.write(codec.encode_request(Api.SyncGroup, 3, 2, "c", {}) * UNREAD)
    await until(lambda: any(c.is_unread for c in server.connections), 60, "the server to wait for its reader")


async def park(stub: Stub, writer: asyncio.StreamWriter) -> None:
    """Send a request that is not answered yet."""
    writer.write(codec.encode_request(Api.JoinGroup, 3, 1, "c", {}))
    await until(lambda: stub.waiting, 60, "the request to be parked")


async def test_client_that_does_not_read_is_not_served_indefinitely() -> None:
    stub = Stub()
    async with serving(stub) as server, raw(server) as (reader, writer):
        await leave_unread(server, reader, writer)
        assert len(server.connections) == 1
        served: list[int] = []

        def has_stopped() -> bool:
            served.append(len(stub.seen))
            return len(served) >= 10 and len(set(served[-10:])) == 1

        await until(has_stopped, 60, lambda: f"no more to be served: {served}")
        assert served[-1] < UNREAD
        writer.transport.abort()


async def test_handler_that_fails_closes_its_connection_and_is_reported() -> None:
    def fails(_context: RequestContext, _body: Any) -> Mapping[str, Any]:
        raise RuntimeError("a bug")

    async def fails_later(_context: RequestContext, _body: Any) -> Mapping[str, Any]:
        await asyncio.sleep(0)
        raise RuntimeError("a bug")

    async def refuses(_context: RequestContext, _body: Any) -> Mapping[str, Any]:
        raise ProtocolError("not like this")

    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    server = BrokerServer({Api.Heartbeat: fails, Api.SyncGroup: fails_later, Api.LeaveGroup: refuses})
    await server.start()
    for api, reports in ((Api.Heartbeat, 1), (Api.SyncGroup, 2), (Api.LeaveGroup, 2)):
        async with raw(server) as (reader, writer):
            writer.write(codec.encode_request(api, 0, 1, "c", {}))
            assert await reader.read() == b""
            assert len(reported) == reports
    await server.stop()


async def test_connection_above_the_limit_is_refused() -> None:
    async with serving(Stub(), connections_max=1) as server, raw(server):
        await until(lambda: server.connections, 60, "the first connection")
        async with raw(server) as (reader, _):
            with pytest.raises((EOFError, ConnectionResetError)):
                await read_frame(reader)
        assert len(server.connections) == 1


async def test_idle_connection_is_closed() -> None:
    async with serving(Stub(), idle_ms_max=100) as server, raw(server) as (reader, _):
        assert await reader.read() == b""


async def test_idle_connection_is_closed_even_if_its_client_never_reads() -> None:
    async with serving(Stub(), idle_ms_max=300) as server, raw(server) as (reader, writer):
        await leave_unread(server, reader, writer)
        await until(lambda: not server.connections, 60, "the server to close the connection")


async def test_idle_connection_is_closed_even_if_its_request_is_never_answered() -> None:
    """As by Kafka. Nothing is read after the request, so the server cannot see that its client has gone."""
    stub = Stub()
    async with serving(stub, idle_ms_max=300) as server, raw(server) as (_, writer):
        await park(stub, writer)
        writer.write(codec.encode_request(Api.SyncGroup, 3, 2, "c", {}) * 10_000)
        writer.close()
        await until(lambda: not server.connections, 60, "the server to close the connection")


async def test_answering_is_activity() -> None:
    """A client that has waited longer than connections may be idle is not closed when it is answered."""
    stub = Stub()
    async with serving(stub) as server, raw(server) as (reader, writer):
        await park(stub, writer)
        (connection,) = server.connections
        connection.active_at = server.readiness.now = 0.0  # no client has sent anything for long
        stub.release({"error_code": ErrorCode.none})
        await read_frame(reader)
        assert connection.active_at > 0


async def test_reading_a_long_answer_slowly_is_activity() -> None:
    async with serving(Stub()) as server, raw(server) as (reader, writer):
        await leave_unread(server, reader, writer)
        (connection,) = server.connections
        connection.active_at = 0.0
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        rest = asyncio.create_task(reader.read())  # a StreamReader by itself stops at twice its limit
        await until(lambda: connection.active_at > 0, 60, "the rest to be sent")
        rest.cancel()


async def test_connection_counts_as_active_from_its_acceptance() -> None:
    async with serving(Stub()) as server:
        now = asyncio.get_running_loop().time()
        server.readiness.now = now - 1_000
        async with raw(server):
            await until(lambda: server.connections, 60, "the connection")
            (connection,) = server.connections
            assert connection.active_at >= now


async def test_taken_port_is_named_with_a_remedy() -> None:
    async with serving(Stub()) as server:
        with pytest.raises(EnvironmentFault, match=f"{server.port}.*Choose another port"):
            await BrokerServer({}, port=server.port).bind()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])
def test_host_that_is_not_loopback_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match="loopback"):
        BrokerServer({}, host=host)
