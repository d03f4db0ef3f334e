"""A simulated game and its server on a thread of its own, for a browser that blocks the test's.

    with simulated_game(folder, "zookeeper", "eager") as game: ...   # game.address

With `is_told=False` its pages are not told that it is simulated: to them it is live, and their tours bring its groups
back by commands instead of beginning it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.play.setting_up import Planned, planned
from comparison.playground.simulated.game import MEMBERS_MAX, SimulatedGame
from comparison.playground.web.server import serving
from kernel.waiting import until
from tests.support.own_thread import held_open

#: Everything that these tests wait for comes within this time, even on a busy machine.
_WAIT_S = 120


class Untold:
    """A simulated game as a live one: `comparison.playground.messages.Game`, without a word of virtual time."""

    def __init__(self, game: SimulatedGame) -> None:
        self._game = game
        self.command = game.command

    def snapshot(self) -> messages.Snapshot:
        return replace(self._game.snapshot(), simulation=None)

    async def subscribe(self, after: int | None = None) -> AsyncIterator[messages.Snapshot | messages.Increment]:
        async with aclosing(self._game.subscribe(after)) as items:  # type: ignore[type-var]  # an asynchronous generator
            async for item in items:
                if isinstance(item, messages.Snapshot):
                    yield replace(item, simulation=None)
                    continue
                changes = (each for each in item.changes if not isinstance(each, messages.SimulationChanged))
                yield replace(item, changes=tuple(changes))


@dataclass(frozen=True)
class Played:
    address: str
    game: SimulatedGame


@contextmanager
def simulated_game(
    folder: Path, *designs: str, speed: float, is_told: bool = True, **given: object
) -> Iterator[Played]:
    """A game that runs, until the context ends; then it is interrupted."""
    plan = planned(folder, designs[:3], {"seed": 3, **given}, command=["pytest"], members_max=MEMBERS_MAX)
    plan = Planned(designs=designs, parameters=plan.parameters, bundle=plan.bundle, provenance=plan.provenance)
    with held_open(_playing(plan, speed, is_told=is_told), wait_s=_WAIT_S) as (played, _):
        yield played


@asynccontextmanager
async def _playing(plan: Planned, speed: float, *, is_told: bool) -> AsyncIterator[Played]:
    game, interrupted = SimulatedGame(plan, idle_s=600), asyncio.Event()

    async def analyse() -> Path:
        return plan.bundle / "report.html"

    async with serving(game if is_told else Untold(game)) as served:
        running = asyncio.create_task(game.run(plan.provenance, analyse, interrupted))
        try:
            await until(lambda: game.snapshot().status is messages.Status.RUNNING, _WAIT_S, "the game to run")
            assert (await game.command(commands.SetPace(speed=speed))).accepted
            yield Played(served.address, game)
        finally:
            interrupted.set()
            await running
