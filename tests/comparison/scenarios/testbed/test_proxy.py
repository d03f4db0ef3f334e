"""The proxy holds bytes back as TCP does, and affects no other connection."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator

import pytest

from comparison.scenarios.testbed.link import Way
from comparison.scenarios.testbed.proxy import LOOPBACK, TcpProxy
from kernel.trace.writer import SilentTracer
from kernel.waiting import until
from tests.support.trace.tracers import ListTracer
from tests.support.wire.servers import Handler, serving

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1024):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def proxy_to(upstream_port: int, tracer: ListTracer | None = None) -> AsyncIterator[TcpProxy]:
    proxy = TcpProxy("link", tracer or SilentTracer())
    await proxy.start(upstream_port)
    try:
        yield proxy
    finally:
        await proxy.stop()


@contextlib.asynccontextmanager
async def proxied(tracer: ListTracer | None = None, *, upstream: Handler = echo) -> AsyncIterator[TcpProxy]:
    async with serving(upstream) as port, proxy_to(port, tracer) as proxy:
        yield proxy


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def answered(streams: Streams, data: bytes) -> bytes:
    reader, writer = streams
    writer.write(data)
    return await asyncio.wait_for(reader.readexactly(len(data)), 20)


async def silent(streams: Streams, for_s: float = 0.15) -> bool:
    with contextlib.suppress(TimeoutError):
        return not await asyncio.wait_for(streams[0].read(1), for_s)
    return True


async def test_proxy_forwards_both_ways() -> None:
    async with proxied() as proxy, connected(proxy.port) as client:
        assert await answered(client, b"hello") == b"hello"


async def test_proxy_delivers_bytes_sent_during_the_cut_at_the_heal() -> None:
    tracer = ListTracer()
    async with proxied(tracer) as proxy, connected(proxy.port) as client:
        assert await answered(client, b"before") == b"before"
        proxy.cut()
        client[1].write(b"during")
        assert await silent(client)
        proxy.heal()
        assert await asyncio.wait_for(client[0].readexactly(6), 20) == b"during"
    assert [event["kind"] for event in tracer.events] == ["link_cut", "link_healed"]


@pytest.mark.parametrize("answering", [False, True])
@pytest.mark.parametrize("ways", [frozenset(Way), frozenset({Way.TO_UPSTREAM})], ids=["both", "to-upstream"])
async def test_proxy_holds_a_reset_like_bytes(ways: frozenset[Way], *, answering: bool) -> None:
    """Both as the client's stream ends, and when the upstream writes to it."""
    ended = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            with contextlib.suppress(OSError):
                while await reader.read(1024):
                    pass
            ended.set()
        finally:
            writer.close()

    async with proxied(upstream=upstream) as proxy:
        _, writer = await asyncio.open_connection(LOOPBACK, proxy.port)
        await until(lambda: bool(writers), 60, "the upstream to be reached")
        proxy.cut(ways=ways)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        if answering:
            writers[0].write(b"late" * 100)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ended.wait(), 0.15)
        assert proxy.links == 1
        proxy.heal()
        await asyncio.wait_for(ended.wait(), 20)
        await until(lambda: proxy.links == 0, 60, "the link to end")


async def test_proxy_lets_a_connection_made_during_the_cut_through_at_the_heal() -> None:
    async with proxied() as proxy:
        proxy.cut()
        async with connected(proxy.port) as client:
            client[1].write(b"late")
            assert await silent(client)
            proxy.heal()
            assert await asyncio.wait_for(client[0].readexactly(4), 20) == b"late"


async def test_proxy_cuts_only_the_requested_connections() -> None:
    async with proxied() as proxy, connected(proxy.port) as cut_off, connected(proxy.port) as other:
        assert await answered(cut_off, b"1") == b"1"
        assert await answered(other, b"1") == b"1"
        port = cut_off[1].get_extra_info("sockname")[1]
        proxy.cut({port}.intersection)
        assert await answered(other, b"2") == b"2"
        cut_off[1].write(b"2")
        assert await silent(cut_off)
        proxy.heal()
        assert await asyncio.wait_for(cut_off[0].readexactly(1), 20) == b"2"


async def test_cuts_of_two_connections_are_healed_one_by_one() -> None:
    tracer = ListTracer()
    async with proxied(tracer) as proxy, connected(proxy.port) as first, connected(proxy.port) as second:
        for client in (first, second):
            assert await answered(client, b"1") == b"1"
        ports = [client[1].get_extra_info("sockname")[1] for client in (first, second)]
        cuts = [proxy.cut({port}.intersection) for port in ports]
        first[1].write(b"2")
        second[1].write(b"2")
        assert await silent(first)
        proxy.heal(cuts[0])
        assert await asyncio.wait_for(first[0].readexactly(1), 20) == b"2"
        assert await silent(second)
        proxy.heal()
        assert await asyncio.wait_for(second[0].readexactly(1), 20) == b"2"
    assert [event["kind"] for event in tracer.events] == ["link_cut", "link_healed"]


