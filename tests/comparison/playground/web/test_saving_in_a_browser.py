"""Saving a game as a scenario from its page: what is offered, what is kept, and what the end names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.playground import messages
from tests.comparison.playground.web.staged_game import served_game
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible
from tests.support.pages.playground import HEALED, example_at, opened

EVIL = "</script><img src=x onerror=window.attacked=1>\u202e"


def scenario(name: str, *designs: str, left_out: int = 0, text: str = "") -> messages.SavedScenario:
    return messages.SavedScenario(
        name=name, designs=designs, steps=3, left_out=left_out, command=f"rebalance-lab run {name}", text=text
    )


def test_what_was_played_is_kept_as_a_file(browser: Any, tmp_path: Path) -> None:
    with served_game(example_at(HEALED)) as game, opened(browser, game.address) as page:
        button, dialog = page.get_by_role("button", name="Save as scenario"), page.get_by_role("dialog")
        button.click()
        dialog.get_by_text("Nothing was done yet").wait_for()
        dialog.get_by_role("button", name="Close").click()
        game.game.saved = [
            scenario("played-zookeeper.toml", "zookeeper", left_out=1, text=f"# {EVIL}\n"),
            scenario("played-eager.toml", "eager", text="# eager\n"),
        ]
        button.click()
        items = dialog.locator("#saved li")
        dialog.get_by_role("link", name="played-eager.toml").wait_for()
        assert items.all_text_contents() == [
            "played-zookeeper.toml (zookeeper): 3 commands; 1 more is left out, which a comment in the file explains"
            "Run it: rebalance-lab run played-zookeeper.toml",
            "played-eager.toml (eager): 3 commandsRun it: rebalance-lab run played-eager.toml",
        ]
        with page.expect_download() as kept:
            dialog.get_by_role("link", name="played-zookeeper.toml").click()
        kept.value.save_as(tmp_path / "mine.toml")
        assert kept.value.suggested_filename == "played-zookeeper.toml"
        assert (tmp_path / "mine.toml").read_text() == f"# {EVIL}\n"


def test_hostile_names_in_the_dialog_stay_text(browser: Any) -> None:
    with served_game(example_at(HEALED)) as game, opened(browser, game.address) as page:
        game.game.saved = [scenario(EVIL, EVIL)]
        page.get_by_role("button", name="Save as scenario").click()
        page.locator("#saved li").get_by_text("</script><img").first.wait_for()
        assert page.locator("#saved img").count() == 0
        assert "\u202e" not in page.locator("#saved").inner_html()
        assert page.evaluate("window.attacked") is None


def test_a_game_that_does_not_answer_is_said_to(browser: Any) -> None:
    with served_game(example_at(HEALED)) as game, opened(browser, game.address, expected=("net::",)) as page:
        page.route("**/scenarios", lambda route: route.abort())
        page.get_by_role("button", name="Save as scenario").click()
        page.locator("#saved").get_by_text("The game does not answer").wait_for()


def test_the_end_names_the_scenarios(browser: Any) -> None:
    with served_game(example_at(HEALED)) as game, opened(browser, game.address) as page:
        end = messages.StatusChanged(
            status=messages.Status.ENDED, reason="stopped on the page", scenarios=("runs/x/played.toml",)
        )
        game.change(end)
        link = page.locator("#ended").get_by_role("link", name="played.toml", exact=True)
        assert link.get_attribute("href") == "played.toml"


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_axe_finds_nothing_in_the_dialog(browser: Any, size: dict[str, int], scheme: str) -> None:
    with (
        served_game(example_at(HEALED)) as game,
        opened(browser, game.address, viewport=size, color_scheme=scheme, bypass_csp=True) as page,
    ):
        game.game.saved = [scenario("played.toml", "zookeeper", "eager", left_out=2)]
        page.get_by_role("button", name="Save as scenario").click()
        page.get_by_role("link", name="played.toml").wait_for()
        require_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
