"""The guided tours in a browser, in simulated groups: each, after each other one, does and shows what it says."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

from kernel.waiting import wait_until
from tests.comparison.playground.web.simulated_game import simulated_game
from tests.comparison.playground.web.test_tours import TOURS, Tour
from tests.support.pages.playground import opened

SPEED = 10
BY_ID = {tour.id: tour for tour in TOURS}


def walk(names: Sequence[str]) -> list[str]:
    """An order in which each of these follows each other one once: thirty orders of two take 31 tours."""
    left = {name: [other for other in names if other != name] for name in names}
    path, found = [names[0]], []
    while path:
        if left[path[-1]]:
            path.append(left[path[-1]].pop())
        else:
            found.append(path.pop())
    return found[::-1]


def take(page: Any, tour: Tour, wait_s: float = 60) -> None:
    """Take a tour to its end: every step, until everything that it expects has been seen."""
    root = page.locator("#tour")
    root.get_by_role("button", name=f"Begin: {tour.title}").click()
    for number, step in enumerate(tour.steps, start=1):
        root.get_by_role("heading", name=f"{tour.title}: {number} of {len(tour.steps)}").wait_for()
        if step.do:
            root.locator(".tools button").first.click()
            sees(root, tour.id, len(step.seen), wait_s)
        last = number == len(tour.steps)
        root.get_by_role("button", name="All tours" if last else "Next", exact=True).click()


def sees(root: Any, tour: str, wanted: int, wait_s: float) -> None:
    texts = root.locator(".seen li").all_text_contents
    wait_until(lambda: sum("✓" in each for each in texts()) == wanted, wait_s, lambda: f"{tour}: {texts()}")


def test_a_walk_has_every_order_of_two() -> None:
    orders = list(pairwise(walk([tour.id for tour in TOURS])))
    assert sorted(orders) == sorted(permutations(BY_ID, 2))


def test_every_tour_follows_every_other_one_in_groups_that_it_brings_back(browser: Any, tmp_path: Path) -> None:
    designs = sorted({design for tour in TOURS for design in tour.designs})
    with (
        simulated_game(tmp_path, *designs, speed=SPEED, is_told=False, rate=6) as game,
        opened(browser, game.address, reduced_motion="reduce") as page,
    ):
        page.keyboard.press("h")  # lanes that move cost more than the groups
        page.keyboard.press("t")
        for name in walk(list(BY_ID)):
            take(page, BY_ID[name])


def test_every_tour_of_a_simulated_game_begins_again(browser: Any, tmp_path: Path) -> None:
    with simulated_game(tmp_path, "eager", speed=SPEED) as game, opened(browser, game.address) as page:
        page.keyboard.press("t")
        for tour in TOURS:
            take(page, tour)
