"""Makes runs of schedules in simulated worlds, each in a child of a process that has imported everything."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.fuzzing.drawing import draw
from comparison.fuzzing.judging import Judgement, judge_folder
from comparison.fuzzing.schedule import request_of
from comparison.scenarios.plan.request import simulated_run
from comparison.simulation.runs import performed
from comparison.simulation.virtual_loop import Stalled
from comparison.simulation.warm_parent import WarmParent
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.fuzzing.schedule import Schedule
    from comparison.scenarios.plan.request import RunRequest


class SimulatedRuns:
    """See the module; a `comparison.fuzzing.attempts.Runs`."""

    clock = TimeSource.SIMULATED

    def __init__(self, about: Mapping[str, object], interrupted: asyncio.Event) -> None:
        self._parent = WarmParent(partial(_warmed, about), partial(_judged, about))
        self._stopping = asyncio.create_task(self._stopped(interrupted))

    async def judged(self, schedule: Schedule, request: RunRequest) -> Judgement:
        return await self._parent.do(schedule.design, request)

    async def _stopped(self, interrupted: asyncio.Event) -> None:
        await interrupted.wait()
        await self._parent.stop()

    async def stop(self) -> None:
        self._stopping.cancel()
        await self._parent.stop()


def _judged(about: Mapping[str, object], request: RunRequest) -> Judgement:
    """Perform a run in a world of its own, and judge it."""
    run = simulated_run(request.scenario.name, request.design, request.parameters)
    try:
        performed(replace(request, run=run), about, lambda _: None)
    except Stalled as error:
        return Judgement(unknown=str(error))
    return judge_folder(request.run_dir)


def _warmed(about: Mapping[str, object], design: str) -> None:
    """Run and judge a short schedule: what every run needs is loaded afterwards."""
    handlers = list(logging.getLogger().handlers)
    with tempfile.TemporaryDirectory() as folder:
        schedule = draw(0, 1, design, simulated=True)
        request = request_of(schedule, Path(folder), run="", clock=TimeSource.SIMULATED)
        (request.run_dir / "trace").mkdir()
        _judged(about, request)
    logging.getLogger().handlers[:] = handlers
