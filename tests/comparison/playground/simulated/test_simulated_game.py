"""A simulated game behind its server: time is turned by requests, and going back leads to the same moment again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
from aiohttp import ClientSession, ClientTimeout

from comparison.own_scenarios import why_not_judged
from comparison.playground import messages
from comparison.playground.messages import TimeState
from comparison.playground.simulated.setting_up import prepared
from comparison.playground.web.server import serving
from comparison.scenarios.plan.scenario_file import read_scenario
from comparison.scenarios.plan.vocabulary import Inject
from kernel.waiting import until

_WAIT_S = 120


class Page:
    """What a page sends, and what it would show."""

    def __init__(self, game: Any, client: ClientSession) -> None:
        self._game, self._client = game, client

    @property
    def now(self) -> messages.Snapshot:
        snapshot: messages.Snapshot = self._game.snapshot()
        return snapshot

    @property
    def time(self) -> TimeState:
        assert self.now.simulation is not None
        return self.now.simulation.time

    async def send(self, **command: object) -> str:
        """Why it was refused; '' if it was accepted."""
        async with self._client.post("command", json=command) as answer:
            assert answer.status == 200, await answer.text()
            said = await answer.json()
        assert said["accepted"] or said["reason"]
        return str(said["reason"])

    def scenarios(self) -> Sequence[messages.SavedScenario]:
        found: Sequence[messages.SavedScenario] = self._game.scenarios()
        return found

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        def reached() -> bool:
            assert self.now.status in (messages.Status.STARTING, messages.Status.RUNNING), self.now.reason
            return condition()

        await until(reached, _WAIT_S, what)

    async def until_it(self, time: TimeState) -> None:
        await self.until(lambda: self.time is time, f"time to be {time}")

    async def first_event(self) -> dict[str, Any]:
        async with self._client.get("events") as stream:
            async for line in stream.content:
                if line.startswith(b"data: {"):
                    found: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
                    return found
        raise AssertionError("no event")


@asynccontextmanager
async def played(folder: Path, *designs: str, members: int = 2, partitions: int = 2) -> AsyncIterator[Page]:
    """A game with its server, until the context ends; then it is interrupted, and nothing is left of it."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    given = {"members": members, "partitions": partitions, "seed": 3}
    made = prepared(folder, designs, given, command=["pytest"], idle_s=600)
    interrupted = asyncio.Event()

    async def analyse() -> Path:
        return made.bundle / "report.html"

    async with serving(made.game) as served, ClientSession(served.address, timeout=ClientTimeout(_WAIT_S)) as client:
        running = asyncio.create_task(made.game.run(made.provenance, analyse, interrupted))
        try:
            yield Page(made.game, client)
        finally:
            interrupted.set()
            await running
    left = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert not left, "processes of the game are still running"


async def test_time_stands_still_goes_back_and_leads_to_the_same_again(tmp_path: Path) -> None:
    async with played(tmp_path, "eager") as page:
        await page.until_it(TimeState.RUNNING)
        first = await page.first_event()
        assert first["simulation"]["seed"] == 3
        assert [group["rate"] for group in first["groups"]] == [4], "two records a second for each of two partitions"
        assert await page.send(type="pace", paused=True) == ""
        assert await page.send(type="next-event") == ""
        assert page.now.simulation is not None
        assert page.now.simulation.event.startswith("eager: ")
        assert await page.send(type="member", action="kill", member="m2") == ""
        killed_ms = page.now.at_ms
        assert await page.send(type="pace", paused=False, speed=100) == ""
        await page.until(lambda: page.now.at_ms > killed_ms + 4000, "the session of m2 to expire")
        assert await page.send(type="pace", paused=True) == ""
        then = page.now
        assert {each.deliverers for each in then.groups[0].partitions} == {("m1",)}

        # The same once more, beside it in another design.
        assert await page.send(type="same", design="eager", other="static") == ""
        await page.until_it(TimeState.PAUSED)
        assert page.now.at_ms == then.at_ms
        eager, static = page.now.groups
        assert eager == then.groups[0]
        assert [each.ended for each in static.members] == ["", "killed"]

        # Back to before the kill, which is forgotten; something else is played, and one goes back once more.
        assert await page.send(type="back", to_ms=killed_ms - 5) == ""
        await page.until_it(TimeState.PAUSED)
        assert page.now.at_ms == killed_ms - 5
        assert [each.state for each in page.now.groups[0].members] == ["running", "running"]
        assert await page.send(type="add-members", count=1, designs=["static"]) == ""
        assert await page.send(type="next-event") == ""
        assert await page.send(type="back", to_ms=page.now.at_ms) == ""
        await page.until_it(TimeState.PAUSED)
        assert [len(group.members) for group in page.now.groups] == [2, 3]

        # As a scenario, without the kill, which was undone, and without what was refused.
        assert await page.send(type="member", action="continue", member="m1", designs=["static"]) == "m1 is not frozen"
        (saved,) = page.scenarios()
        assert (saved.name, saved.designs, saved.steps, saved.left_out) == ("played-static.toml", ("static",), 1, 0)
        assert saved.text.count('step = "inject"') == 1
        assert 'fault = "join"' in saved.text

        for command, reason in (
            ({"type": "back", "to_ms": 99_000}, "99 s has not come yet: time can only go back"),
            ({"type": "same", "design": "eager", "other": "static"}, "static is shown already"),
            ({"type": "same", "design": "eager", "other": "raft"}, "there is no design raft"),
            ({"type": "same", "design": "server", "other": "zookeeper"}, "server is not part of this game"),
            ({"type": "member", "action": "continue", "member": "m1", "designs": ["eager"]}, "m1 is not frozen"),
        ):
            assert await page.send(**command) == reason
        assert [group.design for group in page.now.groups] == ["eager", "static"]


async def test_a_game_that_is_stopped_in_virtual_time_is_analysed_with_what_is_shown(tmp_path: Path) -> None:
    async with played(tmp_path, "eager") as page:
        await page.until_it(TimeState.RUNNING)
        assert await page.send(type="anew", played=["static"]) == ""
        await page.until_it(TimeState.RUNNING)
        assert await page.send(type="add-members", count=5) == ""
        assert await page.send(type="stop") == ""
        await until(lambda: page.now.status is messages.Status.ENDED, _WAIT_S, "the end")
        assert page.now.reason == "stopped on the page"
        bundle = Path(page.now.run_folder)
        assert page.now.scenarios == (str(bundle / "played.toml"),)
        assert [each.text for each in page.scenarios()] == [(bundle / "played.toml").read_text()]
    scenario = read_scenario(bundle / "played.toml", why_not_judged).scenario
    assert scenario.defaults.seed == 3
    assert [step for step in scenario.steps if isinstance(step, Inject)] == [Inject("join", "group", {"count": 5})]
    assert [folder.name for folder in (bundle / "playground").iterdir()] == ["static"]
    assert [each["design"] for each in json.loads((bundle / "command.json").read_text())["runs"]] == ["static"]
    assert json.loads((bundle / "playground/static/run.json").read_text())["outcome"] == "complete"
