"""Connections of the simulated network behave as a machine's own: the same programs end alike on both."""

import asyncio
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

import pytest

from comparison.scenarios.plan.links import Kind, links_of
from comparison.scenarios.testbed.proxy import TcpProxy
from comparison.simulation.node import Node
from comparison.simulation.world import World
from kernel.trace.writer import SilentTracer
from tests.support.wire import servers

Serve = Callable[[Reader, Writer], Awaitable[None]]
Ask = Callable[[Reader, Writer], Coroutine[Any, Any, object]]


async def echo(reader: Reader, writer: Writer) -> None:
    while data := await reader.read(10_000):
        writer.write(data)
        await writer.drain()
    writer.close()


async def greet_and_close(reader: Reader, writer: Writer) -> None:
    writer.write(b"hello")
    writer.close()


async def abort(reader: Reader, writer: Writer) -> None:
    await reader.readexactly(1)
    writer.transport.abort()


async def read_all_and_count(reader: Reader, writer: Writer) -> None:
    data = await reader.read()
    writer.write(str(len(data)).encode())
    writer.close()


async def close_unread(reader: Reader, writer: Writer) -> None:
    """Close with bytes unread, which resets the connection."""
    await reader.readexactly(1)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
    writer.write(b"go on")
    await asyncio.sleep(0.5)
    writer.transport.abort()


async def ask_for_echo(reader: Reader, writer: Writer) -> object:
    sent = Random(1).randbytes(3_000_000)
    writing = asyncio.create_task(written(writer, sent))
    got = await reader.readexactly(len(sent))
    await writing
    return got == sent


async def written(writer: Writer, data: bytes) -> None:
    for start in range(0, len(data), 70_001):
        writer.write(data[start : start + 70_001])
        await writer.drain()


async def ask_to_the_end(reader: Reader, writer: Writer) -> object:
    return await reader.read()


async def ask_and_half_close(reader: Reader, writer: Writer) -> object:
    writer.write(b"x" * 1_000_000)
    writer.write_eof()
    return await reader.read()


async def ask_one_who_aborts(reader: Reader, writer: Writer) -> object:
    writer.write(b"x")
    return await reader.read()


async def ask_one_who_resets(reader: Reader, writer: Writer) -> object:
    writer.write(b"x")
    await reader.readexactly(5)
    writer.write(b"unread")
    return await reader.read()


PROGRAMS: dict[str, tuple[Serve, Ask, object]] = {
    "all bytes come back in order": (echo, ask_for_echo, True),
    "the end of the stream comes after the bytes": (greet_and_close, ask_to_the_end, b"hello"),
    "half of a connection can be closed": (read_all_and_count, ask_and_half_close, b"1000000"),
    "an abort with nothing unread ends the stream": (abort, ask_one_who_aborts, b""),
    "a close with bytes unread is a reset": (close_unread, ask_one_who_resets, "ConnectionResetError"),
}


async def outcome(ask: Ask, port: int) -> object:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return await ask(reader, writer)
    except OSError as error:
        return type(error).__name__
    finally:
        writer.close()


async def on_this_machine(serve: Serve, ask: Ask) -> object:
    async with servers.serving(serve) as port:
        return await outcome(ask, port)


def in_a_world(serve: Serve, ask: Ask, seed: int = 1) -> object:
    world = World(seed)

    async def main() -> object:
        await serving(world, serve, 7000)
        return await world.spawn(world.node("client", Kind.MEMBER), outcome, ask, 7000)

    return world.run(main)


async def serving(world: World, serve: Serve, port: int) -> Node:
    node = world.node("server", Kind.BROKER)
    await world.spawn(node, asyncio.start_server, serve, "127.0.0.1", port)
    return node


@pytest.mark.parametrize("program", PROGRAMS)
async def test_program_ends_alike_on_this_machine_and_in_a_world(program: str) -> None:
    serve, ask, expected = PROGRAMS[program]

    assert await on_this_machine(serve, ask) == expected
    assert await asyncio.to_thread(in_a_world, serve, ask) == expected


def test_nobody_listens() -> None:
    assert World(1).run(lambda: refused(7000))


async def refused(port: int) -> bool:
    try:
        await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return True
    return False


def test_a_killed_host_listens_no_more_and_ends_its_connections() -> None:
    world = World(1)

    async def main() -> tuple[bytes, bool]:
        node = await serving(world, echo, 7000)
        reader, writer = await asyncio.open_connection("127.0.0.1", 7000)
        await asyncio.sleep(1)
        world.loop.kill(node)
        rest = await reader.read()
        writer.close()
        return rest, await refused(7000)

    assert world.run(main) == (b"", True)


def test_the_machine_of_a_frozen_host_accepts_and_keeps_what_is_sent() -> None:
    world = World(1)

    async def main() -> tuple[bool, bytes]:
        node = await serving(world, echo, 7000)
        world.loop.freeze(node)
        reader, writer = await asyncio.open_connection("127.0.0.1", 7000)
        writer.write(b"are you there?")
        silent = False
        try:
            async with asyncio.timeout(60):
                await reader.read(1)
        except TimeoutError:
            silent = True
        world.loop.thaw(node)
        answer = await reader.readexactly(14)
        writer.close()
        return silent, answer

    assert world.run(main) == (True, b"are you there?")


def test_a_sender_waits_for_one_who_does_not_read() -> None:
    world = World(1)

    async def never(reader: Reader, writer: Writer) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
        await asyncio.sleep(3600)

    async def main() -> int:
        await serving(world, never, 7000)
        _, writer = await asyncio.open_connection("127.0.0.1", 7000)
        sent = 0
        try:
            async with asyncio.timeout(10):
                while True:
                    writer.write(b"x" * 10_000)
                    await writer.drain()
                    sent += 10_000
        except TimeoutError:
            writer.close()
            return sent

    assert 1_000_000 < world.run(main) < 2_000_000


@pytest.mark.parametrize("seed", range(5))
def test_bytes_keep_their_order_whatever_the_delays(seed: int) -> None:
    serve, ask, expected = PROGRAMS["all bytes come back in order"]

    assert in_a_world(serve, ask, seed) == expected


def test_two_cannot_listen_on_one_port() -> None:
    world = World(1)

    async def main() -> None:
        await serving(world, echo, 7000)
        await serving(world, echo, 7000)

    with pytest.raises(Exception, match=r"cannot listen on 127\.0\.0\.1:7000"):
        world.run(main)


def test_a_proxied_connection_is_as_slow_as_one_between_its_ends() -> None:
    world = World(1, links_of("member-broker=100ms,member-zookeeper=7s"))
    tracer = SilentTracer()

    async def main() -> float:
        await serving(world, echo, 7000)
        proxy = TcpProxy("members-broker", tracer)
        port = await proxy.start(7000)
        return await world.spawn(world.node("client", Kind.MEMBER), asked_twice, port)

    async def asked_twice(port: int) -> float:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"first")
        await reader.readexactly(5)
        begun = world.loop.time()
        writer.write(b"again")
        await reader.readexactly(5)
        writer.close()
        return world.loop.time() - begun

    # There and back, and twice by the proxy, which is on the member's machine.
    assert world.run(main) == pytest.approx(0.2 + 2 * 60e-6, abs=2 * 40e-6)
