"""Child processes of a run: a JSON line in configures, JSON lines in command, JSON lines out tell.

Every child is its own process group, dies with its parent (`lifeline`, and the end of its standard input), and
is reaped: `stop` asks, then terminates, then kills, and returns when the child is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import msgspec

from kernel.errors import RebalanceLabError
from kernel.waiting import WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_LINE_LIMIT = 1 << 20
_STOP_S = 5.0
_TERMINATE_S = 1.0
_LOG_TAIL_LINES = 5


class ChildFailed(RebalanceLabError):
    """A child ended by itself or told of an error; the message has the end of what it wrote to stderr."""


class ChildProcess:
    """One child. `on_event` is called on the event loop with every event that it tells."""

    def __init__(self, name: str, log: Path, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.log = log
        self._process = process
        self._reader: asyncio.Task[None] | None = None
        self.frozen = False

    @classmethod
    async def spawn(
        cls, module: str, name: str, log: Path, on_event: Callable[[Mapping[str, object]], None]
    ) -> ChildProcess:
        """Start `python -m module`; it waits for its configuration."""
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                module,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                limit=_LINE_LIMIT,
                env={**os.environ, "REBALANCE_LAB_PARENT": str(os.getpid())},
            )
        child = cls(name, log, process)
        child._reader = asyncio.create_task(child._read(on_event), name=f"events of {name}")
        return child

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    def send(self, line: Mapping[str, object]) -> None:
        """Write one line. A child that is gone is not an error: its end is told elsewhere."""
        assert self._process.stdin is not None
        if self.returncode is None and not self._process.stdin.is_closing():
            self._process.stdin.write(msgspec.json.encode(line) + b"\n")

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)
        self.frozen = False

    async def kill(self) -> int:
        """SIGKILL to the whole process group; the exit code."""
        self._signal(signal.SIGKILL)
        return await self._gone()

    async def stop(self) -> int:
        """Ask it to end in its own order, and see to it that it does; the exit code."""
        if self.returncode is None:
            if self.frozen:
                self.thaw()
            self.send({"command": "stop"})
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self._gone(), _STOP_S)
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self._gone(), _TERMINATE_S)
        return await self.kill()

    def log_tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines[-_LOG_TAIL_LINES:] if line.strip())

    def failure(self, doing: str) -> ChildFailed:
        tail = self.log_tail()
        return ChildFailed(f"{self.name} ended while {doing} (exit code {self.returncode}): {tail or 'no message'}")

    def _signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    async def _gone(self) -> int:
        # Shielded because wait_for cancels what it waits for, and others wait for the same end.
        code = await self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self._reader is not None:
            await asyncio.shield(self._reader)
        return code

    async def _read(self, on_event: Callable[[Mapping[str, object]], None]) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            with contextlib.suppress(msgspec.DecodeError):  # a line torn by SIGKILL
                event = msgspec.json.decode(line)
                if isinstance(event, dict):
                    on_event(event)


async def ended_within(child: ChildProcess, timeout_s: float) -> int:
    """The exit code of a child that is expected to end by itself."""
    try:
        return await asyncio.wait_for(child._gone(), timeout_s)  # same module
    except TimeoutError:
        raise WaitTimeout(f"{child.name} did not end within {timeout_s:g} s") from None
