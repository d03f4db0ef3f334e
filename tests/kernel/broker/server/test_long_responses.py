"""Answers of many rows: complete, in order, built only while a client reads, and a failure closes its connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kernel.broker.server.handlers import ROWS_AT_ONCE, RequestContext, Response, in_rows
from kernel.broker.server.server import BrokerServer
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.kernel.broker.server.test_server import HEARTBEAT, raw
from tests.support.wire.frames import read_frame

ASK = codec.encode_request(Api.ListGroups, 3, 1, "c", {})
BEAT = codec.encode_request(Api.Heartbeat, 3, 2, "c", HEARTBEAT)


class Rowing:
    """Answers ListGroups with those of `number` rows that are `kept`; building the one at `fails_at` raises."""

    def __init__(self, number: int, *, fails_at: int = -1, kept: Callable[[int], bool] = lambda _: True) -> None:
        self.made = 0
        self.number, self.fails_at, self.kept = number, fails_at, kept
        self.server = BrokerServer({Api.ListGroups: self.list, Api.Heartbeat: self.beat})

    def list(self, _context: RequestContext, _body: Any) -> Response:
        return in_rows({"error_code": ErrorCode.none}, "groups", self._rows())

    @staticmethod
    def beat(_context: RequestContext, _body: Any) -> Response:
        return {"error_code": ErrorCode.none}

    def _rows(self) -> Iterator[dict[str, Any] | None]:
        number = -1
        while (number := number + 1) < self.number:
            if number == self.fails_at:
                raise RuntimeError("a bug")
            self.made += 1
            yield {"group_id": f"g{number}"} if self.kept(number) else None


@pytest.mark.parametrize("number", [0, 1, ROWS_AT_ONCE - 1, ROWS_AT_ONCE, 1_000])
async def test_response_has_all_rows_in_order_before_the_next_response(number: int) -> None:
    rowing = Rowing(number)
    await rowing.server.start()
    async with raw(rowing.server) as (reader, writer):
        writer.write(ASK + BEAT)
        correlation_id, answer = codec.decode_response(Api.ListGroups, 3, await read_frame(reader))
        assert correlation_id == 1
        assert [group.group_id for group in answer.groups] == [f"g{n}" for n in range(number)]
        assert codec.decode_response(Api.Heartbeat, 3, await read_frame(reader))[0] == 2
    await rowing.server.stop()
    assert rowing.server.memory.responses.used == 0


async def test_rows_that_are_left_out_take_turns_like_the_others() -> None:
    """A filter that matches nothing must not check everything in one turn."""
    # The rows end when another connection has been answered between them, or never.
    rowing = Rowing(100_000_000, kept=lambda number: number in (0, 7_777))
    await rowing.server.start()
    async with raw(rowing.server) as (reader, writer), raw(rowing.server) as (other_reader, other_writer):
        writer.write(ASK)
        await until(lambda: rowing.made >= ROWS_AT_ONCE, 60, "the first rows")
        other_writer.write(BEAT)
        await read_frame(other_reader)
        assert rowing.made < rowing.number
        rowing.number = max(rowing.made, 10_000)
        answer = codec.decode_response(Api.ListGroups, 3, await read_frame(reader))[1]
        assert [group.group_id for group in answer.groups] == ["g0", "g7777"]
    await rowing.server.stop()


async def test_failing_row_closes_only_its_connection_and_is_reported() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    rowing = Rowing(1_000, fails_at=500)
    await rowing.server.start()
    async with raw(rowing.server) as (reader, writer), raw(rowing.server) as (other_reader, other_writer):
        writer.write(ASK)
        assert await reader.read() == b""
        assert [str(context["exception"]) for context in reported] == ["a bug"]
        other_writer.write(BEAT)
        await read_frame(other_reader)
    await rowing.server.stop()
    assert rowing.server.memory.responses.used == 0


async def test_rows_for_a_closed_client_are_not_built() -> None:
    rowing = Rowing(10_000_000)
    await rowing.server.start()
    async with raw(rowing.server) as (_, writer):
        writer.write(ASK)
        await until(lambda: rowing.made > ROWS_AT_ONCE, 60, "the first rows")
    await until(lambda: not rowing.server.connections, 60, "the connection to close")
    await until(lambda: not len(rowing.server.turns), 60, "the last turn")
    assert rowing.made < rowing.number
    assert rowing.server.memory.responses.used == 0
    await rowing.server.stop()
