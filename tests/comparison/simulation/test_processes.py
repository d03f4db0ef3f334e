"""Simulated processes as the runner starts them."""

from __future__ import annotations

import asyncio
import logging
import sys
from itertools import pairwise
from pathlib import Path
from signal import Signals
from types import ModuleType

import pytest

from comparison.scenarios.plan.links import links_of
from comparison.scenarios.processes.child_trace import ChildConfig, ChildTrace, Halt
from comparison.scenarios.processes.host import Host
from comparison.simulation.processes import SimulatedProcesses
from comparison.simulation.world import World
from kernel.trace.events import Role
from kernel.trace.words import TimeSource

Told = list[str]


def begun_ms(seed: int, links: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each of three processes took until its code ran."""
    world = World(seed, links_of(links))
    found: list[float] = []
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    async def main() -> None:
        processes = SimulatedProcesses(world, world.runtime(world.runner))
        begun = world.loop.time()

        async def run(_: Host) -> int:
            found.append((world.loop.time() - begun) * 1000)
            return 0

        module = ModuleType("started")
        module.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "started", module)
        for number in range(3):
            assert await (await processes.spawn("started", folder / f"{number}.log")).ended == 0
            begun = world.loop.time()

    world.run(main)
    return found


def test_processes_are_there_at_once_or_after_a_time_from_the_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = [begun_ms(seed, "start=50ms±20", tmp_path, monkeypatch) for seed in (1, 1, 2)]

    assert begun_ms(1, "loopback", tmp_path, monkeypatch) == [0, 0, 0]
    assert all(30 <= each <= 70 for case in drawn for each in case)
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(one != other for one, other in pairwise(drawn[0]))


@pytest.mark.parametrize("number", [Signals.SIGCONT, Signals.SIGKILL])
def test_what_a_process_traces_behind_the_point_where_it_stops_itself_is_held_until_it_goes_on(
    number: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, told = World(1), Told()
    monkeypatch.setattr(logging.getLogger(), "handlers", [])

    async def run(host: Host) -> int:
        config = ChildConfig(
            process="m1", design="eager", run="r", scenario="s", seed=1, trace=str(tmp_path / "m1.jsonl"),
            clock=TimeSource.SIMULATED,
        )  # fmt: skip
        trace = ChildTrace(config, Role.MEMBER, host, tee=lambda event: told.append(str(event["phase"])))
        trace.halt_at(Halt(kind="phase_entered", field="phase", value="stop"))
        for phase in ("detect", "stop", "decide"):
            trace.emit("phase_entered", member="a", attempt=1, phase=phase)
        await asyncio.sleep(0)
        trace.close()
        return 0

    async def main() -> None:
        process = await SimulatedProcesses(world, world.runtime(world.runner)).spawn("halting", tmp_path / "m1.log")
        await asyncio.sleep(1)
        assert process.is_stopped
        assert told == ["detect", "stop"]
        process.signal(number)
        await process.ended

    module = ModuleType("halting")
    module.run = run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "halting", module)
    world.run(main)

    assert told == ["detect", "stop", *(["decide"] if number is Signals.SIGCONT else [])]
