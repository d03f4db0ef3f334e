"""Makes runs of schedules on real processes. Those that break no server share an ensemble."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from comparison.fuzzing.judging import Judgement, judge_folder
from comparison.scenarios.run.runner import perform
from comparison.scenarios.testbed.lent import LentEnsemble
from kernel.errors import UserError
from kernel.platform.swept_folder import swept_folder
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.fuzzing.schedule import Schedule
    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.processes.fork_server import ForkServer

#: The transaction log of an ensemble grows with each run, and a zookeeper run reads all of it.
RUNS_OF_AN_ENSEMBLE = 25
FOLDER_PREFIX = "rebalance-lab-fuzz-"


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


class LiveRuns:
    """See the module; a `comparison.fuzzing.attempts.Runs`."""

    clock = TimeSource.MONOTONIC

    def __init__(
        self,
        about: Mapping[str, object],
        fork_server: ForkServer,
        interrupted: asyncio.Event,
        on_stage: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._about = about
        self._fork_server = fork_server
        self._interrupted = interrupted
        self._on_stage = on_stage
        self._lender = Lender()

    async def judged(self, schedule: Schedule, request: RunRequest) -> Judgement:
        lent = None if schedule.breaks_servers else await self._lender.ensemble()
        try:
            outcome = await perform(
                request, self._about, self._fork_server, self._interrupted, self._on_stage, lent=lent
            )
        except UserError:
            await self._lender.stop()  # it may be what is broken
            raise
        if outcome.outcome != "complete":
            await self._lender.stop()
        if self._interrupted.is_set():
            return Judgement(unknown="interrupted")
        return await asyncio.to_thread(judge_folder, request.run_dir)

    async def stop(self) -> None:
        with contextlib.suppress(OSError):
            await self._lender.stop()
        await self._fork_server.stop()
