"""The report in a browser: it is whole without its script, asks for nothing, and does what its buttons and keys say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from comparison.report.drawing.layout import USUAL_WIDTH
from comparison.report.page import page as page_of
from comparison.run_folder import write_json
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible, visit
from tests.support.runs.results import herd
from tests.support.runs.seen_runs import reported_inline, write_cut, write_hostile

WIDTHS = {"desktop": DESKTOP, "phone": PHONE}
#: Each width and each of the colours; in `make test-long` each width in both.
SEEN = pytest.mark.parametrize(
    ("width", "scheme"),
    [
        ("desktop", "light"),
        ("phone", "dark"),
        pytest.param("desktop", "dark", marks=pytest.mark.long),
        pytest.param("phone", "light", marks=pytest.mark.long),
    ],
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seen")
    write_cut(folder)
    write_json(folder / "command.json", {"command": ["rebalance-lab", "run", "split-brain", "--seed", "1"]})
    return reported_inline(folder)


@pytest.fixture(scope="module")
def herded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of figures alone, without lanes."""
    path = tmp_path_factory.mktemp("herded") / "report.html"
    path.write_text(page_of(herd()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile(folder)
    return reported_inline(folder)


def window_of(page: Any) -> tuple[float, float]:
    """The seconds that the lanes show."""
    text = page.locator(".window").first.text_content()
    from_s, until_s = re.findall(r"-?\d+\.\d+", text)
    return float(from_s), float(until_s)


def widths(page: Any) -> set[tuple[str, str]]:
    """Where the lanes of all designs are, and how wide."""
    found = page.evaluate(
        "[...document.querySelectorAll('.block:not(.members) .win')]"
        ".map((each) => [each.getAttribute('x'), each.getAttribute('width')])"
    )
    return {tuple(each) for each in found}


def plot(page: Any) -> dict[str, float]:
    box: dict[str, float] = page.locator(".partitions .plot").first.bounding_box()
    return box


# -- without a script ----------------------------------------------------------------------------------------------


def test_page_is_whole_without_its_script(browser: Any, report: Path) -> None:
    with visit(browser, report, java_script_enabled=False) as seen:
        page = seen.page
        assert page.locator(".found li", has_text="In zookeeper, m1 and m2 both delivered").is_visible()
        assert page.locator(".partitions text", has_text="two deliver: m1 + m2").is_visible()
        assert page.locator(".tools:visible, button:visible").count() == 0
        page.get_by_text("one lane per member").click()
        assert page.locator(".members:visible").count() == 2
        assert page.locator(".partitions:visible").count() == 0
        page.locator(".lanes .twin summary").first.click()
        assert page.locator(".twin td", has_text="m1 and m2 3.00…6.50").is_visible()


@SEEN
def test_axe_finds_nothing(browser: Any, report: Path, width: str, scheme: str) -> None:
    with visit(browser, report, viewport=WIDTHS[width], color_scheme=scheme) as seen:
        seen.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        require_accessible(seen.page)


@SEEN
def test_axe_finds_nothing_in_the_charts_of_the_herd(browser: Any, herded: Path, width: str, scheme: str) -> None:
    with visit(browser, herded, viewport=WIDTHS[width], color_scheme=scheme) as seen:
        page = seen.page
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        assert page.locator(".growth:visible").count() == 2
        assert page.locator(".latency:visible").count() == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]["width"]
        assert (
            page.locator(".growth .model").first.evaluate("(each) => getComputedStyle(each).strokeDasharray") != "none"
        )
        require_accessible(page)


def test_page_is_no_wider_than_a_phone(browser: Any, report: Path) -> None:
    with visit(browser, report, viewport=PHONE) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_printed_page_has_no_buttons(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        seen.page.emulate_media(media="print")
        assert seen.page.locator(".tools:visible, .copy:visible, .by:visible").count() == 0
        assert seen.page.locator(".partitions").first.is_visible()


def test_hostile_names_stay_text(browser: Any, hostile: Path) -> None:
    with visit(browser, hostile) as seen:
        page = seen.page
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object").count() == 0
        assert page.get_by_text("</script>").count() > 0
        assert "\x1b" not in page.content()
        assert "\u202e" not in page.content()
        page.locator(".figure").first.click(position={"x": 400, "y": 60})
        page.keyboard.press("o")
        assert page.evaluate("window.attacked") is None


# -- with it ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["+", "j", "o"])
def test_keys_zoom_all_lanes_at_once(browser: Any, report: Path, key: str) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        assert page.locator(".window").text_content() == ""
        page.keyboard.press(key)
        assert len(widths(page)) == 1
        from_s, until_s = window_of(page)
        assert until_s - from_s < 10
        page.keyboard.press("0")
        assert page.locator(".window").text_content() == ""


TEXTS = """() => [...document.querySelectorAll('.run:not(.over-time) > .figure .block:not(.members) .win')].map((win) =>
  [...win.querySelectorAll('text')].filter((each) => getComputedStyle(each).display !== 'none').map((each) =>
    [each.textContent, parseFloat(each.getAttribute('x')).toFixed(1), each.getAttribute('y')].join(' ')).sort())"""


def test_painted_anew_the_lanes_say_what_the_still_picture_says(browser: Any, report: Path) -> None:
    usual = f".block {{ grid-template-columns: 80px {USUAL_WIDTH}px !important }}"
    with visit(browser, report, java_script_enabled=False) as seen:
        still = seen.page.evaluate(TEXTS)
    with visit(browser, report) as seen:
        page = seen.page
        page.add_style_tag(content=usual)
        page.keyboard.press("+")
        assert page.evaluate(TEXTS) != still
        page.keyboard.press("0")
        assert page.evaluate(TEXTS) == still
    assert any("two deliver: m1 + m2" in text for block in still for text in block)


def test_next_and_previous_rebalance_follow_each_other(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page, found = seen.page, []
        for key in ("j", "j", "k"):
            page.keyboard.press(key)
            found.append(window_of(page))
        assert found[0] == found[2] != found[1]
        assert found[0][1] < 0 < found[1][0]  # the first one forms the group, before the cut


def test_next_overlap_shows_the_whole_overlap_with_its_label(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        seen.page.keyboard.press("o")
        from_s, until_s = window_of(seen.page)
        assert from_s < 3.0 < 6.5 < until_s
        assert seen.page.locator(".bl", has_text="two deliver: m1 + m2").is_visible()


def test_drag_marks_and_zooms_and_double_click_shows_the_whole_run(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator(".partitions .plot").first.scroll_into_view_if_needed()
        box = plot(page)
        page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 12)
        assert page.locator(".brush").is_visible()
        page.mouse.up()
        assert page.locator(".brush").count() == 0
        (place,) = widths(page)
        assert float(place[1].rstrip("%")) == pytest.approx(400, rel=0.02)
        page.mouse.dblclick(box["x"] + 50, box["y"] + 10)
        assert page.locator(".window").text_content() == ""


def test_wheel_zooms_at_the_pointer_and_leaves_the_page_alone_elsewhere(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator(".partitions .plot").first.scroll_into_view_if_needed()
        box = plot(page)
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 10)
        page.mouse.wheel(0, -120)
        assert page.locator(".window").text_content() == ""
        page.locator(".figure").first.focus()
        box = plot(page)
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 10)
        page.mouse.wheel(0, -120)
        page.locator(".window", has_text=" s").first.wait_for()
        (place,) = widths(page)
        assert float(place[1].rstrip("%")) == pytest.approx(125, rel=0.02)


def test_arrows_move_the_window_of_lanes_that_have_the_focus(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.locator(".figure").first.focus()
        page.keyboard.press("+")
        before = window_of(page)
        page.keyboard.press("ArrowRight")
        after = window_of(page)
        assert after[0] > before[0]
        assert after[1] - after[0] == pytest.approx(before[1] - before[0], abs=0.02)


def test_link_keeps_window_partition_and_member(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.keyboard.press("o")
        page.locator("select.partition").select_option("t-0")
        page.locator("select.member").select_option("m2")
        page.get_by_label("one lane per member").check()
        page.wait_for_url(re.compile("by=member"))
        kept, shown = page.evaluate("location.hash"), window_of(page)
    with visit(browser, report, kept) as seen:
        page = seen.page
        assert window_of(page) == shown
        assert page.locator("select.partition").input_value() == "t-0"
        assert page.locator("select.member").input_value() == "m2"
        assert page.locator(".members:visible").count() == 2


def test_filters_show_one_lane_and_one_member(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        whole = plot(page)["height"]
        page.locator("select.partition").select_option("t-0")
        assert plot(page)["height"] < whole
        page.locator("select.member").select_option("m2")
        assert page.locator(".partitions path.dim").count() > 0
        page.locator("select.partition").select_option("")
        page.locator("select.member").select_option("")
        assert plot(page)["height"] == whole
        assert page.locator("path.dim").count() == 0


def test_finding_leads_to_the_lane_and_the_moment(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.get_by_role("link", name="zookeeper: t-0 at 3.0 s").first.click()
        from_s, until_s = window_of(page)
        assert from_s < 3.0 < 6.5 < until_s
        assert page.locator("select.partition").input_value() == "t-0"


def test_figure_of_the_first_table_leads_to_the_lane_and_the_moment(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.get_by_role("link", name="two delivering in zookeeper: 3.5 partition-s, should be 0").click()
        from_s, until_s = window_of(page)
        assert from_s < 3.0 < 6.5 < until_s
        assert page.locator("select.partition").input_value() == "t-0"


def test_details_are_kept_by_a_click_until_escape(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page, tip = seen.page, seen.page.locator("#tip")
        page.locator(".partitions .plot").first.scroll_into_view_if_needed()
        box = plot(page)
        page.mouse.click(box["x"] + 0.2 * box["width"], box["y"] + 24)
        assert "t-0: m1\nnamed by ZooKeeper from -1.200 to 2.500 s" in tip.text_content()
        page.mouse.move(5, 5)
        assert tip.is_visible()
        page.wait_for_url(re.compile("pin="))
        kept, said = page.evaluate("location.hash"), tip.text_content()
        page.keyboard.press("Escape")
        assert tip.is_hidden()
        page.wait_for_url(re.compile("#split-brain$"))
    with visit(browser, report, kept) as seen:
        assert seen.page.locator("#tip").text_content().splitlines()[:2] == said.splitlines()[:2]


def test_question_mark_lists_the_keys(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        seen.page.keyboard.press("?")
        assert seen.page.get_by_role("dialog").get_by_text("next overlap").is_visible()
        seen.page.keyboard.press("Escape")
        assert seen.page.get_by_role("dialog").count() == 0


def test_tables_sort_and_are_copied_as_tsv_and_markdown(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        page.evaluate(
            "Object.defineProperty(navigator, 'clipboard', "
            "{ value: { writeText: async (text) => { window.copied = text; } } })"
        )
        page.get_by_role("button", name="Copy as TSV").last.click()
        first, *rows = page.evaluate("window.copied").splitlines()
        assert first == "figure\tzookeeper\teager"
        assert all(row.count("\t") == 2 for row in rows)
        page.get_by_role("button", name="Copy as Markdown").last.click()
        assert page.evaluate("window.copied").startswith("| figure | zookeeper | eager |\n| --- | --- | --- |")
        page.get_by_role("button", name="zookeeper", exact=True).last.click()
        page.get_by_role("button", name="Copy as TSV").last.click()
        values = [row.split("\t")[1] for row in page.evaluate("window.copied").splitlines()[1:]]
        numbers = [float(value.replace(",", "")) for value in values if value != "-"]
        assert numbers == sorted(numbers)


# -- charts over time ------------------------------------------------------------------------------------------------


def test_charts_are_whole_without_the_script(browser: Any, report: Path) -> None:
    with visit(browser, report, java_script_enabled=False) as seen:
        page = seen.page
        titles = ["Phases of each rebalance", "Records over time", "Duplicates over time", "Committed offsets of t-0"]
        assert page.locator(".over-time > summary h4").all_text_contents() == titles
        page.locator("[data-column=committed] .twin summary").click()
        assert page.locator("td", has_text="accepted, moved back by 21, not from the owner").is_visible()


def test_charts_zoom_with_the_lanes_and_lanes_with_the_charts(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page = seen.page
        chart = page.locator(".records .plot")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 20)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 20)
        page.mouse.up()
        (place,) = widths(page)
        assert float(place[1].rstrip("%")) == pytest.approx(400, rel=0.02)
        assert page.locator(".still .win").first.get_attribute("x") is None  # bars of phases have no common time


def test_details_of_a_chart_have_its_values(browser: Any, report: Path) -> None:
    with visit(browser, report) as seen:
        page, tip = seen.page, seen.page.locator("#tip")
        chart = page.locator(".records .plot")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 20)
        assert re.match(r"zookeeper: delivered a second [\d,]+", tip.text_content())
        page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + box["height"] - 25)
        assert tip.text_content().startswith("eager: ")
