"""Runs users' code, which may raise anything or never return, so that a run ends as failed and says where.

Code that waits is ended by the run's time limit. Code that blocks the event loop (`time.sleep`, an endless loop) is
interrupted after BLOCKED_S: meanwhile the runner would see nothing of the group, and could not stop it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from comparison.scenarios.run.performer import Performer
from kernel.code_places import users_place
from kernel.errors import RebalanceLabError, UserError
from kernel.platform.signals import handling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FrameType

    from comparison.scenarios.plan.faults import Given
    from comparison.scenarios.run.changes import Changes

#: How long own code may keep the event loop, and how often that is looked at.
BLOCKED_S, _LOOK_S = 20.0, 1.0
#: The file in a run's folder that has the traceback.
TRACEBACK = "own-code.txt"


class OwnCodeFailed(RebalanceLabError):
    """A user's step or fault raised an exception."""


class Blocked(Exception):
    """A user's step or fault has kept the event loop for too long."""


@contextlib.contextmanager
def own_code(name: str, changes: Changes) -> Iterator[None]:
    """Run a part of a user's step or fault. Raises `OwnCodeFailed` for whatever it raises; a wait may time out."""
    try:
        with _not_blocking():
            yield
    except RebalanceLabError as error:
        if not isinstance(error, UserError):
            raise
        raise _failed(name, error, changes) from error
    except Exception as error:
        raise _failed(name, error, changes) from error


def _failed(name: str, error: Exception, changes: Changes) -> OwnCodeFailed:
    path = changes.testbed.request.run_dir / TRACEBACK
    # What fails when the run is broken off comes after what broke it off.
    with contextlib.suppress(OSError), path.open("a", encoding="utf-8") as file:
        file.writelines(traceback.format_exception(error))
    place = users_place(error)
    where = f"{place}, traceback in {TRACEBACK}" if place else f"traceback in {TRACEBACK}"
    return OwnCodeFailed(f"{name} failed: {type(error).__name__}: {error} ({where})")


@dataclass(slots=True)
class Heart:
    """Beats while the event loop runs. Times in seconds: of the clock, and what the loop's thread has computed."""

    beaten_s: float
    computed_s: float
    _was_late: bool = False

    def beat(self, now_s: float, computed_s: float) -> None:
        self.beaten_s, self.computed_s = now_s, computed_s

    def has_stopped(self, now_s: float, computed_s: float) -> bool:
        """Whether something keeps the loop.

        When the process goes on after a stop, the loop is late because it could not run. But then it has computed
        nothing, and is in time when it is looked at again.
        """
        is_late = now_s - self.beaten_s > BLOCKED_S
        late_before, self._was_late = self._was_late, is_late
        return is_late and (late_before or computed_s - self.computed_s > BLOCKED_S / 2)


@contextlib.contextmanager
def _not_blocking() -> Iterator[None]:
    """Raise `Blocked` inside code that keeps the event loop for longer than BLOCKED_S while this lasts."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals cannot be handled here
        return
    heart = Heart(time.monotonic(), time.thread_time())

    async def beat() -> None:
        while True:
            heart.beat(time.monotonic(), time.thread_time())
            await asyncio.sleep(_LOOK_S)

    def look(_: int, __: FrameType | None) -> None:
        if heart.has_stopped(time.monotonic(), time.thread_time()):
            raise Blocked(f"it kept the event loop for {BLOCKED_S:g} s: await, or use asyncio.to_thread")

    beating = asyncio.create_task(beat())
    with handling(look, signal.SIGALRM):
        signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            beating.cancel()


class GuardedFault(Performer):
    """A user's fault, whose errors end the run."""

    changes: Changes
    made: ClassVar[type[Performer]]
    name: ClassVar[str]

    def __init__(self, changes: Changes, target: str, values: Mapping[str, Given]) -> None:
        super().__init__(changes, target, values)
        with own_code(self.name, changes):
            self._own = self.made(changes, target, values)

    async def setup(self) -> None:
        with self._guarded():
            await self._own.setup()
            self.target = self._own.target

    async def inject(self) -> None:
        with self._guarded():
            await self._own.inject()

    async def heal(self) -> None:
        with self._guarded():
            await self._own.heal()

    def abandon(self) -> None:
        """Whatever goes wrong is only kept: the run is being broken off."""
        with contextlib.suppress(RebalanceLabError), self._guarded():
            self._own.abandon()

    def _guarded(self) -> contextlib.AbstractContextManager[None]:
        return own_code(self.name, self.changes)


def guarded(performer: type[Performer], name: str) -> type[Performer]:
    """A user's performer with its errors turned into `OwnCodeFailed`."""
    return type(performer.__name__, (GuardedFault,), {"made": performer, "name": name})
