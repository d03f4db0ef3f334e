"""A turn of the loop is bounded whatever arrives: accepts, reads and work; heartbeats are answered in between."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kernel.broker.loop import readiness
from kernel.broker.loop.poller import READABLE
from kernel.broker.loop.readiness import PATIENT_AT_ONCE, PATIENT_MAX, Readiness
from kernel.broker.loop.turns import Turns
from kernel.broker.server.accepting import ACCEPTED_MAX
from kernel.broker.server.handlers import RequestContext
from kernel.broker.server.server import BrokerServer
from kernel.runtime import REAL
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.versions import Api

HEARTBEAT = codec.encode_request(Api.Heartbeat, 3, 1, "c", {"group_id": "g", "member_id": "m"})
LEAVE = codec.encode_request(Api.LeaveGroup, 1, 1, "c", {"group_id": "g", "member_id": "m"})
JOIN = codec.encode_request(Api.JoinGroup, 5, 1, "c", {"group_id": "g"})
MANY = 100


class Served:
    """A server that records its requests; its turns end with each piece of work."""

    def __init__(self) -> None:
        self.seen: list[Api] = []
        self.parked: list[asyncio.Future[Mapping[str, Any]]] = []
        self.server = BrokerServer(
            {Api.Heartbeat: self.at_once, Api.LeaveGroup: self.at_once, Api.JoinGroup: self.park}
        )
        self.server.turns = Turns(REAL.stopwatch, 0.0)
        self._stack = contextlib.ExitStack()

    def at_once(self, context: RequestContext, _body: Any) -> Mapping[str, Any]:
        self.seen.append(context.api)
        return {"error_code": 0}

    def park(self, context: RequestContext, _body: Any) -> asyncio.Future[Mapping[str, Any]]:
        self.seen.append(context.api)
        self.parked.append(asyncio.get_running_loop().create_future())
        return self.parked[-1]

    def connect(self) -> socket.socket:
        """Connect a socket; the kernel accepts it even if the server has not."""
        return self._stack.enter_context(socket.create_connection((self.server.host, self.server.port)))

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        await self.server.start()
        with self._stack:
            try:
                yield
            finally:
                await self.server.stop()


@asynccontextmanager
async def playing() -> AsyncIterator[Served]:
    served = Served()
    async with served.serving():
        yield served


async def test_connections_are_accepted_a_few_a_turn() -> None:
    async with playing() as served:
        for _ in range(MANY):
            served.connect()
        before = 0
        while before < MANY:
            await asyncio.sleep(0)
            now = len(served.server.connections)
            assert now - before <= ACCEPTED_MAX
            before = now


async def test_requests_are_served_as_they_are_read_a_few_connections_a_turn() -> None:
    await _leave_by_turns(PATIENT_MAX)


async def test_a_request_that_takes_the_budget_ends_the_reading_of_that_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PATIENT_BUDGET_S", 0.0)
    await _leave_by_turns(PATIENT_AT_ONCE)


async def _leave_by_turns(served_max: int) -> None:
    async with playing() as served:
        clients = [served.connect() for _ in range(MANY)]
        await until(lambda: len(served.server.connections) == MANY, 60, "all connections")
        for client in clients:
            client.send(LEAVE)
        before = 0
        while before < MANY:
            await asyncio.sleep(0)
            now = len(served.seen)
            assert now - before <= served_max
            before = now


class Insatiable:
    """A connection that always has more to read."""

    is_prompt = False
    last_read = ""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.reads = 0

    def on_ready(self, _events: int) -> None:
        self.reads += 1


@pytest.mark.skipif(sys.platform != "linux", reason="who is ready comes in another order without epoll")
async def test_connections_with_endless_input_do_not_starve_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even when a turn's time is used up by the first ones."""
    monkeypatch.setattr(readiness, "PATIENT_BUDGET_S", 0.0)
    looking = Readiness(asyncio.get_running_loop(), Turns(REAL.stopwatch), REAL.stopwatch)
    with contextlib.ExitStack() as stack:
        ones: list[Insatiable] = []
        for _ in range(2 * PATIENT_MAX):
            ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
            theirs.send(b"x")
            ones.append(Insatiable(ours.fileno()))
            looking.watch(ones[-1], READABLE)
        for _ in range(2 * PATIENT_MAX):
            before = sum(one.reads for one in ones)
            await until(lambda seen=before: sum(one.reads for one in ones) > seen, 60, "a turn", every_s=0)
            assert max(one.reads for one in ones) - min(one.reads for one in ones) <= 1
        for one in ones:
            looking.forget(one)
        looking.close()


async def test_heartbeat_is_answered_between_two_pieces_of_other_work() -> None:
    async with playing() as served:
        client = served.connect()
        client.send(HEARTBEAT)
        await until(lambda: served.seen, 60, "the first heartbeat")
        (connection,) = served.server.connections
        done: list[int] = []
        answered_at: list[int] = []

        def work() -> Iterator[None]:
            for number in range(200):
                if number == 20:
                    client.send(HEARTBEAT)
                    # On a busy machine the kernel may be slow, even on loopback.
                    assert select.select([connection.fd], [], [], 10)[0]
                if len(served.seen) == 2 and not answered_at:
                    answered_at.append(number)
                done.append(number)
                yield

        served.server.turns.run_in_turns(work())
        await until(lambda: len(done) == 200, 60, "the work")
        assert answered_at[0] in (21, 22), "in the same turn of the loop, or in the next one"


async def test_responses_to_many_connections_are_sent_in_turns() -> None:
    async with playing() as served:
        clients = [served.connect() for _ in range(20)]
        for client in clients:
            client.send(JOIN)
        await until(lambda: len(served.parked) == 20, 60, "all joins")
        for future in served.parked:
            future.set_result({"error_code": 0})
        clients[0].setblocking(False)
        answered = 0
        while answered < 20:
            await asyncio.sleep(0)
            now = 20 - sum(connection.waits for connection in served.server.connections)
            assert now - answered <= 1
            answered = now


async def test_request_is_served_although_its_client_has_closed() -> None:
    """A consumer that sends LeaveGroup and closes at once has left."""
    async with playing() as served:
        blocker = served.connect()
        for linger in (False, True):
            served.seen.clear()
            client = served.connect()
            client.send(HEARTBEAT)
            await until(lambda: served.seen, 60, "the connection")
            served.server.turns.run_in_turns(iter(range(50)))
            client.send(LEAVE + JOIN)
            if linger:  # closed with a reset
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            client.close()
            await until(lambda: Api.JoinGroup in served.seen, 60, "the earlier requests")
            assert served.seen == [Api.Heartbeat, Api.LeaveGroup, Api.JoinGroup]
        await until(lambda: len(served.server.connections) == 1, 60, "the others to leave")
        blocker.close()
