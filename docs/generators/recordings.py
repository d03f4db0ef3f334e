"""Record what the site shows of the product without anything to install: `make recordings` (needs Chromium).

The reports are of live runs. The playground's tours are taken in simulated games, each by clicking through its page. A
recording differs a little from the last one, so look at its page (`make docs`) before you commit it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.exits import Exit
from docs.generators.recording import (
    RECORDED,
    REPORTS,
    SUFFIX,
    TOUR_FILE,
    Recorded,
    Step,
    Taken,
    Tour,
    archive_of,
    pack,
    tours,
)
from docs.generators.sessions import a_browser, game, newest, performed
from kernel.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

#: With links on which a rebalance can be seen, and members that do not start, and heartbeat, all at once.
_GAME = (
    *("playground", "--simulated", "--seed", "7", "--link", "start=600ms±500"),
    *("--link", "member-zookeeper=8ms±4", "--link", "member-broker=40ms±20"),
)
_VIEW = {"width": 1340, "height": 900}
#: How long, in virtual time, a step is shown before it does something, and after all that it waits for has come.
_BEFORE_MS, _AFTER_MS = 1500, 2500
_PATIENCE_S = 180
_AFTER = re.compile(r"^✓ .* \(after ([\d.]+) s\)$")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Record the reports and tours that the site shows.")
    parser.add_argument("only", nargs="*", help="which of them  [default: all]")
    asked = parser.parse_args(arguments)
    known = tours()
    RECORDED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.only or (*REPORTS, *known):
            home = Path(folder) / name
            home.mkdir()
            pack(
                _performed(home, name) if name in REPORTS else _toured(home, known[name]), home / archive_of(name).name
            )
        for archive in Path(folder).glob(f"*/*{SUFFIX}"):  # only now: what is recorded says whether files have changed
            shutil.move(archive, RECORDED / archive.name)


def _performed(folder: Path, name: str) -> Path:
    """The folder of a report's runs, which went as their models say."""
    return performed(folder, REPORTS[name], accepted=(Exit.AS_EXPECTED,))


def _toured(folder: Path, tour: Tour) -> Path:
    """The folder of a simulated game in which this tour was taken."""
    with a_browser() as browser, game(folder, (*_GAME, "--design", ",".join(tour.designs))) as address:
        page = browser.new_page(viewport=_VIEW, reduced_motion="reduce")
        page.set_default_timeout(_PATIENCE_S * 1000)
        page.goto(address)
        recorded = _take(page, tour)
        _stop(page)
    found = newest(folder)
    (found / TOUR_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(recorded)))
    return found


def _take(page: Any, tour: Tour) -> Recorded:
    """Take a tour to its end, as a player who reads every step."""
    root = page.locator("#tour")
    page.locator('#time-state:has-text("×")').wait_for()
    page.keyboard.press("t")
    root.get_by_role("button", name=f"Begin: {tour.title}").click()
    steps, member = [], ""
    for number, step in enumerate(tour.steps, start=1):
        root.get_by_role("heading", name=f"{tour.title}: {number} of {len(tour.steps)}").wait_for()
        at_ms = _now_ms(page)
        _pass(page, _BEFORE_MS)
        if step.do:
            member = member or _member(step, root.locator(".tools button").first.text_content())
            did_ms = _do(page, root)
            seen_ms = [did_ms + after for after in _seen(root, tour.id, len(step.seen))]
            steps.append(Taken(at_ms, did_ms, seen_ms))
            _pass(page, _AFTER_MS)
        else:
            steps.append(Taken(at_ms))
        if number < len(tour.steps):
            root.get_by_role("button", name="Next", exact=True).click()
    return Recorded(tour=tour.id, designs=tour.designs, member=member, acts=tour.acts, steps=steps)


def _do(page: Any, root: Any) -> int:
    """Do what the step does, while time stands still; when that is."""
    page.locator("#pause").click()
    page.locator('#time-state:text-is("stands still")').wait_for()
    now_ms = _now_ms(page)
    root.locator(".tools button").first.click()
    root.locator(".seen li").first.wait_for()
    page.locator("#pause").click()
    return now_ms


def _seen(root: Any, tour: str, wanted: int) -> list[int]:
    """How long after it was done each of the things came that the step waits for, in milliseconds."""

    def found() -> list[int]:
        texts = root.locator(".seen li").all_text_contents()
        return [round(float(after[1]) * 1000) for text in texts if (after := _AFTER.match(text))]

    wait_until(lambda: len(found()) == wanted, _PATIENCE_S, lambda: f"{tour}: {root.inner_text()}")
    return found()


def _pass(page: Any, ms: int) -> None:
    """Until so much virtual time has passed."""
    until_ms = _now_ms(page) + ms
    wait_until(lambda: _now_ms(page) >= until_ms, _PATIENCE_S, lambda: "virtual time to pass")


def _now_ms(page: Any) -> int:
    minutes, seconds = page.locator("#clock").text_content().split(":")
    return round((60 * int(minutes) + float(seconds)) * 1000)


def _stop(page: Any) -> None:
    """End the game as a player does, until its traces are whole; nobody needs its analysis."""
    page.locator("#stop").click()
    page.locator("#stopping").get_by_role("button", name="Stop and analyse").click()
    page.get_by_text("analysing the traces").first.wait_for()


def _member(step: Step, label: str) -> str:
    """The member that the words of a step name, '' if none, by what its button says."""
    found = re.fullmatch(re.escape(step.label).replace(r"\{m\}", r"(\w+)"), label)
    return found[1] if found and found.groups() else ""


if __name__ == "__main__":
    main()