async def test_a_connection_that_is_cut_twice_flows_when_both_are_healed() -> None:
    async with proxied() as proxy, connected(proxy.port) as client:
        assert await answered(client, b"1") == b"1"
        cut, delay = proxy.cut(), proxy.delay(50)
        other = proxy.cut(ways=frozenset({Way.TO_CLIENT}))
        client[1].write(b"2")
        for healed in (cut, delay):
            proxy.heal(healed)
            assert await silent(client)
        proxy.heal(other)
        assert await asyncio.wait_for(client[0].readexactly(1), 20) == b"2"


async def test_proxy_delays_both_directions_and_keeps_the_order() -> None:
    async with proxied() as proxy, connected(proxy.port) as client:
        assert await answered(client, b"1") == b"1"
        delay = proxy.delay(100)
        begun = time.monotonic()
        assert await answered(client, b"2") == b"2"
        assert time.monotonic() - begun >= 0.2
        client[1].write(b"3")
        await client[1].drain()
        proxy.change_delay(delay, 50)
        client[1].write(b"4")
        proxy.heal()
        client[1].write(b"5")
        assert await asyncio.wait_for(client[0].readexactly(3), 20) == b"345"


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[tuple[TcpProxy, asyncio.Queue[bytes]]]:
    """A proxy in front of a server that echoes, and what the server has received."""
    received = asyncio.Queue[bytes]()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1024):
                await received.put(data)
                writer.write(data)
        finally:
            writer.close()

    async with proxied(upstream=listen) as proxy:
        yield proxy, received


async def test_delayed_chunks_do_not_wait_for_each_other() -> None:
    """A delay is not a bandwidth: what was sent together arrives about together."""
    async with listening() as (proxy, received), connected(proxy.port) as client:
        assert await answered(client, b"0") == b"0"
        assert await received.get() == b"0"
        proxy.delay(300, ways=frozenset({Way.TO_CLIENT}))
        begun = time.monotonic()
        for _ in range(100):
            client[1].write(b"x")
            assert await asyncio.wait_for(received.get(), 20) == b"x"
        assert await asyncio.wait_for(client[0].readexactly(100), 20) == b"x" * 100
        assert 0.3 <= time.monotonic() - begun < 100 * 0.3


async def test_cut_of_one_direction_lets_the_other_one_through() -> None:
    async with listening() as (proxy, received), connected(proxy.port) as client:
        assert await answered(client, b"1") == b"1"
        assert await received.get() == b"1"
        proxy.cut(ways=frozenset({Way.TO_CLIENT}))
        client[1].write(b"2")
        assert await asyncio.wait_for(received.get(), 20) == b"2"
        assert await silent(client)
        proxy.heal()
        assert await asyncio.wait_for(client[0].readexactly(1), 20) == b"2"


async def test_close_resets_connections_and_refuses_new_ones_until_the_heal() -> None:
    async with proxied() as proxy, connected(proxy.port) as client, connected(proxy.port) as other:
        assert await answered(client, b"1") == b"1"
        assert await answered(other, b"1") == b"1"
        port = client[1].get_extra_info("sockname")[1]
        proxy.close(lambda ports: set(ports) - {other[1].get_extra_info("sockname")[1]})
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(client[0].read(1), 20) == b""
        assert await answered(other, b"2") == b"2"
        async with connected(proxy.port) as refused:
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.wait_for(refused[0].read(1), 20) == b""
        proxy.heal()
        async with connected(proxy.port) as again:
            assert again[1].get_extra_info("sockname")[1] != port
            assert await answered(again, b"3") == b"3"


async def test_half_open_connection_is_reset_at_the_upstream_and_noticed_by_the_client_at_the_heal() -> None:
    async with proxied() as proxy, connected(proxy.port) as client:
        assert await answered(client, b"1") == b"1"
        proxy.half_open()
        client[1].write(b"swallowed")
        assert await silent(client)
        async with connected(proxy.port) as new:
            assert await answered(new, b"2") == b"2"
        proxy.heal()
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(client[0].read(1), 20) == b""
        await until(lambda: not proxy.links, 60, "the link to be closed")


async def test_stop_ends_a_half_open_connection() -> None:
    async with proxied() as proxy, connected(proxy.port) as client:
        assert await answered(client, b"1") == b"1"
        proxy.half_open()
        await proxy.stop()
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(client[0].read(1), 20) == b""
        assert not proxy.links


async def test_proxy_waits_for_an_upstream_that_is_not_listening_yet(
    unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comparison.scenarios.testbed.proxy.UPSTREAM_RETRY_S", 60.0)
    async with proxy_to(unused_port) as proxy, connected(proxy.port) as client:
        client[1].write(b"early")
        await asyncio.sleep(0)
        async with serving(echo, unused_port):
            assert await asyncio.wait_for(client[0].readexactly(5), 20) == b"early"


async def test_proxy_closes_a_connection_whose_upstream_never_listens(
    unused_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("comparison.scenarios.testbed.proxy.UPSTREAM_RETRY_S", 0.1)
    async with proxy_to(unused_port) as proxy, connected(proxy.port) as client:
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.wait_for(client[0].read(1), 20) == b""


async def test_proxy_passes_a_close_on() -> None:
    ended = asyncio.Event()

    async def watch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
            ended.set()
        finally:
            writer.close()

    async with proxied(upstream=watch) as proxy:
        async with connected(proxy.port):
            pass
        await asyncio.wait_for(ended.wait(), 20)
        await until(lambda: not proxy.links, 60, "the link to be closed")
