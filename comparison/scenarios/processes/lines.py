"""JSON lines between the runner and its children."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from comparison.scenarios.processes.host import Host

_Config = TypeVar("_Config")

#: The kind of a line that a member which is stepped writes when it waits before a ZooKeeper operation, and when it no
#: longer does. It is no event of the trace: the operation's own event comes with its answer.
WAITING = "zk_waiting"
#: The kind of a line that a process writes when it was asked to stop polling and its last poll has returned; no event
#: of the trace either.
POLLING_STOPPED = "polling_stopped"
#: The kind of a line that a process writes when a member could not start, so that it never joins; no event either.
NEVER_JOINS = "never_joins"
#: The kind of a line that a process writes when it has closed a consumer that the group refused for good; what the
#: trace says of that is `member_refused`.
REFUSED = "refused"


async def configured(lines: AsyncIterator[Mapping[str, object]], config: type[_Config]) -> _Config | None:
    """The first line; None when the process is stopped before it was needed."""
    first = await anext(lines, None)
    return None if first is None or "command" in first else msgspec.convert(first, config)


async def nothing(_: Mapping[str, object]) -> None:
    """Performs no command."""


def stopping_after(
    host: Host,
    lines: AsyncIterator[Mapping[str, object]],
    perform: Callable[[Mapping[str, object]], Awaitable[None]] = nothing,
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
    host.on_termination(stopping.cancel)
    return stopping
