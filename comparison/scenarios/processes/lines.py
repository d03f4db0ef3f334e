"""JSON lines between the runner and its children."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

_Config = TypeVar("_Config")

#: The kind of a line that a member which is stepped writes when it waits before a ZooKeeper operation, and when it no
#: longer does. It is no event of the trace: the operation's own event comes with its answer.
WAITING = "zk_waiting"
#: The kind of a line that a process writes when it was asked to stop polling and its last poll has returned; no event
#: of the trace either.
POLLING_STOPPED = "polling_stopped"


async def lines_of_stdin() -> AsyncIterator[Mapping[str, object]]:
    """Each line as an object, until the input ends. Other lines are reported on stderr and skipped."""
    reader = asyncio.StreamReader(limit=1 << 20)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    try:
        async for line in reader:
            try:
                yield msgspec.json.decode(line, type=dict[str, object])
            except msgspec.DecodeError as error:
                sys.stderr.write(f"not a JSON object: {line[:80]!r}: {error}\n")
    finally:
        transport.close()


async def configured(lines: AsyncIterator[Mapping[str, object]], config: type[_Config]) -> _Config | None:
    """The first line; None when the process is stopped before it was needed."""
    first = await anext(lines, None)
    return None if first is None or "command" in first else msgspec.convert(first, config)


async def nothing(_: Mapping[str, object]) -> None:
    """Performs no command."""


def stopping_after(
    lines: AsyncIterator[Mapping[str, object]], perform: Callable[[Mapping[str, object]], Awaitable[None]] = nothing
) -> asyncio.Task[None]:
    """A task that ends when the process is to end: a line says so, the input ends, or SIGTERM comes.

    It lets `perform` perform every other line.
    """

    async def until_stopped() -> None:
        async for line in lines:
            if line.get("command") == "stop":
                return
            await perform(line)

    stopping = asyncio.create_task(until_stopped())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.cancel)
    return stopping


def write_event(event: Mapping[str, object]) -> None:
    """Write one line to standard output, unbuffered. A closed reader is not an error."""
    data = memoryview(msgspec.json.encode(event) + b"\n")
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]
