"""Child processes of a run: the first JSON line in configures, further lines command, JSON lines out report events.

The fork server forks every child. A child has its own process group, ends when its input ends, and is reaped: `stop`
asks it to stop, then terminates, then kills it, and returns when it is gone.
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

    from comparison.scenarios.processes.fork_server import ForkedChild, ForkServer

    OnEvent = Callable[[Mapping[str, object]], None]

_STOP_S = 5.0
_TERMINATE_S = 1.0
_LOG_TAIL_LINES = 5


class ChildFailed(RebalanceLabError):
    """A child exited or reported an error; the message has the last lines of its stderr."""


class ChildProcess:
    """One child. `on_event` is called on the event loop with every event that it reports."""

    def __init__(self, name: str, log: Path, forked: ForkedChild, on_event: OnEvent) -> None:
        self.name = name
        self.log = log
        self.frozen = False
        self._forked = forked
        self._reading = asyncio.create_task(self._read(on_event), name=f"events of {name}")

    @classmethod
    async def spawn(
        cls,
        fork_server: ForkServer,
        module: str,
        name: str,
        log: Path,
        on_event: OnEvent,
    ) -> ChildProcess:
        """Start `module.main()`, which waits for its configuration."""
        return cls(name, log, await fork_server.spawn(module, log), on_event)

    @property
    def pid(self) -> int:
        return self._forked.pid

    @property
    def returncode(self) -> int | None:
        return self._forked.ended.result() if self._forked.ended.done() else None

    def send(self, line: Mapping[str, object]) -> None:
        """Write one line. Writing to a child that has ended is no error: its end is reported elsewhere."""
        if self.returncode is None and not self._forked.writer.is_closing():
            self._forked.writer.write(msgspec.json.encode(line) + b"\n")

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
        """Stop it, by force if it does not end in time; the exit code. `at_once` kills it right away."""
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
        """The exit code, once the child has ended and all its events were handled."""
        # Shielded: wait_for cancels what it waits for, and others wait for the same future.
        code = await asyncio.shield(self._forked.ended)
        self._forked.writer.close()
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

    async def _read(self, on_event: OnEvent) -> None:
        async for line in self._forked.reader:
            with contextlib.suppress(msgspec.DecodeError):  # a line torn by SIGKILL
                event = msgspec.json.decode(line)
                if isinstance(event, dict):
                    on_event(event)


async def ended_within(child: ChildProcess, timeout_s: float) -> int:
    """Wait for a child that is expected to exit; its exit code. Raises `WaitTimeout`."""
    try:
        return await asyncio.wait_for(child.gone(), timeout_s)
    except TimeoutError:
        raise WaitTimeout(f"{child.name} did not end within {timeout_s:g} s") from None
