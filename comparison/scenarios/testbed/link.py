"""One connection through a proxy: two streams of bytes, each of which can be held or delayed, or fail."""

from __future__ import annotations

import asyncio
import contextlib
from enum import StrEnum

from kernel.tasks import cancel_and_wait

_CHUNK = 65_536
#: A delayed stream takes in this many chunks before its sender has to wait.
_LATE_CHUNKS = 256


class Way(StrEnum):
    """The direction of a stream; the client is the end that made the connection."""

    TO_UPSTREAM = "to-upstream"
    TO_CLIENT = "to-client"


BOTH_WAYS = frozenset(Way)


class Gate:
    """A gate that is open, or closed until it is opened again."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def passed(self) -> None:
        await self._open.wait()


class Stream:
    """One direction of a connection. Bytes stay in order: those that were delayed go before those that are not.

    A reset is news like bytes: that of the end that is read from travels in this direction, that of the end that is
    written to in the other one (`back`). It is held and delayed as they are.
    """

    def __init__(self) -> None:
        self.gate = Gate()
        self.back = self
        self.delay_s = 0.0
        self._late: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_LATE_CHUNKS)
        self._pending = 0  #: received, and neither delivered nor written

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take bytes in until the end of the stream; those without a delay are written at once. Raises `OSError`."""
        while True:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                await self.carry_news()
                raise
            await self.gate.passed()
            if data and not self.delay_s and not self._pending:
                await self._write(data, writer)
                continue
            self._pending += 1
            await self._late.put((asyncio.get_running_loop().time() + self.delay_s, data))
            if not data:
                return

    async def deliver(self, writer: asyncio.StreamWriter) -> None:
        """Write delayed bytes when they are due; passes a half-close on. Raises `OSError`."""
        while True:
            due, data = await self._late.get()
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            await self.gate.passed()
            if not data:
                if writer.can_write_eof():
                    writer.write_eof()
                return
            await self._write(data, writer)
            self._pending -= 1

    async def carry_news(self) -> None:
        """Let as much time pass as bytes in this direction would need."""
        await self.gate.passed()
        await asyncio.sleep(self.delay_s)

    async def _write(self, data: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(data)
            await writer.drain()
        except OSError:
            await self.back.carry_news()
            raise


class Link:
    """A client's connection and the one made for it to the upstream."""

    def __init__(self, peer_port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peer_port = peer_port
        there, back = Stream(), Stream()
        there.back, back.back = back, there
        self.streams = {Way.TO_UPSTREAM: there, Way.TO_CLIENT: back}
        self._reader, self._writer = reader, writer
        self._up_writer: asyncio.StreamWriter | None = None
        self._copying: asyncio.Future[None] | None = None
        self._abandoned: Gate | None = None  #: open again when the client may notice

    def hold(self, ways: frozenset[Way]) -> None:
        """Hold these streams; the others flow."""
        for way, stream in self.streams.items():
            stream.gate.close() if way in ways else stream.gate.open()

    def abort(self) -> None:
        """Reset both ends."""
        for writer in (self._writer, self._up_writer):
            if writer is not None:
                writer.transport.abort()

    def abandon(self) -> None:
        """Reset the upstream's end. The client does not learn of it: what it sends is swallowed."""
        if self._copying is not None and self._abandoned is None:
            self._abandoned = Gate()
            self._abandoned.close()
            self._copying.cancel()

    def reset_abandoned(self) -> None:
        """Tell the client of an abandoned connection, by a reset, as a host answers bytes that it does not expect."""
        if self._abandoned is not None:
            self._abandoned.open()

    async def copy(self, up_reader: asyncio.StreamReader, up_writer: asyncio.StreamWriter) -> None:
        """Copy bytes both ways until both streams have ended, or one end was reset."""
        self._up_writer = up_writer
        self._copying = asyncio.ensure_future(self._copy(up_reader, up_writer))
        try:
            await self._copying
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._abandoned is None or (task is not None and task.cancelling()):
                raise  # the proxy stops
            up_writer.transport.abort()
            await self._swallow(self._abandoned)
            self._writer.transport.abort()
        finally:
            for end in (self._writer, up_writer):
                end.transport.abort() if end.transport.is_closing() else end.close()

    async def _copy(self, up_reader: asyncio.StreamReader, up_writer: asyncio.StreamWriter) -> None:
        there, back = self.streams[Way.TO_UPSTREAM], self.streams[Way.TO_CLIENT]
        try:
            async with asyncio.TaskGroup() as all_:
                all_.create_task(there.receive(self._reader, up_writer))
                all_.create_task(there.deliver(up_writer))
                all_.create_task(back.receive(up_reader, self._writer))
                all_.create_task(back.deliver(self._writer))
        except* OSError:
            pass  # one end was reset, and the other one may know: `copy` closes it

    async def _swallow(self, noticed: Gate) -> None:
        """Read until the client gives up, or may notice."""
        reading = asyncio.create_task(self._read_to_the_end())
        waiting = asyncio.create_task(noticed.passed())
        try:
            await asyncio.wait({reading, waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(reading, waiting)

    async def _read_to_the_end(self) -> None:
        with contextlib.suppress(OSError):
            while await self._reader.read(_CHUNK):
                pass
