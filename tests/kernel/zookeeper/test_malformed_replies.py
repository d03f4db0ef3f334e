"""Whatever a server answers: every operation ends with an error of ours or a value, and kazoo's thread goes on."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable

import pytest

from kernel.errors import Unavailable
from kernel.waiting import until
from kernel.zookeeper import errors, operations, replies
from kernel.zookeeper.session import ZooKeeperSession
from tests.kernel.zookeeper.scripted_zookeeper import GREETING, ScriptedZooKeeper, frame, reply
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import Watched, fail

STAT = struct.pack(">qqqqiiiqiiq", *range(1, 12))
NAME = struct.pack(">i", 1) + b"n"

OPERATIONS: dict[str, tuple[Callable[[ZooKeeperSession], Awaitable[object]], bytes]] = {
    "create": (lambda session: session.create("/n"), struct.pack(">i", 2) + b"/n"),
    "delete": (lambda session: session.delete("/n"), b""),
    "exists": (lambda session: session.exists("/n", watch=lambda _: None), STAT),
    "getData": (lambda session: session.get("/n", watch=lambda _: None), NAME + STAT),
    "getChildren": (lambda session: session.children("/n"), struct.pack(">i", 1) + NAME),
    "setData": (lambda session: session.set("/n", b"1"), STAT),
    "sync": (lambda session: session.sync("/n"), NAME),
    "multi": (
        lambda session: session.transaction(operations.Create("/n"), operations.Delete("/m")),
        struct.pack(">iBi", 1, 0, 0) + NAME + struct.pack(">iBi", 2, 0, 0) + struct.pack(">iBi", -1, 1, -1),
    ),
}
#: What becomes of the body of a good reply; the connection stays.
BODIES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "a byte short": lambda body: body[:-1],
    "half": lambda body: body[: len(body) // 2],
    "too long": lambda body: body + b"\xff" * 64,
    "negative": lambda body: struct.pack(">i", -1) + body[4:],
    "very negative": lambda body: struct.pack(">i", -(2**31)) + body[4:],
    "absurd": lambda body: struct.pack(">i", 2**31 - 1) + body[4:],
    "ones": lambda body: b"\xff" * len(body),
    "zeros": lambda body: b"\0" * 64,
}
#: Unknown ones, and some that say no more of this operation than that it failed.
CODES = (7, -42, 2**31 - 1, -(2**31), -118, -4, -101, 1)
#: Frames instead of a reply; the connection is lost.
FRAMES: dict[str, Callable[[int, bytes], bytes]] = {
    "another xid": lambda xid, body: frame(reply(xid + 5, body)),
    "xid of an authentication": lambda _, body: frame(reply(-4, body)),
    "unknown event": lambda *_: frame(reply(-1, struct.pack(">ii", 9, 3) + NAME)),
    "event without a path": lambda *_: frame(reply(-1, struct.pack(">iii", 3, 3, -1))),
    "event cut off": lambda *_: frame(reply(-1, b"\0")),
    "no header": lambda *_: frame(b"\0" * 15),
    "empty": lambda *_: frame(b""),
    "negative length": lambda *_: struct.pack(">i", -5) + b"\0" * 64,
    "1.9 GB": lambda *_: struct.pack(">i", 1_900_000_000) + b"\0" * 64,
    "just too long": lambda *_: struct.pack(">i", replies.FRAME_MAX + 1) + b"\0" * 64,
    "text": lambda *_: b"HTTP/1.1 400 Bad Request\r\n\r\n",
}
GREETINGS = {
    "empty": frame(b""),
    "cut off": frame(GREETING[:10]),
    "no password": frame(struct.pack(">iiqi", 0, 10_000, 7, -1)),
    "absurd password": frame(struct.pack(">iiqi", 0, 10_000, 7, 2**31 - 1)),
    "negative length": struct.pack(">i", -1) + GREETING,
    "1.9 GB": struct.pack(">i", 1_900_000_000) + GREETING,
    "text": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


async def opened(server: ScriptedZooKeeper, *, wait_ms: int = 60_000, forever: bool = False) -> ZooKeeperSession:
    return await ZooKeeperSession.open(
        server.address,
        session_timeout_ms=10_000,
        connection_timeout_ms=wait_ms,
        tracer=ListTracer(),
        name="fuzzed",
        retry_forever=forever,
    )


async def ended(operation: Awaitable[object]) -> errors.ZooKeeperError | None:
    """The error of an operation, or None."""
    try:
        await asyncio.wait_for(operation, 60)
    except errors.ZooKeeperError as error:
        return error
    return None


@pytest.fixture(autouse=True)
def nothing_is_logged_with_a_traceback(caplog):
    yield
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]


@pytest.mark.parametrize("op", OPERATIONS)
async def test_malformed_reply_is_an_error_of_its_operation_or_a_value(op):
    perform, body = OPERATIONS[op]
    async with ScriptedZooKeeper() as server, await opened(server) as session:
        for spoilt in BODIES.values():
            server.answer = lambda xid, spoilt=spoilt: frame(reply(xid, spoilt(body)))
            error = await ended(perform(session))
            assert error is None or "reply cannot be used: malformed reply" in str(error)
        for code in CODES:
            server.answer = lambda xid, code=code: frame(reply(xid, b"", code))
            error = await ended(perform(session))
            assert error is not None or (op, code) == ("exists", -101)
        server.answer = lambda xid: frame(reply(xid, body))
        await asyncio.wait_for(perform(session), 60)
        assert server.connections == 1


async def test_unknown_error_code_is_named():
    async with ScriptedZooKeeper() as server, await opened(server) as session:
        server.answer = lambda xid: frame(reply(xid, b"", -42))
        with pytest.raises(
            errors.OperationRefused, match=r"^/n: ZooKeeper's reply cannot be used: unknown error code -42$"
        ):
            await asyncio.wait_for(session.get("/n"), 60)


@pytest.mark.parametrize("what", FRAMES)
async def test_frame_that_is_not_zookeepers_ends_the_connection_and_another_one_works(what):
    async with ScriptedZooKeeper() as server, await opened(server) as session:
        server.answer = lambda xid: FRAMES[what](xid, b"")
        with pytest.raises(errors.ConnectionLost, match=r"broke before the answer: ."):
            await asyncio.wait_for(session.get("/n"), 60)
        server.answer = lambda xid: frame(reply(xid, NAME + STAT))
        data, _ = await asyncio.wait_for(session.get("/n"), 60)
        assert (data, server.connections) == (b"n", 2)


async def test_operation_that_is_repeated_for_ever_outlives_a_malformed_frame():
    async with ScriptedZooKeeper() as server, await opened(server, forever=True) as session:
        answers = iter([FRAMES["1.9 GB"], FRAMES["unknown event"], lambda xid, _: frame(reply(xid, NAME + STAT))])
        server.answer = lambda xid: next(answers)(xid, b"")
        data, _ = await asyncio.wait_for(session.get("/n"), 60)
        assert (data, server.connections) == (b"n", 3)


@pytest.mark.parametrize("what", GREETINGS)
async def test_malformed_greeting_is_refused_and_another_connection_made(what):
    async with ScriptedZooKeeper(greeting=GREETINGS[what]) as server:
        opening = asyncio.ensure_future(opened(server))
        await until(lambda: server.connections >= 2, 60, "another connection")
        server.greeting = frame(GREETING)
        async with await asyncio.wait_for(opening, 60) as session:
            assert session.connected


async def test_announcement_of_a_huge_greeting_is_named_with_its_limit(caplog):
    async with ScriptedZooKeeper(greeting=GREETINGS["1.9 GB"]) as server:
        with pytest.raises(Unavailable, match=r"1900000000 bytes was announced \(jute.maxbuffer is 4194304\)"):
            await opened(server, wait_ms=1_000)
    (record,) = [record for record in caplog.records if record.name == "kernel.zookeeper.connection"]
    assert "1900000000 bytes" in record.getMessage()


async def test_error_in_the_connections_thread_reaches_who_waits(monkeypatch):
    async with ScriptedZooKeeper() as server, await opened(server, forever=True) as session:
        server.answer = lambda _: b""
        waiting = asyncio.ensure_future(session.get("/n"))
        await until(lambda: server.requests, 60, "the request")

        def broken(*_: object) -> None:
            raise ZeroDivisionError("a bug")

        monkeypatch.setattr(session._bridge._connection, "_connect", broken)
        server.cut()
        for failing in (waiting, session.get("/m"), session.wait_connected(), session.raise_failure()):
            with pytest.raises(errors.SessionFailed, match="internal error: ZeroDivisionError: a bug"):
                await asyncio.wait_for(failing, 60)
        assert session.state is operations.SessionState.LOST


@pytest.mark.parametrize("forever", [True, False])
async def test_thread_that_fails_while_connected_loses_the_session_and_a_close_does_not_fail_it(forever):
    async with ScriptedZooKeeper() as server:
        async with await opened(server, forever=forever) as session:
            server.answer = lambda xid: frame(reply(xid, STAT))
            watched = Watched()
            await session.exists("/n", watch=watched)
            await fail(session)
            assert session.state is operations.SessionState.LOST
            assert [fired.event for fired in await watched.wait()] == [operations.WatchEvent.NONE]
            with pytest.raises(errors.SessionFailed, match="a bug"):
                await asyncio.wait_for(session.exists("/n"), 60)
        assert session.state is operations.SessionState.CLOSED

        session = await opened(server, forever=forever)
        holding = asyncio.ensure_future(session.raise_failure())
        await session.close()
        with pytest.raises(errors.SessionClosed):
            await session.exists("/n")
        assert not holding.done()
        holding.cancel()


@pytest.mark.parametrize("forever", [True, False])
async def test_read_that_is_not_answered_is_an_error_that_names_server_and_deadline(monkeypatch, forever):
    monkeypatch.setattr("kernel.zookeeper.lifecycle.ANSWER_S", 1.0)
    async with (
        ScriptedZooKeeper(timeout_ms=1_500) as server,
        await opened(server, wait_ms=1_000, forever=forever) as session,
    ):
        server.answer = lambda _: b""
        with pytest.raises(
            errors.Unanswered, match=f"^/n: ZooKeeper at {server.address} has not answered within 1.5 s"
        ):
            await asyncio.wait_for(session.get("/n"), 60)
        # It is a new connection that answers the next one.
        server.answer = lambda xid: frame(reply(xid, NAME + STAT))
        await until(lambda: server.connections > 1, 60, "another connection")
        await asyncio.wait_for(session.get("/n"), 60)


async def test_operation_that_is_repeated_at_a_server_that_never_answers_ends_too(monkeypatch):
    monkeypatch.setattr("kernel.zookeeper.lifecycle.ANSWER_S", 1.0)
    async with ScriptedZooKeeper(timeout_ms=1_500) as server, await opened(server, forever=True) as session:
        answers = iter([FRAMES["text"](0, b"")])  # which ends the first connection
        server.answer = lambda _: next(answers, b"")
        with pytest.raises(errors.Unanswered):
            await asyncio.wait_for(session.get("/n"), 60)
        assert (server.connections >= 2, server.requests) == (True, 2)
