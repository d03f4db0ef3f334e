"""What Ctrl-C and SIGTERM do while a command starts.

Until the command's module is loaded there is nothing to clean up, so a signal ends the process at once and quietly:
raised inside an import, KeyboardInterrupt could be lost in a callback of the import system. After that it is raised.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from comparison.exits import Exit

if TYPE_CHECKING:
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


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(Exit.INTERRUPTED)
