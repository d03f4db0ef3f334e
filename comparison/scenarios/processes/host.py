"""What a child's code has of the process that it runs in; `children.Process` is the runner's side of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

import msgspec

from kernel.clock import SystemClock
from kernel.runtime import REAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping


class Host:
    """A process of the operating system with its standard streams; a simulation's is a subclass."""

    runtime = REAL

    async def lines(self) -> AsyncIterator[Mapping[str, object]]:
        """Each line of the input as an object, until it ends. Other lines are reported on stderr and skipped."""
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

    def write(self, event: Mapping[str, object]) -> None:
        """Write one line, unbuffered. A runner that no longer reads is no error."""
        data = memoryview(msgspec.json.encode(event) + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while data:
                data = data[os.write(sys.stdout.fileno(), data) :]

    def on_termination(self, call: Callable[[], object]) -> None:
        """Call this when the process is asked to end (SIGTERM)."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, call)

    def halt(self) -> None:
        """Stop right here (SIGSTOP), until the runner lets the process go on."""
        os.kill(os.getpid(), signal.SIGSTOP)

    def puts_off(self, _: Callable[[], object]) -> bool:
        """Whether something is done only when the process goes on. A real one that has stopped is doing nothing."""
        return False

    def end(self, code: int) -> NoReturn:
        """End right here."""
        os._exit(code)

    def step_clock(self, by_ms: int) -> None:
        """Set the wall clock of this process ahead, or back."""
        SystemClock.step(by_ms)
