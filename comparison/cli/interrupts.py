"""What Ctrl-C and SIGTERM do while a command starts and while it loads modules.

KeyboardInterrupt must not be raised inside an import: a callback of the import system could lose it, and from within
`exec`, which dataclasses use, it makes `python -m` die of SIGINT although the exception was handled. So until the
command's module is loaded, when there is nothing to clean up, a signal ends the process at once and quietly. A command
that loads more modules at work lets signals wait until it has.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from comparison.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def end_at_once() -> None:
    """From now on signals end the process with the exit code of an interrupt."""
    for number in _SIGNALS:
        signal.signal(number, _end)


def raise_interrupts() -> None:
    """From now on signals raise KeyboardInterrupt. Does nothing unless `end_at_once` came before."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.default_int_handler)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Signals that come inside the block are handled when it ends, as they would have been before it."""
    waiting: list[int] = []
    before = {number: signal.signal(number, lambda came, _: waiting.append(came)) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            signal.raise_signal(waiting[0])


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(Exit.INTERRUPTED)
