"""Clients whose requests are not served are named in the log, at the default level: once each, and never in a flood."""

from __future__ import annotations

import asyncio
import logging
import struct

import pytest

from kernel.broker.server.server import BrokerServer
from kernel.broker.server.unsupported import PERIOD_S, REMEMBERED_MAX, WARNINGS_MAX, UnsupportedRequests
from kernel.wire import codec
from kernel.wire.errors import ErrorCode, UnsupportedVersion
from kernel.wire.versions import Api
from tests.support.wire.frames import read_frame

HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}


def refused(client_id: str = "c", api_key: int = 0, version: int = 1) -> UnsupportedVersion:
    return UnsupportedVersion(api_key, version, 7, client_id)


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def frame(api_key: int, version: int, client_id: bytes | None) -> bytes:
    name = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    request = struct.pack(">hhi", api_key, version, 1) + name
    return struct.pack(">i", len(request)) + request


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (
            frame(12, 99, b"kafka-node"),
            "client 'kafka-node' at 127.0.0.1 was disconnected: it sent Heartbeat version 99, and this broker serves"
            " versions 0 to 4",
        ),
        (
            frame(17, 0, None),
            "a client without an id at 127.0.0.1 was disconnected: it sent a request of API key 17 version 0, and this"
            " broker does not serve that API",
        ),
        (
            codec.encode_request(Api.Metadata, 5, 1, "c", {}),
            "client 'c' at 127.0.0.1 was disconnected: it sent a request of API key 3 version 5, and this broker does"
            " not serve that API",
        ),
        (
            frame(12, 99, b"\xff\x1b[2J\xe2\x80\xae"),
            "client '\ufffd\\x1b[2J\\u202e' at 127.0.0.1 was disconnected: it sent Heartbeat version 99, and this"
            " broker serves versions 0 to 4",
        ),
    ],
    ids=["version", "api", "no handler", "hostile name"],
)
async def test_client_that_is_not_served_is_named_once(
    caplog: pytest.LogCaptureFixture, sent: bytes, said: str
) -> None:
    server = BrokerServer({Api.Heartbeat: lambda *_: {"error_code": ErrorCode.none}})
    await server.start()
    try:
        for _ in range(3):
            reader, writer = await asyncio.open_connection(server.host, server.port)
            writer.write(sent)
            assert await reader.read() == b"", "closed without an answer"
            writer.close()
    finally:
        await server.stop()
    assert warnings_of(caplog) == [said]


async def test_unknown_version_of_api_versions_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Newer clients begin with it, and then use an older one (KIP-511)."""
    server = BrokerServer({})
    await server.start()
    try:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        request = struct.pack(">hhih", 18, 99, 1, -1) + b"\0"
        writer.write(struct.pack(">i", len(request)) + request)
        assert (await read_frame(reader))[4:6] == struct.pack(">h", ErrorCode.unsupported_version)
        writer.close()
    finally:
        await server.stop()
    assert warnings_of(caplog) == []


def test_each_client_api_and_version_is_named(caplog: pytest.LogCaptureFixture) -> None:
    requests = UnsupportedRequests([Api.Produce, Api.Heartbeat])
    for _ in range(2):
        requests.warn(refused(), "127.0.0.1", 0)
        requests.warn(refused(client_id="another"), "127.0.0.1", 0)
        requests.warn(refused(version=0), "127.0.0.1", 0)
        requests.warn(refused(api_key=12, version=9), "127.0.0.1", 0)
        requests.warn(refused(), "127.0.0.2", 0)
    assert len(warnings_of(caplog)) == 5


def test_clients_with_ever_new_names_cause_few_warnings(caplog: pytest.LogCaptureFixture) -> None:
    requests = UnsupportedRequests([Api.Produce])
    for number in range(10_000):
        requests.warn(refused(f"c{number}"), "127.0.0.1", 100)
    assert len(warnings_of(caplog)) == WARNINGS_MAX + 1
    assert warnings_of(caplog)[-1] == "no further warnings of requests that are not served for up to 60 s"
    requests.warn(refused("c9999"), "127.0.0.1", 100 + PERIOD_S)
    assert "'c9999'" in warnings_of(caplog)[-1], "what was held back is said later"


def test_what_is_remembered_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    requests = UnsupportedRequests([Api.Produce])
    for number in range(2 * REMEMBERED_MAX):
        requests.warn(refused(f"{number}" + "x" * 30_000), "127.0.0.1", number * PERIOD_S)
    assert len(warnings_of(caplog)) == 2 * REMEMBERED_MAX
    assert len(requests._warned) == REMEMBERED_MAX
    assert max(len(client_id) for _, client_id, _, _ in requests._warned) == 100


async def test_served_requests_are_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    server = BrokerServer({Api.Heartbeat: lambda *_: {"error_code": ErrorCode.none}})
    await server.start()
    try:
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(codec.encode_request(Api.Heartbeat, 0, 1, "c", HEARTBEAT))
        await read_frame(reader)
        writer.close()
    finally:
        await server.stop()
    assert warnings_of(caplog) == []
