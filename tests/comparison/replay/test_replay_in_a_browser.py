"""A replay in a browser: each control, and that a moment looks the same however it was reached."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from comparison.replay.captions import Caption, Seen
from kernel.waiting import wait_until
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible, visit
from tests.support.runs.replayed import write_replay_of
from tests.support.runs.seen_runs import ATTACK, write_cut, write_hostile

#: What a column says: everything but the lanes' view, which follows the cursor's way, and what is struck through.
SAYS = """() => [...document.querySelectorAll(".group")].map((group) => {
    const shown = group.cloneNode(true);
    for (const each of shown.querySelectorAll(".lane-plot, .gone")) each.remove();
    const marked = [...shown.querySelectorAll(".box.now, .move.taken, .card, .alarm")];
    const said = marked.map((each) => `${each.getAttribute("class")} ${each.textContent}`.replace(" lit", ""));
    return [shown.textContent, ...said];
})"""
CAPTIONS = (
    Caption(at=0.0, text="m1 is cut off", part="lanes"),
    Caption(at=2.7, text="m2 takes over", title="Second", look="try `f`", seen=(Seen(at=3.0, text="it has"),)),
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    write_cut(folder)
    return write_replay_of(
        [folder / "split-brain" / name for name in ("zookeeper", "eager")], folder / "r.html", CAPTIONS
    )


@contextmanager
def opened(browser: Any, file: Path, **given: Any) -> Iterator[Any]:
    with visit(browser, file, **given) as seen:
        seen.page.locator(".card").first.wait_for()
        yield seen.page


def settles(page: Any) -> None:
    """Until what was asked for is drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def seek(page: Any, ms: int) -> None:
    page.locator("#scrubber").evaluate("(node, ms) => { node.value = ms; node.dispatchEvent(new Event('input')); }", ms)
    settles(page)


def shown_ms(page: Any) -> int:
    minutes, seconds = page.locator("#clock").text_content().split(":")
    return round((60 * int(minutes) + float(seconds)) * 1000)


def press(page: Any, *keys: str) -> int:
    """The moment after these keys."""
    for key in keys:
        page.keyboard.press(key)
    settles(page)
    return shown_ms(page)


