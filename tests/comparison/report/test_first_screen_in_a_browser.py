"""The first screen: title, a whole table of seven designs and their strips, and where a figure leads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.pipeline.analysis import compose
from comparison.report.page import page as page_of
from comparison.report.view.model import Holding
from kernel.designs import DESIGN_NAMES
from tests.comparison.report.drawing.test_lanes import lane
from tests.comparison.report.sections.run_views import empty_view
from tests.support.pages.browser import PHONE, visit
from tests.support.runs.results import run

SCREEN = {"width": 1440, "height": 900}
HARM = {"two_delivering_partition_s": 5.0, "stale_writes": 3.0, "moved_back": 3.0, "stale_deliveries": 9.0}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three scenarios in all designs; in one of them everything goes wrong that can."""
    scenarios, path = ("pause", "crash", "join"), tmp_path_factory.mktemp("first") / "report.html"
    runs = [run(name, design, **(HARM if name == "pause" else {})) for name in scenarios for design in DESIGN_NAMES]
    lanes = [lane(f"t-{n}", delivering=(Holding(0, 4_000, "m1"), Holding(6_000, 9_000, "m1"))) for n in range(12)]
    views = [empty_view(scenario=each.scenario, design=each.design, partitions=tuple(lanes)) for each in runs]
    path.write_text(page_of(compose(runs), views), encoding="utf-8")
    return path


@pytest.mark.parametrize("script", [True, False])
def test_first_screen_has_title_table_and_strips(browser: Any, report: Path, script: bool) -> None:
    with visit(browser, report, viewport=SCREEN, java_script_enabled=script) as seen:
        for each in ("h1", ".heat", ".strips-of .strips", ".strips-of .axis"):
            box = seen.page.locator(each).first.bounding_box()
            assert box["y"] + box["height"] <= SCREEN["height"], each
            assert box["x"] + box["width"] <= SCREEN["width"], each
        assert seen.page.locator(".heat").first.locator("thead th").count() == 1 + len(DESIGN_NAMES)
        assert seen.page.locator(".strips .curves").count() == len(scenarios(seen.page)) * len(DESIGN_NAMES)


def scenarios(page: Any) -> list[str]:
    found: list[str] = page.locator(".glance > h2 > a").all_text_contents()
    return found


def test_what_is_far_down_is_left_as_it_is_until_one_comes_near(browser: Any, report: Path) -> None:
    """So that a page of hundreds of runs opens at once."""
    with visit(browser, report, viewport=SCREEN) as seen:
        last = seen.page.locator("section.scenario").last
        assert last.locator(".sort").count() == 0
        last.scroll_into_view_if_needed()
        last.locator(".sort").first.wait_for()


def test_phone_has_the_same_order_and_only_tables_scroll(browser: Any, report: Path) -> None:
    with visit(browser, report, viewport=PHONE) as seen:
        page = seen.page
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        tops = [page.locator(each).first.bounding_box()["y"] for each in ("h1", "#overview", ".heat", ".strips")]
        assert tops == sorted(tops)
        assert page.locator(".glance .scroll").first.evaluate("(each) => each.scrollWidth > each.clientWidth")


def test_figure_leads_to_its_row_of_the_figures_without_a_script(browser: Any, report: Path) -> None:
    with visit(browser, report, viewport=SCREEN, java_script_enabled=False) as seen:
        page = seen.page
        page.get_by_role("link", name="commits by a non-owner in eager: 3, should be 0").click()
        (row,) = page.locator("tr:target").all()
        assert row.locator("th").text_content() == "commits by a non-owner"
        assert row.bounding_box()["y"] < SCREEN["height"]
