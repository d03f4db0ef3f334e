"""Two results on one page in a browser: what differs first, then both sides' lanes opposite each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.cli.report import report
from tests.support.commands.called import output_of
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible, visit
from tests.support.runs.seen_runs import ATTACK, analysed_inline, write_cut, write_hostile, zookeeper_events
from tests.support.trace.traces import write_run

SIDES = ["split-brain-in-zookeeper-before-lanes", "split-brain-in-zookeeper-after-lanes"]


@pytest.fixture(scope="module")
def page_of_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cut, and the same one with an m1 that stops when it is cut off; `eager` is on one side only."""
    folder = tmp_path_factory.mktemp("two")
    write_cut(folder / "before")
    mended = [
        event
        for event in sorted(zookeeper_events(), key=lambda event: event["t_ns"])
        if not (event["process"] == "m1" and event["kind"] == "records_delivered" and event["t_ns"] > 4_400_000_000)
        and not (event["kind"] == "offset_written" and event["t_ns"] == 8_400_000_000)
    ]
    write_run(folder / "after" / "split-brain" / "zookeeper", mended, scenario="split-brain", design="zookeeper")
    for side in ("before", "after"):
        analysed_inline(folder / side)
    output_of(report, folder / "before", folder / "after", "-o", folder / "page.html")
    return folder / "page.html"


def test_what_differs_stands_first_and_leads_to_both_sides_on_one_axis(browser: Any, page_of_two: Path) -> None:
    with visit(browser, page_of_two) as seen:
        page = seen.page
        assert page.locator("h1").inner_text().startswith("Before and after: ")
        first = page.locator("main > section").first
        assert "promise, only the owner delivers: broken (two delivering" in first.inner_text()
        assert "Only before: split-brain in eager." in first.inner_text()
        headings = first.locator("table.data").last.locator("thead th").all_inner_texts()
        assert headings == ["figure", "before", "after", "change"]
        first.locator("h3 a").click()
        boxes = [page.locator(f"#{each} .partitions .plot").bounding_box() for each in SIDES]
        assert boxes[0]["y"] == boxes[1]["y"]
        assert boxes[0]["width"] == boxes[1]["width"]
        assert boxes[0]["x"] < boxes[1]["x"]
        two_deliver = [page.locator(f"#{each} .partitions .both").count() for each in SIDES]
        assert two_deliver[0] > 0 == two_deliver[1]


def test_without_the_script_it_says_the_same(browser: Any, page_of_two: Path) -> None:
    with visit(browser, page_of_two, java_script_enabled=False) as seen:
        assert seen.page.locator("#differences table.data").last.is_visible()
        for side in SIDES:
            assert seen.page.locator(f"#{side} .partitions").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_axe_finds_nothing_and_it_fits_a_phone(browser: Any, page_of_two: Path, width: str, scheme: str) -> None:
    viewport = {"desktop": DESKTOP, "phone": PHONE}[width]
    with visit(browser, page_of_two, viewport=viewport, color_scheme=scheme) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        require_accessible(seen.page)


def test_hostile_names_do_nothing(browser: Any, tmp_path: Path) -> None:
    for side in ("a", "b"):
        write_hostile(tmp_path / side)
        analysed_inline(tmp_path / side)
    names = f"{ATTACK},b"
    output_of(report, tmp_path / "a", tmp_path / "b", "-o", tmp_path / "page.html", "--names", names)
    with visit(browser, tmp_path / "page.html") as seen:
        assert seen.page.evaluate("window.attacked") is None
        assert "window.attacked=1" in seen.page.locator("h1").inner_text()
