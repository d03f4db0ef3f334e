"""Child processes of a run: a JSON line in configures, JSON lines in command, JSON lines out tell.

Every child is born in the nursery, is its own process group, ends with its input, and is reaped: `stop` asks,
then terminates, then kills, and returns when the child is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

import msgspec

from comparison.scenarios.processes.child_trace import UNTRACED
from kernel.errors import RebalanceLabError
from kernel.waiting import WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from comparison.scenarios.processes.fork_server import Born, Nursery

_STOP_S = 5.0
_TERMINATE_S = 1.0
_LOG_TAIL_LINES = 5


class ChildFailed(RebalanceLabError):
    """A child ended by itself or told of an error; the message has the end of what it wrote to stderr."""


class ChildProcess:
    """One child. `on_event` is called on the event loop with every event that it tells."""

    def __init__(self, name: str, log: Path, born: Born, on_event: Callable[[Mapping[str, object]], None]) -> None:
        self.name = name
        self.log = log
        self.frozen = False
        self._born = born
        self._reading = asyncio.create_task(self._read(on_event), name=f"events of {name}")

    @classmethod
    async def spawn(
        cls, nursery: Nursery, module: str, name: str, log: Path, on_event: Callable[[Mapping[str, object]], None]
    ) -> ChildProcess:
        """Start `module.main()`; it waits for its configuration."""
        return cls(name, log, await nursery.spawn(module, log), on_event)

    @property
    def pid(self) -> int:
        return self._born.pid

    @property
    def returncode(self) -> int | None:
        return self._born.ended.result() if self._born.ended.done() else None

    def send(self, line: Mapping[str, object]) -> None:
        """Write one line. A child that is gone is not an error: its end is told elsewhere."""
        if self.returncode is None and not self._born.writer.is_closing():
            self._born.writer.write(msgspec.json.encode(line) + b"\n")

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)
        self.frozen = False

    async def kill(self) -> int:
        """SIGKILL to the whole process group; the exit code."""
        self._signal(signal.SIGKILL)
        return await self.gone()

    async def stop(self, *, at_once: bool = False) -> int:
        """Ask it to end in its own order, and see to it that it does; the exit code. `at_once` does not ask."""
        if self.returncode is None and not at_once:
            if self.frozen:
                self.thaw()
            self.send({"command": "stop"})
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self.gone(), _STOP_S)
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self.gone(), _TERMINATE_S)
        return await self.kill()

    async def gone(self) -> int:
        """The exit code, once the child has ended and everything that it told was heard."""
        # Shielded because wait_for cancels what it waits for, and others wait for the same end.
        code = await asyncio.shield(self._born.ended)
        self._born.writer.close()
        await asyncio.shield(self._reading)
        return code

    def log_tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines[-_LOG_TAIL_LINES:] if line.strip())

    def failure(self, doing: str) -> ChildFailed:
        tail = "it cannot write its trace" if self.returncode == UNTRACED else self.log_tail()
        return ChildFailed(f"{self.name} ended while {doing} (exit code {self.returncode}): {tail or 'no message'}")

    def _signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    async def _read(self, on_event: Callable[[Mapping[str, object]], None]) -> None:
        async for line in self._born.reader:
            with contextlib.suppress(msgspec.DecodeError):  # a line torn by SIGKILL
                event = msgspec.json.decode(line)
                if isinstance(event, dict):
                    on_event(event)


async def ended_within(child: ChildProcess, timeout_s: float) -> int:
    """The exit code of a child that is expected to end by itself."""
    try:
        return await asyncio.wait_for(child.gone(), timeout_s)
    except TimeoutError:
        raise WaitTimeout(f"{child.name} did not end within {timeout_s:g} s") from None
