"""The guided tours in simulated groups: what each step does brings about what it says one will see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from comparison.playground.messages import MemberState, TimeState
from comparison.playground.web import server
from tests.comparison.playground.simulated.test_simulated_game import Page, played

pytestmark = pytest.mark.long

TOURS = json.loads((Path(server.__file__).parent / "tours.json").read_text())


def counter(page: Page, seen: Mapping[str, Any]) -> float:
    group = next(group for group in page.now.groups if group.design == seen["design"])
    return float(getattr(group.counters, seen["counter"]))


def has_ended(page: Page, member: str) -> bool:
    members = [each for group in page.now.groups for each in group.members if each.name == member]
    return all(each.state is MemberState.ENDED for each in members)


async def take(page: Page, tour: Mapping[str, Any]) -> None:
    assert await page.send(type="anew", played=tour["designs"]) == ""
    await page.until_it(TimeState.RUNNING)
    for step in tour["steps"]:
        before = [(seen, counter(page, seen)) for seen in step.get("seen", ())]
        for command in step.get("do", ()):
            if command.get("action") == "start":
                await page.until(lambda m=command["member"]: has_ended(page, m), "the member to end")
            assert await page.send(**command) == ""
        for seen, was in before:
            await page.until(
                lambda s=seen, w=was: counter(page, s) >= w + s["by"], f"{tour['id']}: {step['say']}: {seen['say']}"
            )


@pytest.mark.parametrize("tour", TOURS, ids=[tour["id"] for tour in TOURS])
async def test_what_a_tour_promises_is_seen_in_virtual_time(tour: Mapping[str, Any], tmp_path: Path) -> None:
    async with played(tmp_path, "eager", members=3, partitions=6) as page:
        await page.until_it(TimeState.RUNNING)
        assert await page.send(type="pace", speed=20) == ""
        await take(page, tour)
