"""One rebalance as a sequence of messages, chosen in the lanes by a click or a key, or from the list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from comparison.cli.report_file import write_report
from tests.support.browser import running_browser, visit
from tests.support.seen_runs import analysed_inline, write_cut

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as started:
        yield started


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("told")
    write_cut(folder)
    return write_report(analysed_inline(folder), folder)


def opened(page: Any) -> list[str]:
    found: list[str] = page.evaluate("[...document.querySelectorAll('.sequence[open]')].map((each) => each.id)")
    return found


def test_list_of_rebalances_is_there_without_a_script(browser: Any, report: Path) -> None:
    with visit(browser, report, java_script_enabled=False) as seen:
        page = seen.page
        page.get_by_text("Rebalances of eager as sequences of messages").click()
        page.locator("#split-brain-eager-rebalance-1 > summary").click()
        drawing = page.locator("#split-brain-eager-rebalance-1 svg.seq")
        assert drawing.is_visible()
        assert drawing.get_by_text("m1", exact=True).first.is_visible()
        page.locator("#split-brain-eager-rebalance-1 .twin summary").click()
        assert page.locator("#split-brain-eager-rebalance-1 .twin td", has_text="generation 2 is Stable").is_visible()


def test_click_on_a_rebalance_in_the_lanes_opens_its_messages(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        bar = page.locator("#split-brain-zookeeper-lanes .round")
        bar.scroll_into_view_if_needed()
        box = bar.bounding_box()
        page.mouse.click(box["x"] + 3, box["y"] + box["height"] / 2)
        assert opened(page) == ["split-brain-zookeeper-rebalance-1"]
        focused = page.evaluate("document.activeElement.textContent")
        assert focused.startswith("rebalance 1")
        assert page.locator("#tip").is_hidden()


def test_key_opens_the_messages_of_the_rebalance_that_was_gone_to(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("#split-brain-eager-lanes .figure").focus()
        page.keyboard.press("j")
        page.keyboard.press("s")
        assert opened(page) == ["split-brain-eager-rebalance-1"]
        page.keyboard.press("Enter")  # it has the focus
        assert opened(page) == []


def test_messages_lead_back_to_the_lanes(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("#split-brain-eager-lanes .figure").focus()
        page.keyboard.press("s")
        page.locator(".sequence[open]").get_by_role("link", name="in the lanes").click()
        from_s, until_s = map(float, re.findall(r"-?\d+\.\d+", page.locator(".window").first.text_content()))
        assert from_s < -1.4 < until_s
