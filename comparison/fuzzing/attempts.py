"""Makes one run of a schedule, and judges it. Runs that break no server share an ensemble."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.fuzzing.judging import Judgement, judge_folder
from comparison.run_folder import run_dir_of
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.request import RunRequest
from comparison.scenarios.run.runner import perform
from comparison.scenarios.testbed.lent import LentEnsemble
from kernel.errors import UserError
from kernel.platform.swept_folder import swept_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from comparison.fuzzing.schedule import Schedule
    from comparison.scenarios.processes.fork_server import ForkServer

#: The transaction log of an ensemble grows with each run, and a zookeeper run reads all of it.
RUNS_OF_AN_ENSEMBLE = 25
FOLDER_PREFIX = "rebalance-lab-fuzz-"
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


class Lender:
    """Starts an ensemble when it is first needed, and another one when that has served for long enough."""

    def __init__(self) -> None:
        self._ensemble: LentEnsemble | None = None
        self._folder = contextlib.ExitStack()
        self._given_up = threading.Event()
        self._starting: asyncio.Future[LentEnsemble] | None = None

    async def ensemble(self) -> LentEnsemble:
        """Raises `EnvironmentFault` if it cannot be started."""
        if self._ensemble is not None and self._ensemble.runs >= RUNS_OF_AN_ENSEMBLE:
            await self.stop()
        if self._ensemble is None:
            self._given_up.clear()
            folder, _ = self._folder.enter_context(swept_folder(FOLDER_PREFIX))
            starting = asyncio.to_thread(LentEnsemble(folder, self._given_up).start)
            self._starting = asyncio.ensure_future(starting)
            self._ensemble = await asyncio.shield(self._starting)
        return self._ensemble

    async def stop(self) -> None:
        """Also one that is starting: a thread cannot be cancelled."""
        self._given_up.set()
        if self._starting is not None:
            await asyncio.gather(self._starting, return_exceptions=True)
        if self._ensemble is not None:
            await asyncio.to_thread(self._ensemble.stop)
        await asyncio.to_thread(self._folder.close)
        self._ensemble = self._starting = None


class Attempts:
    """Makes runs, one after the other, each in a folder of its own in the bundle."""

    def __init__(
        self,
        bundle: Path,
        about: Mapping[str, object],
        fork_server: ForkServer,
        interrupted: asyncio.Event,
        on_stage: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._bundle = bundle
        self._about = about
        self._fork_server = fork_server
        self._interrupted = interrupted
        self._on_stage = on_stage
        self._lender = Lender()
        self._in_a_row = 0  #: runs that could not start, or not go on

    async def make(self, schedule: Schedule, *names: str) -> Attempt:
        """Raises `UserError` if several in a row cannot start, or not go on."""
        begun = time.monotonic()
        scenario = schedule.scenario()
        parameters = scenario.parameters({})
        folder = run_dir_of(self._bundle, *names)
        request = RunRequest(
            scenario=scenario,
            design=schedule.design,
            parameters=parameters,
            configuration=configuration(schedule.design, parameters),
            zookeeper="embedded",
            run="/".join((self._bundle.name, *names)),
            run_dir=folder,
        )
        lent = None if schedule.breaks_servers else await self._lender.ensemble()
        error = ""
        try:
            outcome = await perform(
                request, self._about, self._fork_server, self._interrupted, self._on_stage, lent=lent
            )
        except UserError as caught:
            self._in_a_row += 1
            if self._in_a_row >= _UNSTARTED_MAX:
                raise
            error = str(caught)
        else:
            self._in_a_row = 0
        if error or outcome.outcome != "complete":
            await self._lender.stop()  # it may be what is broken
        interrupted = self._interrupted.is_set()
        judgement = Judgement(unknown=error or "interrupted")
        if not error and not interrupted:
            judgement = await asyncio.to_thread(judge_folder, folder)
        return Attempt(
            schedule=schedule,
            judgement=judgement,
            folder=folder,
            seconds=time.monotonic() - begun,
            interrupted=interrupted,
        )

    async def stop(self) -> None:
        with contextlib.suppress(OSError):
            await self._lender.stop()
