"""Tasks that are cancelled have ended when the wait is over, and no connection is lost to a server's end."""

from __future__ import annotations

import asyncio
import select
import socket

import pytest

from kernel.platform.ports import LOOPBACK
from kernel.tasks import cancel_and_wait, close_server


async def last_words(said: list[str], *, error: bool = False) -> None:
    """Wait for ever; when cancelled, take a turn more, and perhaps fail."""
    try:
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        said.append("over")
        if error:
            raise ValueError("too late")


async def begun(*works: asyncio.Task[None]) -> tuple[asyncio.Task[None], ...]:
    await asyncio.sleep(0)
    return works


async def test_all_have_ended_and_what_they_raise_is_dropped() -> None:
    said: list[str] = []
    tasks = await begun(*(asyncio.create_task(last_words(said, error=error)) for error in (False, True)))
    done = asyncio.get_running_loop().create_future()
    done.set_result("kept")
    await cancel_and_wait(*tasks, None, done)
    assert said == ["over", "over"]
    assert [task.cancelled() for task in tasks] == [True, False]
    assert done.result() == "kept"
    await cancel_and_wait(*tasks)
    await cancel_and_wait()


async def test_who_is_cancelled_while_waiting_is_so_once_they_have_ended() -> None:
    said: list[str] = []
    tasks = await begun(asyncio.create_task(last_words(said)))
    waiting = asyncio.create_task(cancel_and_wait(*tasks))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert tasks[0].done()


@pytest.mark.parametrize("turns", range(6))
async def test_server_that_closes_loses_no_connection_that_it_has_accepted(turns: int) -> None:
    """It is accepted in the second turn, and asyncio's own `close` would lose it then; before, nobody has it yet."""
    served: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: served.append(writer), LOOPBACK, 0)
    with socket.create_connection(server.sockets[0].getsockname()) as client:
        assert select.select([server.sockets[0]], [], [], 60)[0], "the connection waits to be accepted"
        for _ in range(turns):
            await asyncio.sleep(0)
        await close_server(server)
        for writer in served:
            writer.close()
        client.settimeout(60)
        try:
            ended = await asyncio.to_thread(client.recv, 1)
        except ConnectionResetError:
            ended = None
        assert (ended, len(served)) == ((b"", 1) if turns > 1 else (None, 0))


async def test_server_is_closed_although_its_end_is_cancelled() -> None:
    server = await asyncio.start_server(lambda *_: None, LOOPBACK, 0)
    closing = asyncio.create_task(close_server(server))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert not server.is_serving()
