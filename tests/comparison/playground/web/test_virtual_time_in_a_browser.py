"""The page of a simulated game: what turns its time, and what a page does when the game begins again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from comparison.playground import commands, messages
from comparison.playground.messages import TimeState
from tests.comparison.playground.web.staged_game import sent, served_game
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible
from tests.support.pages.playground import CUT, RUNNING, TWO_DELIVER, column, example_at, opened

SIMULATION = messages.Simulation(
    seed=7, designs=("zookeeper", "server", "eager", "static"), time=TimeState.PAUSED, speed=2
)


def at(moment: int, **fields: Any) -> messages.Snapshot:
    return replace(example_at(moment), simulation=replace(SIMULATION, **fields))


def test_a_live_game_has_no_time_to_turn(browser: Any) -> None:
    with served_game(example_at(RUNNING)) as game, opened(browser, game.address) as page:
        assert not page.locator("#time").is_visible()
        assert page.locator(".same").count() == 0
        for key in "pe,.z":
            page.keyboard.press(key)
        page.get_by_role("button", name="Keys").click()
        assert page.get_by_role("dialog", name="Keys").locator("kbd").count() == 5
        assert game.game.commands == []


def test_the_page_says_that_it_is_simulated_and_how_time_goes_on(browser: Any) -> None:
    with served_game(at(RUNNING)) as game, opened(browser, game.address) as page:
        time = page.get_by_role("region", name="Virtual time")
        time.get_by_text("Simulated").wait_for()
        assert time.locator("#seed").text_content() == "7"
        assert time.locator("#time-state").text_content() == "stands still"
        for state, fields, text in (
            (TimeState.RUNNING, {}, "2 ×"),
            (TimeState.RUNNING, {"reached": 0.5}, "2 ×; reaches 0.5 × with so many records"),
            (TimeState.FORMING, {}, "the groups are forming"),
            (TimeState.REPLAYING, {"until_ms": 61_250}, "runs again from the seed up to 1:01.250"),
        ):
            game.change(messages.SimulationChanged(simulation=replace(SIMULATION, time=state, **fields)))
            time.locator("#time-state").get_by_text(text, exact=True).wait_for()
        game.change(
            messages.SimulationChanged(simulation=replace(SIMULATION, event="eager: m2: JoinGroup is answered"))
        )
        time.get_by_role("status").get_by_text("m2: JoinGroup is answered").wait_for()
        assert "simulated" in page.title()


@pytest.mark.parametrize("how", ["pointer", "key"])
def test_time_is_turned(browser: Any, how: str) -> None:
    with served_game(at(RUNNING)) as game, opened(browser, game.address) as page:
        at_ms = game.game.now.at_ms
        for button, key, command in (
            ("Go on", "p", commands.SetPace(paused=False)),
            ("One event on", "e", commands.NextEvent()),
            ("1 s back", "z", commands.GoBack(to_ms=at_ms - 1000)),
        ):
            page.keyboard.press(key) if how == "key" else page.get_by_role("button", name=button, exact=True).click()
            sent(game, command)
        if how == "key":
            for key, speed in ((",", 1), (".", 5)):
                page.keyboard.press(key)
                sent(game, commands.SetPace(speed=speed))
            return
        page.get_by_label("Speed").select_option("0.1")
        sent(game, commands.SetPace(speed=0.1))
        page.get_by_label("Back to").fill("1.25")
        page.keyboard.press("Enter")
        sent(game, commands.GoBack(to_ms=1250))
        page.get_by_role("button", name="10 s back").click()
        sent(game, commands.GoBack(to_ms=max(0, at_ms - 10_000)))
        page.get_by_role("button", name="From the start").click()
        sent(game, commands.PlayAnew())


def test_a_column_is_played_in_another_design(browser: Any) -> None:
    with served_game(at(RUNNING)) as game, opened(browser, game.address) as page:
        eager = column(page, "eager")
        assert eager.locator(".same option").all_text_contents() == ["server", "static"]
        eager.get_by_label("Play the same as eager in", exact=True).select_option("static")
        eager.get_by_role("button", name="Play the same as eager").click()
        sent(game, commands.PlaySame(design="eager", other="static"))


def test_what_is_shown_is_new_when_the_game_begins_again(browser: Any) -> None:
    with served_game(at(TWO_DELIVER)) as game, opened(browser, game.address) as page:
        page.locator('.glance[data-kind="alarm"]').wait_for()
        earlier = at(CUT, take=1)
        anew = replace(earlier, groups=(replace(earlier.groups[1], design="static"),))
        game.begin_again(anew)
        column(page, "static").locator(".card").first.wait_for()
        assert page.locator(".group").count() == 1
        assert page.locator("#jump a").all_text_contents() == ["static"]
        assert page.locator('.glance[data-kind="alarm"]').count() == 0
        assert column(page, "static").locator(".feed p").count() == len(anew.groups[0].feed)


def test_groups_take_no_commands_before_their_first_members_are_there_and_time_goes_on(browser: Any) -> None:
    with served_game(at(RUNNING)) as game, opened(browser, game.address) as page:
        add = page.get_by_role("button", name="Add one in").first
        add.and_(page.locator('[aria-disabled="false"]')).wait_for()
        first = at(RUNNING, take=1)
        game.begin_again(replace(first, at_ms=0, groups=tuple(replace(each, members=()) for each in first.groups)))
        add.and_(page.locator('[aria-disabled="true"]')).wait_for()
        add.click(force=True)
        page.locator("#next-event").click()
        sent(game, commands.NextEvent())


def test_a_tour_begins_again_in_its_designs(browser: Any) -> None:
    with served_game(at(RUNNING)) as game, opened(browser, game.address) as page:
        page.keyboard.press("t")
        page.get_by_role("button", name="Begin: A static restart").click()
        sent(game, commands.PlayAnew(played=("eager", "static")))
        assert page.get_by_role("heading", name="1 of").count() == 0
        running = example_at(RUNNING).groups[1]
        groups = tuple(replace(running, design=design) for design in ("eager", "static"))
        game.begin_again(replace(at(RUNNING, take=1, time=TimeState.RUNNING), groups=groups))
        page.get_by_role("heading", name="1 of").wait_for()
        page.get_by_role("button", name="Next").click()
        page.get_by_role("button", name="Restart m2").click()
        page.locator('#tour [aria-disabled="true"]', has_text="Restart m2").wait_for()
        # Going back to before it undoes the step, and its part is pointed at in the columns that come.
        before = replace(game.game.now, at_ms=game.game.now.at_ms - 1000)
        game.begin_again(replace(before, simulation=replace(before.simulation, take=2, time=TimeState.PAUSED)))
        page.locator('#tour [aria-disabled="false"]', has_text="Restart m2").wait_for()
        page.locator(".group .looked-at").first.wait_for()


@pytest.mark.parametrize("width", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_in_a_simulated_game(browser: Any, width: Any) -> None:
    with (
        served_game(at(TWO_DELIVER, event="eager: m2: JoinGroup is answered")) as game,
        opened(browser, game.address, viewport=width, bypass_csp=True) as page,
    ):
        page.locator("#event").get_by_text("JoinGroup").wait_for()
        require_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