def test_it_begins_just_before_the_first_change_with_every_group_whole(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        assert shown_ms(page) == 1500
        assert page.locator("#since").text_content() == "0.5 s before the first change"
        settles(page)
        assert page.locator(".cursor[d]").count() == 2
        assert page.locator(".glance").all_text_contents() == ["✓ Each of 2 partitions is delivered by one member"] * 2
        assert page.get_by_role("button", name="Kill").count() == 0  # there is nobody to give a command to


def test_the_cursor_drives_machine_tree_members_counters_and_words(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        zookeeper, eager = (page.locator(f'.group[data-design="{name}"]') for name in ("zookeeper", "eager"))
        seek(page, 4650)
        assert eager.locator(".box.now").text_content() == "PreparingRebalance"
        assert zookeeper.locator(".tree li", has_text="g_host-1-aa-0").count() == 0
        seek(page, 8540)
        assert zookeeper.locator(".tree .data").all_text_contents() == [
            "",
            "",
            "",
            "9",
            "",
            "",
            *["⚡ g_host-2-bb-0"] * 2,
        ]
        assert "t-0 (m1 + m2)" in zookeeper.locator(".glance").text_content()
        assert zookeeper.locator('[data-counter="moved_back"] dd').text_content() == "1"
        assert eager.locator('[data-counter="refused"] dd').text_content() == "1"
        assert (
            page.locator("#event").text_content()
            == "Last event, at 0:08.400: eager: a commit of t-0 by m1-12345678-1234-1234-1234-123456789abc is refused"
        )
        seek(page, 2500)
        assert zookeeper.locator(".card .state").first.text_content() == "cut off"


def test_each_key_and_button_goes_where_it_says(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        assert press(page, "f") == 2000
        assert press(page, "f") == 2000  # the cut of the other design, at the same moment
        assert press(page, "f", "f") == 8000
        assert press(page, "d", "d", "d") == 2000
        assert press(page, "j") == 4700
        assert press(page, "k", "k") == 600
        assert press(page, "Home") == 0
        assert press(page, "End") == page.evaluate("Number(document.getElementById('scrubber').max)")
        assert press(page, "ArrowRight") > 10_000
        assert page.locator("#announced").text_content() == "There is no later one."
        page.get_by_role("button", name="To the change or fault before").click()
        settles(page)
        assert shown_ms(page) == 8000
        page.get_by_role("button", name="One event back").click()
        settles(page)
        assert page.locator("#announced").text_content().startswith("6.0 s after the first change. Now: ")
        page.get_by_role("button", name="Keys").click()
        page.get_by_label("Keys are on").uncheck()
        page.get_by_role("button", name="Close").click()
        assert press(page, "Home") == 8000


def test_events_on_and_back_are_the_same_places(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        press(page, "f")
        there = [(press(page, "ArrowRight"), page.evaluate(SAYS)) for _ in range(25)]
        back = [(press(page, "ArrowLeft"), page.evaluate(SAYS)) for _ in range(24)]
        assert back == there[-2::-1]


@pytest.mark.parametrize("seed", range(3))
def test_a_moment_looks_the_same_however_it_was_reached(browser: Any, file: Path, seed: int) -> None:
    chosen = random.Random(seed)
    moments = sorted(chosen.sample(range(0, 13_000, 13), 12))
    with opened(browser, file) as page:
        forwards = {}
        for ms in moments:
            seek(page, ms)
            forwards[ms] = shown_ms(page), page.evaluate(SAYS)
        for ms in [*reversed(moments), *chosen.sample(moments, 8)]:
            seek(page, ms)
            assert (shown_ms(page), page.evaluate(SAYS)) == forwards[ms]


def test_it_plays_at_the_chosen_speed_and_stops_at_the_end(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        page.clock.install()
        page.clock.pause_at(page.evaluate("Date.now() + 1000"))
        page.clock.run_for(100)
        page.locator("#speed").select_option("10")
        page.get_by_label("Stop at each step").uncheck()
        page.locator("h1").click()
        page.keyboard.press("Space")
        assert page.locator("#play").text_content() == "Pause"
        page.clock.run_for(100)  # its first frame by this clock may follow one by the other
        before = shown_ms(page)
        page.clock.run_for(500)
        assert 4500 <= shown_ms(page) - before <= 5500
        assert page.locator("#announced").text_content() == ""  # what plays is not announced
        page.keyboard.press("Space")
        stands = shown_ms(page)
        page.clock.run_for(500)
        assert shown_ms(page) - stands <= 500
        assert page.locator("#announced").text_content() != ""
        page.keyboard.press("Space")
        page.clock.run_for(2000)
        assert page.locator("#play").text_content() == "Play"
        assert shown_ms(page) == 14_000


def test_a_click_on_a_lane_moves_the_cursor_there(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        plot = page.locator(".lane-plot").last
        box = plot.bounding_box()
        plot.click(position={"x": box["width"] / 2, "y": box["height"] / 2})
        settles(page)
        assert abs(shown_ms(page) - 7000) < 60
        places = page.eval_on_selector_all(".cursor", "(all) => all.map((each) => each.getBoundingClientRect().x)")
        assert len(places) == 2
        assert abs(places[1] - box["x"] - box["width"] / 2) < 2
        page.locator("#window").select_option("5")
        settles(page)
        plot.click(position={"x": 1, "y": box["height"] / 2})
        settles(page)
        assert abs(shown_ms(page) - 4500) < 60


def test_captions_come_at_their_times_and_point_at_their_parts(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        caption, lanes = page.locator("#caption"), page.locator('[data-part="lanes"].looked-at')
        assert caption.text_content() == ""
        press(page, "f")
        assert (caption.text_content(), lanes.count()) == ("m1 is cut off", 2)
        press(page, "j")
        assert lanes.count() == 0
        assert caption.inner_text().split() == ["Second", "m2", "takes", "over", "Look:", "try", "f", "…", "it", "has"]
        assert caption.locator("code").text_content() == "f"
        seek(page, 5100)
        assert caption.locator("li").text_content() == "✓ it has"


def test_playing_stops_at_each_caption_and_shows_what_it_points_at(browser: Any, file: Path) -> None:
    with opened(browser, file) as page:
        page.locator("#speed").select_option("10")
        for _, ms in zip(range(2), (2000, 4700), strict=True):
            page.locator("#play").click()
            page.locator('#play:text-is("Play")').wait_for()
            assert shown_ms(page) == ms
        assert press(page, "a") == 2000
        assert page.locator(".feed-part").first.is_hidden()
        page.get_by_label("Show everything").check()
        assert page.locator(".feed-part").first.is_visible()
        page.get_by_label("Stop at each step").uncheck()
        page.locator("#play").click()
        wait_until(lambda: shown_ms(page) > 4700, 30, "it plays past the next one")


def test_without_motion_it_moves_in_steps(browser: Any, file: Path) -> None:
    with opened(browser, file, reduced_motion="reduce") as page:
        page.evaluate("""() => {
            const clock = document.getElementById("clock");
            window.moved = [];
            let shown = clock.textContent;
            const look = (at) => {  // after the page's own, in each frame
                if (clock.textContent !== shown) moved.push(at);
                shown = clock.textContent;
                requestAnimationFrame(look);
            };
            requestAnimationFrame(look);
        }""")
        page.locator("#speed").select_option("0.1")
        page.keyboard.press("Space")
        wait_until(lambda: page.evaluate("moved.length") >= 4, 30, "it plays")
        assert all(later - at >= 499 for at, later in pairwise(page.evaluate("moved")))


@pytest.mark.parametrize("width", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Any, file: Path, width: dict[str, int], scheme: str) -> None:
    with opened(browser, file, viewport=width, color_scheme=scheme) as page:
        seek(page, 8450)
        page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        require_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width["width"]


def test_on_a_phone_the_lanes_of_all_groups_follow_each_other(browser: Any, file: Path) -> None:
    with opened(browser, file, viewport=PHONE) as page:
        tops = [
            page.locator(f'[data-part="{part}"]').nth(at).bounding_box()["y"]
            for part in ("lanes", "counters")
            for at in (0, 1)
        ]
        assert tops == sorted(tops)
        assert tops[1] - tops[0] < PHONE["height"]
        names = page.locator('[data-part="counters"]').evaluate_all(
            "(all) => all.map((each) => getComputedStyle(each, '::before').content)"
        )
        assert names == ['"zookeeper"', '"eager"']


def test_without_script_it_says_what_happened(browser: Any, file: Path) -> None:
    with visit(browser, file, java_script_enabled=False) as seen:
        assert "needs JavaScript" in seen.page.locator("noscript .banner").text_content()
        assert seen.page.locator(".told tbody tr").count() > 10
        assert seen.page.locator("#controls").is_hidden()


def test_names_from_a_trace_are_text(browser: Any, tmp_path: Path) -> None:
    write_hostile(tmp_path)
    captions = [Caption(at=0.0, text=ATTACK)]
    file = write_replay_of([tmp_path / "split-brain" / "zookeeper"], tmp_path / "r.html", captions)
    with visit(browser, file) as seen:
        page = seen.page
        page.locator(".lane-plot").first.wait_for()
        for ms in range(0, 14_000, 1000):
            seek(page, ms)
        assert page.evaluate("window.attacked") is None
        assert page.locator("img").count() == 0
        assert "</script>" in page.locator("#caption").text_content()
