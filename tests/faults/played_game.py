"""A game with real processes, played by a script instead of a page.

    game = play(tmp_path, ["zookeeper", "eager"], script, members=2)

`script` is a coroutine function that gets the `Player`; the game must end by itself or by `player.stop()`. All that a
page would have received is applied, and must give the game's own last snapshot; no process may be left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from comparison.playground import commands, messages
from comparison.playground.applying import applied
from comparison.playground.play.game import LabGame
from comparison.playground.play.setting_up import prepared
from kernel.waiting import until

Script = Callable[["Player"], Awaitable[None]]

_WAIT_S = 60.0


class Player:
    """Sends commands, and waits for what a page would show."""

    def __init__(self, game: LabGame, bundle: Path) -> None:
        self.game, self.bundle = game, bundle
        self.interrupted = asyncio.Event()

    def group(self, design: str) -> messages.Group:
        return next(each for each in self.game.snapshot().groups if each.design == design)

    def member(self, design: str, name: str) -> messages.Member | None:
        return next((each for each in self.group(design).members if each.name == name), None)

    def told(self, design: str) -> list[str]:
        return [sentence.text for sentence in self.group(design).feed]

    async def act(self, action: str, member: str, *designs: str, delay_ms: int = 0) -> str:
        """Why it was refused; '' if it was accepted everywhere."""
        wanted = commands.MemberAction(action)
        return await self.send(commands.ActOnMember(action=wanted, member=member, designs=designs, delay_ms=delay_ms))

    async def send(self, command: commands.AnyCommand) -> str:
        answer = await self.game.command(command)
        assert answer.accepted or answer.reason
        return answer.reason

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        def reached() -> bool:
            assert self.game.snapshot().status in (messages.Status.STARTING, messages.Status.RUNNING), (
                self.game.snapshot().reason
            )
            return condition()

        await until(
            reached, _WAIT_S, lambda: f"{what}; told: {[self.told(g.design) for g in self.game.snapshot().groups]}"
        )

    async def running(self) -> None:
        await self.until(lambda: self.game.snapshot().status is messages.Status.RUNNING, "the game to run")

    async def settled(self) -> None:
        """Wait until every partition is delivered by the one whom the authority names."""

        def one_each(group: messages.Group) -> bool:
            return bool(group.partitions) and all(p.deliverers == (p.owner,) for p in group.partitions)

        await self.until(
            lambda: all(map(one_each, self.game.snapshot().groups)), "each partition to have one deliverer"
        )


def play(folder: Path, designs: Sequence[str], script: Script, *, idle_s: float = 600, **given: Any) -> Player:
    """Play a game to its end."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    player = asyncio.run(_play(folder, designs, script, idle_s, given))
    left = {child.pid for child in psutil.Process().children(recursive=True)} - before
    assert not left, "processes of the game are still running"
    return player


async def _play(folder: Path, designs: Sequence[str], script: Script, idle_s: float, given: dict[str, Any]) -> Player:
    made = prepared(folder, designs, given, command=["pytest"], idle_s=idle_s)
    player = Player(made.game, made.bundle)
    received: list[messages.Snapshot | messages.Increment] = []

    async def watch() -> None:
        received.extend([item async for item in made.game.subscribe()])

    async def analyse() -> Path:
        return made.bundle / "report.html"

    watching = [asyncio.create_task(watch())] if idle_s >= 1 else []
    running = asyncio.create_task(made.game.run(made.provenance, analyse, player.interrupted))
    try:
        await script(player)
        last = await running
    finally:
        player.interrupted.set()
        await asyncio.gather(running, *watching, return_exceptions=True)
    if received:
        now = received[0]
        assert isinstance(now, messages.Snapshot)
        for item in received[1:]:
            assert isinstance(item, messages.Increment)
            now = applied(now, item)
        assert now == last
    return player
