"""Deferred responses: completed once, for one listener; and what the server does with them."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kernel.broker.server.handlers import DeferredResponse, Encoded, RequestContext
from kernel.broker.server.server import BrokerServer
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.versions import Api
from tests.support.wire.frames import read_frame

HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "m"}


@pytest.mark.parametrize("before", [False, True])
def test_response_reaches_its_listener_whether_it_completes_before_or_after(before: bool) -> None:
    later: DeferredResponse[int] = DeferredResponse()
    taken: list[int] = []
    if before:
        later.complete(7)
    later.on_complete(taken.append)
    if not before:
        assert taken == []
        later.complete(7)
    assert taken == [7]


async def test_deferred_response_can_be_awaited() -> None:
    later: DeferredResponse[int] = DeferredResponse()
    waiting = asyncio.ensure_future(later)
    await asyncio.sleep(0)
    later.complete(7)
    assert await waiting == 7


async def test_response_whose_waiter_was_cancelled_is_dropped() -> None:
    later: DeferredResponse[int] = DeferredResponse()
    waiting = asyncio.ensure_future(later)
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    later.complete(7)
    assert waiting.cancelled()


@pytest.mark.parametrize("before", [False, True])
def test_listener_learns_that_a_response_has_failed(before: bool) -> None:
    later: DeferredResponse[int] = DeferredResponse()
    seen: list[str] = []
    if before:
        later.fail()
    later.on_complete(lambda _: seen.append("given"), lambda: seen.append("lost"))
    if not before:
        later.fail()
    assert seen == ["lost"]


async def test_awaiting_a_failed_response_is_cancelled() -> None:
    later: DeferredResponse[int] = DeferredResponse()
    waiting = asyncio.ensure_future(later)
    await asyncio.sleep(0)
    later.fail()
    await asyncio.wait([waiting])
    assert waiting.cancelled()


class Parking:
    """Handlers that park every heartbeat."""

    def __init__(self) -> None:
        self.parked: list[tuple[RequestContext, DeferredResponse[Any]]] = []

    def heartbeat(self, context: RequestContext, _: Any) -> DeferredResponse[Any]:
        later: DeferredResponse[Any] = DeferredResponse()
        self.parked.append((context, later))
        return later

    def answer(self) -> None:
        (context, later), *self.parked = self.parked
        whole = codec.encode_response(context.api, context.version, 0, {"error_code": 27})
        later.complete(Encoded(whole[8:]))


@asynccontextmanager
async def asked(*correlation_ids: int) -> AsyncIterator[tuple[Parking, BrokerServer, StreamReader, StreamWriter]]:
    """A server that received these requests on one connection, and has parked the first."""
    parking = Parking()
    server = BrokerServer({Api.Heartbeat: parking.heartbeat})
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for correlation_id in correlation_ids:
        writer.write(codec.encode_request(Api.Heartbeat, 4, correlation_id, "c", HEARTBEAT))
    await until(lambda: parking.parked, 60, "the request to be served")
    yield parking, server, reader, writer
    writer.close()
    await server.stop()


async def test_connection_serves_buffered_requests_after_the_deferred_response() -> None:
    async with asked(7, 8) as (parking, _, reader, _):
        for correlation_id in (7, 8):
            await until(lambda: parking.parked, 60, "the request to be served")
            assert len(parking.parked) == 1  # the next one waits until this one is answered
            parking.answer()
            expected = codec.encode_response(Api.Heartbeat, 4, correlation_id, {"error_code": 27})
            assert await read_frame(reader) == expected[4:]


async def test_response_to_a_closed_client_is_dropped() -> None:
    async with asked(7) as (parking, server, _, writer):
        writer.close()
        await writer.wait_closed()
        await until(lambda: not server.connections, 60, "the connection to close")
        parking.answer()
        assert not server.connections


async def test_a_connection_whose_answer_is_lost_is_closed() -> None:
    async with asked(7) as (parking, _, reader, _):
        ((_, later),) = parking.parked
        later.fail()
        assert await asyncio.wait_for(reader.read(), 60) == b""
