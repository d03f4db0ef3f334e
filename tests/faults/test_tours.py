"""The playground's guided tours on real groups: what each step does brings about what it says one will see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from comparison.playground import commands, messages
from comparison.playground.web import server
from tests.faults.played_game import Player, play

pytestmark = pytest.mark.long

TOURS = json.loads((Path(server.__file__).parent / "tours.json").read_text())


@pytest.mark.parametrize("tour", TOURS, ids=[tour["id"] for tour in TOURS])
def test_what_a_tour_promises_is_seen(tour: Mapping[str, Any], tmp_path: Path) -> None:
    async def script(player: Player) -> None:
        def counter(seen: Mapping[str, Any]) -> float:
            return float(getattr(player.group(seen["design"]).counters, seen["counter"]))

        await player.running()
        await player.settled()
        for step in tour["steps"]:
            before = [(seen, counter(seen)) for seen in step.get("seen", ())]
            for sent in step.get("do", ()):
                assert await player.send(msgspec.convert(sent, commands.AnyCommand)) == ""
            for seen, was in before:
                await player.until(lambda s=seen, w=was: counter(s) >= w + s["by"], f"{step['say']}: {seen['say']}")
        assert await player.send(commands.Stop()) == ""

    player = play(tmp_path, tour["designs"], script)
    assert player.game.snapshot().status is messages.Status.ENDED
    assert player.game.snapshot().reason == "stopped on the page"
