"""Two runs opposite each other in a browser: which two is chosen, the others are folded, and a filter says itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.pages.browser import DESKTOP, PHONE, require_accessible, visit
from tests.support.runs.seen_runs import ATTACK, eager_events, reported_inline, write_cut, write_hostile
from tests.support.trace.traces import write_run

OPPOSITE = ["split-brain-zookeeper-lanes", "split-brain-eager-lanes"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three designs; `static` did what `eager` did, but m1 was named for t-1 too."""
    folder = tmp_path_factory.mktemp("opposite")
    write_cut(folder)
    ordered = sorted(eager_events(), key=lambda event: event["t_ns"])
    owner = next(event["owner"] for event in ordered if event["kind"] == "authority_named")
    ordered = [
        {**event, "owner": owner} if event["kind"] == "authority_named" and event["partition"] == 1 else event
        for event in ordered
    ]
    write_run(folder / "split-brain" / "static", ordered, scenario="split-brain", design="static")
    return reported_inline(folder)


def opened(page: Any) -> list[str]:
    return [run.get_attribute("id") for run in page.locator(".runs > .run[open]").all()]


def tops(page: Any) -> list[float]:
    """Of the names of each open run's lanes, from the top of the screen."""
    return [each.bounding_box()["y"] for each in page.locator(".run[open] .partitions .names text").all()]


