"""Sessions on a real ZooKeeper for tests, real expiry of sessions, and counts from traces."""

from __future__ import annotations

import asyncio
import itertools
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from kernel.trace.writer import Tracer
from kernel.waiting import until, wait_until
from kernel.zookeeper.bridge import Bridge
from kernel.zookeeper.manners import KazooManners
from kernel.zookeeper.operations import SessionState, WatchEvent, WatchFired
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.trace.tracers import ListTracer

READS = ("exists", "getData", "getChildren")
WRITES = ("create", "delete", "setData")

_CLOSE_SESSION = -11


@asynccontextmanager
async def opened(
    connect_string: str,
    tracer: Tracer | None = None,
    *,
    timeout_ms: int = 15_000,
    retry_forever: bool = False,
    manners: KazooManners | None = None,
) -> AsyncIterator[ZooKeeperSession]:
    """A session for a `with` block; its timeout is longer than a busy machine's pauses."""
    session = await ZooKeeperSession.open(
        connect_string,
        session_timeout_ms=timeout_ms,
        tracer=tracer or ListTracer(),
        process="test",
        name="session",
        connection_timeout_ms=30_000,
        retry_forever=retry_forever,
        bridge=partial(Bridge, manners=manners),
    )
    async with session:
        yield session


def end_session(connect_string: str, credentials: tuple[int, bytes], *, timeout_s: float = 30) -> None:
    """End a session by a second client that takes it over and closes it; for its first client it expires. Blocks.

    Both requests are in one packet: between two packets, the first client, whose connection ends with the takeover,
    might take it back.
    """
    session_id, password = credentials
    connect = struct.pack(">iqiqi", 0, 0, 10_000, session_id, len(password)) + password + b"\0"
    close = struct.pack(">ii", 1, _CLOSE_SESSION)
    packet = b"".join(struct.pack(">i", len(frame)) + frame for frame in (connect, close))
    addresses = itertools.cycle(connect_string.partition("/")[0].split(","))
    wait_until(lambda: _has_ended(next(addresses), packet), timeout_s, "a server to end the session", every_s=0.1)


def _has_ended(address: str, packet: bytes) -> bool:
    """Whether a server has ended the session: it answers both requests, or the first without a session, and closes.

    It may also answer only the first, if the first client has returned before it reads the second.
    """
    host, _, port = address.rpartition(":")
    answers = b""
    try:
        with socket.create_connection((host, int(port)), timeout=5) as server:
            server.sendall(packet)
            while more := server.recv(4096):
                answers += more
    except OSError:  # a starting server may accept a connection and never answer
        pass
    if len(answers) < 12:
        return False
    length, _, timeout_ms = struct.unpack_from(">iii", answers)
    return timeout_ms <= 0 or len(answers) > 4 + length


async def expire(session: ZooKeeperSession, *, timeout_s: float = 30) -> None:
    """Make the session expire on the server."""
    old = session.session_id
    await asyncio.to_thread(end_session, session.connect_string, session.credentials, timeout_s=timeout_s)
    await until(
        lambda: session.state is SessionState.LOST or session.session_id != old, timeout_s, "the session to be expired"
    )


async def fail(session: ZooKeeperSession) -> None:
    """End the session's thread by a bug."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    session._bridge._handler.wait = broken
    session._bridge._connection._wake_thread()
    await until(lambda: session._failure is not None, 60, "the session's thread to end")


class Watched:
    """A watch callback that records its events."""

    def __init__(self) -> None:
        self.fired: list[WatchFired] = []

    def __call__(self, fired: WatchFired) -> None:
        self.fired.append(fired)

    @property
    def events(self) -> list[WatchEvent]:
        return [fired.event for fired in self.fired]

    async def wait(self, number: int = 1, *, timeout_s: float = 60) -> list[WatchFired]:
        """Wait for at least `number` events."""
        await until(lambda: len(self.fired) >= number, timeout_s, lambda: f"{number} watch events, got {self.fired}")
        return self.fired


async def become(session: ZooKeeperSession, state: SessionState, *, timeout_s: float = 60) -> None:
    await until(lambda: session.state is state, timeout_s, lambda: f"{state}, still {session.state}", every_s=0.005)


async def gone(session: ZooKeeperSession, path: str, *, timeout_s: float = 60) -> None:
    """Wait until there is no such node."""

    async def absent() -> bool:
        return await session.exists(path) is None

    await until(absent, timeout_s, f"{path} to be deleted")


def successes(tracer: ListTracer) -> tuple[int, int]:
    """Traced (reads, writes) that succeeded; the caller counts `multi` and `sync`."""
    ops = [event["op"] for event in tracer.of("zk_op") if event["ok"]]
    return sum(op in READS for op in ops), sum(op in WRITES for op in ops)
