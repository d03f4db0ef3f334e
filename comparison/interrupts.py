"""What Ctrl-C and SIGTERM do, from a command's first import to the end of its process.

The first signal gives the command LIMIT_S to end in order: to leave its group, close its sessions, kill what it has
started. What is not done by then is given up: a thread ends the process, whatever the main thread waits for (a server
that does not answer, a resolver, the join of another thread). The signal reaches that thread through the wake-up
descriptor, since Python calls signal handlers only in the main thread, and not while that is inside a C function.
Children die with the process (`kernel.platform.processes`).

- While a command's modules are loaded, when there is nothing to clean up, a signal ends the process at once.
- Afterwards it raises `Interrupted`, once. A command that has to do something else says so for a block: `reacting`.
- Code that loads modules at work lets signals wait until it has: an exception raised in an import may be lost in a
  callback of the import system.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NoReturn

from comparison.exits import Exit
from kernel.platform.signals import handling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: How long a command may take to end after the first signal, and the environment variable that changes it.
LIMIT_S, LIMIT_VARIABLE = 2.0, "REBALANCE_LAB_STOP_S"
#: How long its last words may take.
_WORDS_S = 0.3
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(KeyboardInterrupt):
    """A signal came.

    Not KeyboardInterrupt itself: when that leaves an `exec`, which dataclasses use, Python dies of SIGINT in the end,
    although the exception was handled.
    """


class _Command:
    """The process of a command, and how it ends."""

    def __init__(self) -> None:
        self.is_watched = False
        self.has_reacted = False
        self.has_ended = False
        self.code: int = Exit.INTERRUPTED
        self.last_words: list[Callable[[], object]] = [_say_interrupted]


def _say_interrupted() -> None:
    sys.stderr.write("rebalance-lab: interrupted\n")
    sys.stderr.flush()


_command = _Command()


def end_at_once() -> None:
    """From now on signals end the process at once. Called first by a command's process."""
    if not _command.is_watched:
        _command.is_watched = True
        atexit.register(_leave)  # as the first one, it is called last
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_end_in_time, args=(reading,), name="interrupts", daemon=True).start()
    for number in _SIGNALS:
        signal.signal(number, _end)


def to_the_end(command: Callable[[], None]) -> None:
    """Run a command that ends in SystemExit, as all that this process does."""
    end_at_once()
    try:
        command()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            ending(ended.code)
        raise
    finally:
        end_at_once()  # a second Ctrl-C as the interpreter ends


def raise_interrupts() -> None:
    """From now on the first signal raises `Interrupted`. Does nothing unless `end_at_once` came before."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, _raise)


def ending(code: int) -> None:
    """The command has ended with this code, and has said everything: only the process has to end."""
    _command.code = code
    _command.has_ended = True
    _command.last_words = [lambda: None]


@contextmanager
def reacting(reaction: Callable[[], object]) -> Iterator[None]:
    """Signals inside the block call `reaction`, in the main thread."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        _command.has_reacted = True
        reaction()

    with handling(handle, *_SIGNALS):
        yield


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Signals that come inside the block are handled when it ends, as they would have been before it."""
    waiting: list[int] = []
    try:
        with handling(lambda came, _: waiting.append(came), *_SIGNALS):
            yield
    finally:
        if waiting:
            signal.raise_signal(waiting[0])


@contextmanager
def last_words(say: Callable[[], object]) -> Iterator[None]:
    """What is said if the command does not end in time inside the block, instead of that it was interrupted."""
    _command.last_words.append(say)
    try:
        yield
    finally:
        _command.last_words.remove(say)


def end_now() -> NoReturn:
    """End the process without any cleanup: as interrupted, unless it has ended already but for that."""
    os._exit(_command.code)


def _end(_number: int, _frame: FrameType | None) -> None:
    end_now()


def _raise(_number: int, _frame: FrameType | None) -> None:
    if not _command.has_reacted:
        _command.has_reacted = True
        raise Interrupted


def _leave() -> None:
    """The code is certain. As the interpreter goes, it would give signals back their default: to kill the process.

    After a signal nobody waits for it to take itself apart, which may take seconds when it has loaded much. And
    meanwhile a thread in a library of a store that still gives Python something back would abort the process.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if _command.has_reacted or (_command.has_ended and "fsspec" in sys.modules):
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # closed, or None
                stream.flush()
        os._exit(_command.code)


def _end_in_time(signals: int) -> None:
    """End the process when the limit has passed after the first signal."""
    while os.read(signals, 1)[0] not in _SIGNALS:
        pass
    time.sleep(_limit_s())
    words = threading.Thread(target=_command.last_words[-1], daemon=True)  # what it writes to may be stuck as well
    words.start()
    words.join(_WORDS_S)
    os._exit(_command.code)


def _limit_s() -> float:
    try:
        return max(0.0, float(os.environ.get(LIMIT_VARIABLE, LIMIT_S)))
    except ValueError:
        return LIMIT_S
