"""Rebalances as sequences of messages, chosen by a click, a key or from a list; raw events around a pinned moment."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages.browser import require_accessible, visit
from tests.support.runs.seen_runs import reported_inline, write_cut, write_hostile


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("told")
    write_cut(folder)
    return reported_inline(folder)


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
        page.locator("#tip").wait_for(state="hidden")


def test_key_opens_the_messages_of_the_rebalance_that_was_gone_to(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("#split-brain-eager-lanes .figure").focus()
        page.keyboard.press("j")
        page.keyboard.press("s")
        assert opened(page) == ["split-brain-eager-rebalance-1"]
        page.keyboard.press("Enter")  # it has the focus
        assert opened(page) == []


def test_link_keeps_which_messages_are_open(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("#split-brain-eager-lanes .figure").focus()
        page.keyboard.press("s")
        page.wait_for_url(re.compile("rebalance="))
        kept = page.evaluate("location.hash")
    with visit(browser, report, kept) as seen:
        assert opened(seen.page) == ["split-brain-eager-rebalance-1"]
        seen.page.locator(".sequence[open] > summary").click()
        seen.page.wait_for_url(re.compile("#split-brain$"))


def test_messages_lead_back_to_the_lanes(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("#split-brain-eager-lanes .figure").focus()
        page.keyboard.press("s")
        page.locator(".sequence[open]").get_by_role("link", name="in the lanes").click()
        from_s, until_s = map(float, re.findall(r"-?\d+\.\d+", page.locator(".window").first.text_content()))
        assert from_s < -1.4 < until_s


def pinned(page: Any, share: float, y: int) -> list[str]:
    """Click into the lanes of `zookeeper`; the raw events that are shown."""
    plot = page.locator("#split-brain-zookeeper-lanes .partitions .plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.click(box["x"] + share * box["width"], box["y"] + y)
    page.locator("#tip .raw").wait_for()
    found: list[str] = page.locator("#tip .raw li").all_text_contents()
    return found


def test_pinned_details_have_the_raw_events_of_the_member_and_the_partition(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        *events, command = pinned(page, 0.72, 24)  # the upper bar of t-0 is m2's
        assert page.locator("#tip p").first.text_content().startswith("t-0: m2")
        assert "5.900 m2 offset_written" in " ".join(events)
        times = [float(each.split()[0]) for each in events]
        assert times == sorted(times)
        assert len(events) <= 8
        assert not any("topic=t partition=1" in each for each in events)
        assert re.fullmatch(r"every event: rebalance-lab trace \S+/split-brain/zookeeper --to jsonl", command)


def test_pinned_details_are_closed_by_their_button(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        pinned(page, 0.72, 24)
        page.get_by_role("button", name="Close the details").click()
        assert page.locator("#tip").is_hidden()
        page.wait_for_url(re.compile("#split-brain$"))


def test_details_are_pinned_by_a_key_at_the_middle_of_the_chosen_lane(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("select.partition").select_option("t-1")
        page.locator("#split-brain-zookeeper-lanes .figure").focus()
        page.keyboard.press("Enter")
        page.locator("#tip .raw").wait_for()
        assert page.locator("#tip p").first.text_content().startswith("t-1: m2\nnamed by ZooKeeper")
        page.keyboard.press("Escape")
        assert page.locator("#tip").is_hidden()


def test_link_to_pinned_details_shows_their_raw_events(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        events = pinned(seen.page, 0.72, 24)
        seen.page.wait_for_url(re.compile("pin="))
        kept = seen.page.evaluate("location.hash")
    with visit(browser, report, kept) as seen:
        seen.page.locator("#tip .raw").wait_for()
        assert seen.page.locator("#tip .raw li").all_text_contents() == events


def test_axe_finds_nothing_in_pinned_details(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        pinned(seen.page, 0.72, 24)
        require_accessible(seen.page)


def test_messages_and_raw_events_of_a_hostile_trace_stay_text(browser: Any, tmp_path: Path) -> None:
    write_hostile(tmp_path)
    with visit(browser, reported_inline(tmp_path)) as seen:
        page = seen.page
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.locator(".seq text", has_text="</script>").count() > 0
        shown = pinned(page, 0.72, 24)
        assert "</script>" in " ".join(shown)
        assert not set(page.content()) & set("\x1b\u202e")
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object").count() == 0
        assert page.evaluate("window.attacked") is None
