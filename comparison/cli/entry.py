"""The console script: Ctrl-C and SIGTERM end every command with the documented exit code, from its first import on.

Until a command's module is loaded there is nothing to clean up, so a signal ends the process at once and quietly:
raised inside an import, KeyboardInterrupt could be lost in a callback of the import system. After that it is raised.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: `Exit.INTERRUPTED`; importing it would take longer than Python's own start.
_INTERRUPTED = 130


def main() -> None:
    """Import and run the command line."""
    for number in _SIGNALS:
        signal.signal(number, _end)
    from comparison.cli.main import main as command_line

    command_line()


def raise_interrupts() -> None:
    """From now on signals raise KeyboardInterrupt. Does nothing in a process that was not started by `main`."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.default_int_handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
