"""Makes one run of a schedule after the other, and has each judged."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from comparison.fuzzing.judging import Judgement
from comparison.fuzzing.schedule import request_of
from comparison.run_folder import run_dir_of
from kernel.errors import UserError

if TYPE_CHECKING:
    import asyncio
    from pathlib import Path

    from comparison.fuzzing.schedule import Schedule
    from comparison.scenarios.plan.request import RunRequest
    from kernel.trace.words import TimeSource

#: More in a row are no accident.
_UNSTARTED_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a schedule."""

    schedule: Schedule
    judgement: Judgement
    folder: Path
    seconds: float
    interrupted: bool = False

    def remove(self) -> None:
        """Delete its folder: it shows nothing that others do not."""
        shutil.rmtree(self.folder, ignore_errors=True)


class Runs(Protocol):
    """What makes runs: real processes, or a simulated world."""

    clock: TimeSource

    async def judged(self, schedule: Schedule, request: RunRequest) -> Judgement:
        """Make one, and judge it. Raises `UserError` if it cannot start, or not go on."""

    async def stop(self) -> None: ...


class Attempts:
    """Makes runs, each in a folder of its own in the bundle."""

    def __init__(self, bundle: Path, runs: Runs, interrupted: asyncio.Event) -> None:
        self._bundle = bundle
        self._runs = runs
        self._interrupted = interrupted
        self._in_a_row = 0  #: runs that could not start, or not go on

    async def make(self, schedule: Schedule, *names: str) -> Attempt:
        """Raises `UserError` if several in a row cannot start, or not go on."""
        begun = time.monotonic()
        folder = run_dir_of(self._bundle, *names)
        request = request_of(schedule, folder, run="/".join((self._bundle.name, *names)), clock=self._runs.clock)
        try:
            judgement = await self._runs.judged(schedule, request)
        except UserError as caught:
            self._in_a_row += 1
            if self._in_a_row >= _UNSTARTED_MAX:
                raise
            judgement = Judgement(unknown=str(caught))
        else:
            self._in_a_row = 0
        return Attempt(
            schedule=schedule,
            judgement=judgement,
            folder=folder,
            seconds=time.monotonic() - begun,
            interrupted=self._interrupted.is_set(),
        )