def test_the_worst_and_the_best_stand_opposite_each_other_and_the_third_is_folded(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        assert opened(page) == OPPOSITE
        left, right = (page.locator(f"#{each} .partitions .plot").bounding_box() for each in OPPOSITE)
        assert left["y"] == right["y"]
        assert left["width"] == right["width"]
        names = page.locator(".run[open] .partitions .names")
        assert [each.locator("text").all_text_contents() for each in names.all()] == [
            ["t-0", "t-1", "m1’s", "others"]
        ] * 2
        heights = tops(page)
        assert heights[: len(heights) // 2] == heights[len(heights) // 2 :]  # each lane is opposite a lane


def test_without_the_script_the_others_unfold_by_themselves(browser: Any, report: Path) -> None:
    with visit(browser, report, java_script_enabled=False) as seen:
        page = seen.page
        folded = page.locator("#split-brain-static-lanes")
        assert folded.locator(".partitions").is_hidden()
        folded.locator("summary").first.click()
        assert folded.locator(".partitions").is_visible()


def test_another_pair_is_chosen_changes_places_and_is_kept_by_the_address(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("select.left").select_option(label="static")
        assert opened(page) == ["split-brain-static-lanes", "split-brain-eager-lanes"]
        page.locator("select.right").select_option(label="static")
        assert opened(page) == ["split-brain-eager-lanes", "split-brain-static-lanes"]
        page.wait_for_url(re.compile("right=split-brain-static"))
        kept = page.evaluate("location.hash")
    with visit(browser, report, kept) as seen:
        assert opened(seen.page) == ["split-brain-eager-lanes", "split-brain-static-lanes"]
        assert seen.page.locator("select.left").input_value() == "split-brain-eager"


def test_link_to_a_folded_run_puts_it_opposite(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.evaluate("document.querySelector('a.see').setAttribute('href', '#split-brain-static-lanes')")
        page.locator("a.see").first.click()
        assert opened(page) == ["split-brain-static-lanes", "split-brain-eager-lanes"]


def test_filter_says_what_is_shown_and_is_cleared_with_one_click(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        filtered = page.locator(".filtered")
        assert filtered.is_hidden()
        page.locator("select.partition").select_option("t-0")
        page.locator("select.member").select_option("m2")
        page.keyboard.press("o")
        assert re.fullmatch(
            r"showing t-0, m2 -?\d+\.\d\d to \d+\.\d\d s", " ".join(filtered.locator("output").all_text_contents())
        )
        page.get_by_role("button", name="clear").click()
        assert filtered.is_hidden()
        assert page.locator("select.partition").input_value() == ""
        assert page.locator("path.dim").count() == 0


def test_filter_says_whose_a_partition_is_where_it_is_not_the_same_members(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("select.partition").select_option("t-1")
        assert page.locator(".what").text_content() == "showing t-1"
        page.locator("select.left").select_option(label="static")
        assert page.locator(".what").text_content() == "showing t-1 (at 0 s owned by m1 in static, by m2 in eager)"


def test_victims_partitions_are_chosen_together_in_all_designs(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        whole = page.locator(".run[open] .partitions .plot").first.bounding_box()["height"]
        page.locator("select.partition").select_option(label="m1’s")
        assert page.locator(".run[open] .partitions .plot").first.bounding_box()["height"] < whole
        assert page.locator(".what").text_content() == "showing m1’s partitions"


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_name_and_tools_stay_in_sight_and_cover_nothing_that_has_the_focus(
    browser: Any, report: Path, viewport: Any
) -> None:
    with visit(browser, report, viewport=viewport) as seen:
        page = seen.page
        page.locator(".lanes .twin summary").first.scroll_into_view_if_needed()
        page.mouse.wheel(0, 300)
        expect(page.locator(".bar")).to_be_in_viewport()
        bar = page.locator(".bar").bounding_box()
        assert bar["y"] == pytest.approx(0, abs=1)
        assert bar["height"] < 0.2 * viewport["height"]
        page.locator(".figure").first.focus()
        assert page.locator(".figure").first.bounding_box()["y"] >= bar["y"] + bar["height"]


def test_next_overlap_keeps_both_in_view_and_says_where_there_is_none(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.keyboard.press("o")
        for each in OPPOSITE:
            expect(page.locator(f"#{each} .partitions .plot")).to_be_in_viewport(ratio=1)
        page.locator("select.left").select_option(label="static")
        page.keyboard.press("o")
        expect(page.locator(".said")).to_have_text("no overlap here; there are some in zookeeper")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_kept_details_are_at_the_foot_and_the_page_has_room_behind_its_end(
    browser: Any, report: Path, viewport: Any
) -> None:
    with visit(browser, report, viewport=viewport) as seen:
        page, tip = seen.page, seen.page.locator("#tip")
        page.locator(".figure").first.focus()
        page.keyboard.press("Enter")
        page.locator("#tip .raw").wait_for()
        box = tip.bounding_box()
        assert box["y"] + box["height"] == pytest.approx(viewport["height"], abs=1)
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        assert page.locator("main").evaluate("(main) => main.getBoundingClientRect().bottom") <= box["y"]
        page.keyboard.press("Escape")
        assert tip.is_hidden()


def test_pointer_marks_the_same_moment_in_both(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        plots = [page.locator(f"#{each} .partitions .plot") for each in OPPOSITE]
        plots[0].scroll_into_view_if_needed()
        left, right = (plot.bounding_box() for plot in plots)
        page.mouse.move(left["x"] + 0.3 * left["width"], left["y"] + 24)
        lines = [page.locator(f"#{each} .cursor").bounding_box()["x"] for each in OPPOSITE]
        assert lines == [pytest.approx(box["x"] + 0.3 * box["width"], abs=1.5) for box in (left, right)]
        page.mouse.move(5, 5)
        assert page.locator(".cursor").count() == 0


def test_tip_is_above_the_pointer(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator(".runs").evaluate("(each) => each.scrollIntoView({ block: 'center' })")
        box = page.locator(".partitions .plot").first.bounding_box()
        page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 24)
        tip = page.locator("#tip").bounding_box()
        assert tip["y"] + tip["height"] <= box["y"] + 24


def test_one_design_has_nothing_opposite(browser: Any, tmp_path: Path) -> None:
    write_hostile(tmp_path)
    with visit(browser, reported_inline(tmp_path)) as seen:
        page = seen.page
        assert page.locator("details.run:not(.over-time), select.left, .opposite").count() == 0
        page.locator("select.partition").select_option(index=1)
        assert page.locator(".what").text_content().startswith("showing ")
        assert page.evaluate("window.attacked") is None
        assert ATTACK not in page.content()
        page.keyboard.press("w")
        assert "</script>" in page.locator("#tip .told").text_content()
        assert page.evaluate("window.attacked") is None


# -- why -------------------------------------------------------------------------------------------------------------


def test_why_stands_in_the_table_of_the_lanes_without_the_script(browser: Any, report: Path) -> None:
    with visit(browser, report, java_script_enabled=False) as seen:
        page = seen.page
        page.locator("#split-brain-zookeeper-lanes > .twin > summary").click()
        told = page.locator("#split-brain-zookeeper-lanes .whys td", has_text="m1 and m2 both delivered t-0 for 3.5 s")
        assert told.is_visible()
        assert "m1 was cut off at 0.0 s" in told.text_content()


def test_click_on_a_red_stretch_says_why_with_its_events(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page, tip = seen.page, seen.page.locator("#tip")
        strip = page.locator("#split-brain-zookeeper-lanes .both").first
        strip.scroll_into_view_if_needed()
        strip.click()
        assert tip.locator(".told").text_content().startswith("m1 and m2 both delivered t-0 for 3.5 s: m1 was cut off")
        page.locator("#tip .raw").wait_for()
        assert "fault_started fault=cut target=m1" in tip.locator(".raw").text_content()
        tip.get_by_role("button", name="0.000 s").click()
        assert [abs(float(each)) for each in re.findall(r"-?\d+\.\d+", page.locator(".window").text_content())] == [
            0.1,
            0.1,
        ]
        page.keyboard.press("Escape")
        assert tip.is_hidden()


def test_click_on_an_idle_stretch_says_why_in_either_design(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        plot = page.locator("#split-brain-eager-lanes .partitions .plot")
        plot.scroll_into_view_if_needed()
        box = plot.bounding_box()
        axis = page.locator(".lanes").evaluate("(each) => [each.dataset.from, each.dataset.length].map(Number)")
        ms = 2_400 - axis[0]  # m1 had stopped, m2 had not begun
        plot.click(position={"x": box["width"] * ms / axis[1], "y": 15 + 2 + 11 + 5})
        assert page.locator("#tip .told").text_content().startswith("Nobody delivered t-0 for 1.0 s: m1 was cut off at")


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_key_goes_to_the_next_stretch_and_says_why(browser: Any, report: Path, viewport: Any) -> None:
    with visit(browser, report, viewport=viewport) as seen:
        page, found = seen.page, []
        for _ in range(3):
            page.keyboard.press("w")
            found.append(page.locator("#tip .told").text_content())
        assert len(set(found)) > 1
        assert all(text.endswith(".") for text in found)
        require_accessible(page)


def test_key_stays_in_the_partition_and_in_the_window(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator("select.partition").select_option("t-1")
        for _ in range(4):
            page.keyboard.press("w")
            said = page.locator("#tip p").first
            assert said.count() == 0 or said.text_content().endswith(": t-1")
        page.locator("select.partition").select_option("t-0")
        strip = page.locator("#split-brain-zookeeper-lanes .both").first
        strip.scroll_into_view_if_needed()
        strip.click()
        page.locator("#tip .moments button").first.click()  # the window is around one event
        page.keyboard.press("Escape")
        low, high = map(float, re.findall(r"-?\d+\.\d+", page.locator(".window").text_content()))
        for _ in range(3):
            page.keyboard.press("w")
            went = list(map(float, re.findall(r"-?\d+\.\d+", page.locator(".window").text_content())))
            assert went[0] <= high
            assert low <= went[1]


def test_clear_by_its_key(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.keyboard.press("o")
        assert page.locator(".filtered").is_visible()
        page.keyboard.press("x")
        assert page.locator(".filtered").is_hidden()
