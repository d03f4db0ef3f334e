"""Child processes of a run: the first JSON line in configures, further lines command, JSON lines out report events.

What runs a child is handed in (`Processes`): the fork server, or a simulation. A child ends when its input ends, and is
reaped: `stop` asks it to stop, then terminates, then kills it, and returns when it is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Protocol

import msgspec

from comparison.scenarios.processes.child_trace import UNTRACED
from kernel.errors import RebalanceLabError
from kernel.waiting import WaitTimeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from kernel.runtime import Runtime

    OnEvent = Callable[[Mapping[str, object]], None]

_STOP_S = 5.0
_TERMINATE_S = 1.0
_LOG_TAIL_LINES = 5


class ChildFailed(RebalanceLabError):
    """A child exited or reported an error; the message has the last lines of its stderr."""


class Process(Protocol):
    """What a child's code runs in, as the runner reaches it; `host.Host` is the child's side of it."""

    pid: int
    lines: AsyncIterator[bytes]  #: what it writes, until it ends
    ended: asyncio.Future[int]  #: its exit code once it has ended: the negative signal if one killed it

    def write(self, line: bytes) -> None:
        """Write to its input; nothing if it has ended."""

    def close(self) -> None:
        """End its input."""

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP, SIGCONT, SIGTERM or SIGKILL, to it and what it has started; nothing if it has ended."""

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has stopped it, its own or another's."""

    @property
    def ports(self) -> frozenset[int]:
        """The local ports of its TCP connections; none if it has ended."""


class Processes(Protocol):
    """What starts processes, and what the runner itself takes from the machine that they run on."""

    runtime: Runtime

    async def spawn(self, module: str, log: Path) -> Process:
        """Run a module's `main()` in a new process (or its `run` in a host), with its stderr appended to `log`.

        Raises `EnvironmentFault`.
        """


class ChildProcess:
    """One child. `on_event` is called on the event loop with every event that it reports."""

    def __init__(self, name: str, log: Path, process: Process, on_event: OnEvent) -> None:
        self.name = name
        self.log = log
        self.frozen = False
        self.process = process
        self._reading = asyncio.create_task(self._read(on_event), name=f"events of {name}")

    @classmethod
    async def spawn(
        cls,
        processes: Processes,
        module: str,
        name: str,
        log: Path,
        on_event: OnEvent,
    ) -> ChildProcess:
        """Start `module.main()`, which waits for its configuration."""
        return cls(name, log, await processes.spawn(module, log), on_event)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        return self.process.ended.result() if self.process.ended.done() else None

    def send(self, line: Mapping[str, object]) -> None:
        """Write one line. Writing to a child that has ended is no error: its end is reported elsewhere."""
        self.process.write(msgspec.json.encode(line) + b"\n")

    def freeze(self) -> None:
        self.process.signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        self.process.signal(signal.SIGCONT)
        self.frozen = False

    async def kill(self) -> int:
        """SIGKILL to the whole process group; the exit code."""
        self.process.signal(signal.SIGKILL)
        return await self.gone()

    async def stop(self, *, at_once: bool = False) -> int:
        """Stop it, by force if it does not end in time; the exit code. `at_once` kills it right away."""
        if self.returncode is None and not at_once:
            if self.frozen:
                self.thaw()
            self.send({"command": "stop"})
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self.gone(), _STOP_S)
            self.process.signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                return await asyncio.wait_for(self.gone(), _TERMINATE_S)
        return await self.kill()

    async def gone(self) -> int:
        """The exit code, once the child has ended and all its events were handled."""
        # Shielded: wait_for cancels what it waits for, and others wait for the same future.
        code = await asyncio.shield(self.process.ended)
        self.process.close()
        await asyncio.shield(self._reading)
        return code

    def log_tail(self) -> str:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return " | ".join(line.strip() for line in lines[-_LOG_TAIL_LINES:] if line.strip())

    def failure(self, doing: str) -> ChildFailed:
        tail = "it cannot write its trace" if self.returncode == UNTRACED else self.log_tail()
        return ChildFailed(f"{self.name} ended while {doing} (exit code {self.returncode}): {tail or 'no message'}")

    async def _read(self, on_event: OnEvent) -> None:
        async for line in self.process.lines:
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
