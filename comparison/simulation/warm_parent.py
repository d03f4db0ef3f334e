"""A process that has done a piece of work once, and forks a child for each further one.

What the first piece loads and keeps (imports, codecs, compiled queries) is paid for once, and no piece finds what
another one has left in memory but this. Parent and children die with the process that asks.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import resource
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from comparison.scenarios.processes.parent_death import set_parent_death_signal
from comparison.simulation.runs import end_with, received
from kernel.errors import EnvironmentFault

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

T = TypeVar("T")

#: Processor time of a child, after which it is killed: it would go on forever. The longest run of the catalogue takes
#: 60 s on a busy machine (five minutes of `unnoticed-partitions`).
CPU_S_MAX = 240


class WarmParent(Generic[T]):
    """Starts the process at once. `warm` is called in it before work of its kind is done for the first time."""

    def __init__(self, warm: Callable[[str], object], work: Callable[..., T]) -> None:
        context = multiprocessing.get_context("fork")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(warm, work, theirs, self._ours, os.getpid()))
        self._process.start()
        theirs.close()

    async def do(self, kind: str, *arguments: Any) -> T:
        """Have a child do a piece of work, after all earlier ones.

        Raises what `work` raises if it is a `RebalanceLabError`, and `EnvironmentFault` if the child has ended
        without a result, or was stopped.
        """
        with suppress(OSError):  # it has been stopped
            self._ours.send((kind, arguments))
        said = await asyncio.to_thread(received, self._ours)
        if isinstance(said, BaseException):
            raise said
        return said  # type: ignore[no-any-return]  # what `work` returned

    async def stop(self) -> None:
        """Kill it, with a child that is at work. Idempotent."""
        self._process.kill()
        await asyncio.to_thread(self._process.join)


def _serve(
    warm: Callable[[str], object], work: Callable[..., object], asked: Connection, others: Connection, parent: int
) -> NoReturn:
    set_parent_death_signal(parent)
    others.close()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent says when to stop
    warmed: set[str] = set()
    with suppress(EOFError):
        while True:
            kind, arguments = asked.recv()
            if kind not in warmed:
                warm(kind)
                warmed.add(kind)
                gc.collect()
                gc.freeze()  # so that collections in children do not copy what is shared
            if (child := os.fork()) == 0:
                _child(work, arguments, asked)
            if status := os.waitpid(child, 0)[1]:
                asked.send(EnvironmentFault(_how_ended(os.waitstatus_to_exitcode(status))))
    os._exit(0)


def _child(work: Callable[..., object], arguments: tuple[Any, ...], asked: Connection) -> NoReturn:
    set_parent_death_signal(os.getppid())
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S_MAX, CPU_S_MAX + 1))
    end_with(lambda: work(*arguments), asked)


def _how_ended(code: int) -> str:
    if code == -signal.SIGXCPU:
        return f"the simulated run has not ended after {CPU_S_MAX} s of processor time"
    return f"the process of the simulated run has ended with exit code {code}"
