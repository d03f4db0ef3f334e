"""Take the pictures that the README and the docs show, of pages of fresh runs: `make pictures` (needs Chromium).

Four of them, each in light and in dark: the ownership lanes of a split brain in two designs, those of restarts, the
playground while a member is cut off, and a step of a recorded tour. Each run differs a little from the last one, so
look at what has been taken before you commit it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docs.generators.recorded_pages import replay_page
from docs.generators.sessions import a_browser, game, performed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PICTURES = Path(__file__).parents[1] / "pictures"
SPLIT_BRAIN = ("run", "split-brain", "--design", "zookeeper,eager", "--partitions", "6", "--seed", "1")
RESTARTS = (
    *("run", "rolling-restart", "--design", "zookeeper,cooperative"),
    *("--partitions", "6", "--members", "3", "--seed", "1"),
)
GAME = ("playground", "--design", "zookeeper,eager", "--seed", "1")
#: Wide enough for what is beside each other, narrow enough to be read in a README.
_VIEW, _PLAYGROUND_VIEW = {"width": 1100, "height": 800}, {"width": 1340, "height": 760}
_TOUR_VIEW = {"width": 1320, "height": 740}
_NOT_SHOWN = ".lanes > h3, .lanes > .bar, .note:has(code), #tip { display: none !important }"
_START_MS = 180_000
#: How long both groups are shown undisturbed, and how long with two members that deliver.
_BEFORE_MS, _AFTER_MS = 14_000, 9_000


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the README and the docs.")
    parser.add_argument("only", nargs="*", help="which pictures  [default: all]")
    asked = parser.parse_args(arguments)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, a_browser() as browser:
        for name in asked.only or TAKEN:
            TAKEN[name](browser, Path(folder))


def take_split_brain(browser: Any, folder: Path) -> None:
    page = browser.new_page(viewport=_VIEW)
    page.goto((performed(folder, SPLIT_BRAIN) / "report.html").as_uri())
    lanes = page.locator('section[data-scenario="split-brain"] .lanes')
    lanes.locator('[data-do="overlap"]').click()
    for _ in range(3):
        lanes.locator('[data-do="out"]').click()
    _only_lanes(page)
    _take(page, lanes, "split-brain")


def take_restarts(browser: Any, folder: Path) -> None:
    page = browser.new_page(viewport=_VIEW)
    page.goto((performed(folder, RESTARTS) / "report.html").as_uri())
    _only_lanes(page)
    _take(page, page.locator('section[data-scenario="rolling-restart"] .lanes'), "restarts")


def take_playground(browser: Any, folder: Path) -> None:
    """Cut a member off in both designs, and take the page once two members have delivered for a while."""
    with game(folder, GAME) as address:
        page = browser.new_page(viewport=_PLAYGROUND_VIEW, reduced_motion="reduce")
        page.set_default_timeout(_START_MS)
        page.goto(address)
        for design in ("zookeeper", "eager"):
            page.locator(f'[data-design="{design}"] .glance[data-kind="good"]').wait_for()
        page.get_by_label("Lanes show").select_option("30 s")
        page.wait_for_timeout(_BEFORE_MS)
        page.get_by_role("button", name="Cut off: m2").first.click()
        page.locator('.glance[data-kind="alarm"]').wait_for()
        page.wait_for_timeout(_AFTER_MS)
        page.evaluate("document.querySelector('#said').remove(); scrollTo(0, 0)")
        _take(page, page, "playground")


def take_tour(browser: Any, folder: Path) -> None:
    """The recorded tour of the split brain, when two members deliver."""
    file = folder / "tour.html"
    file.write_text(replay_page("split-brain"), encoding="utf-8")
    page = browser.new_page(viewport=_TOUR_VIEW)
    page.goto(file.as_uri())
    page.locator(".card").first.wait_for(state="attached")
    for _ in range(2):
        page.locator("#step-on").click()
    page.locator("#event-back").click()  # at the end of the second step
    page.evaluate("document.activeElement.blur()")
    page.add_style_tag(content=".legend, .mark-words, .lane-lists { display: none }")
    _take(page, page, "tour")


TAKEN: Mapping[str, Callable[[Any, Path], None]] = {
    "split-brain": take_split_brain,
    "restarts": take_restarts,
    "playground": take_playground,
    "tour": take_tour,
}


def _only_lanes(page: Any) -> None:
    """Leave what tells the story: no tools, no tables, no messages."""
    page.evaluate("document.activeElement.blur()")
    page.add_style_tag(content=_NOT_SHOWN)
    extra = ".lanes > details, .twin, .sequences"
    page.evaluate(f"for (const each of document.querySelectorAll('{extra}')) each.remove()")


def _take(page: Any, shown: Any, name: str) -> None:
    """Take what is shown as `<name>.png`, and in dark colours as `<name>-dark.png`."""
    for scheme, path in (("light", f"{name}.png"), ("dark", f"{name}-dark.png")):
        page.emulate_media(color_scheme=scheme)
        shown.screenshot(path=PICTURES / path)
    page.close()


if __name__ == "__main__":
    main()
