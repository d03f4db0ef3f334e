"""What the site shows of the product without anything to install: recordings, and the pages made of them."""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from comparison.playground.web.files import page_files
from comparison.replay.bundle import bundled
from comparison.replay.captions import require_captions
from comparison.results.outcomes import VerdictOutcome
from comparison.results.result import RESULT, read_result
from docs.generators import recorded_pages
from docs.generators.recording import RECORDED, REPORTS, SUFFIX, Recorded, captions, recorded_tour, tours, unpack
from kernel.designs import DESIGN_NAMES
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible, visit

TOURS = tours()
BYTES_MAX = 2_000_000
ROLLING = "rolling-restart"
#: What a replay shows of a moment may be a frame behind.
FRAMES_MS = 400
#: Goes through what a step waited for, in what the replay shows.
CHECK = """
import { CONDITIONS, remembered } from "./conditions.js";
import { Timeline } from "./timeline.js";
globalThis.comes = (all, design, name, about, fromMs, toMs) => {
  const line = new Timeline(all), until = (ms, each) => ({ ...each, to_ms: each.to_ms <= ms ? each.to_ms : null });
  const at = (ms) => {
    line.goTo(line.doneAt(ms));
    const group = line.state.groups.find((each) => each.design === design);
    return { ...group, intervals: group.intervals.filter((each) => each.from_ms <= ms).map((each) => until(ms, each)) };
  };
  const before = remembered(at(fromMs - 1), fromMs);
  for (let ms = fromMs; ms <= toMs; ms += 20) if (CONDITIONS[name](at(ms), before, about)) return true;
  return false;
};
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("recorded")
    found = {name: folder / f"{name}.html" for name in (*REPORTS, *TOURS)}
    for name, text in recorded_pages.pages().items():
        found[name].write_text(text, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Recorded]:
    found = {}
    for name in TOURS:
        tour = recorded_tour(unpack(RECORDED / f"{name}{SUFFIX}", tmp_path_factory.mktemp(name)))
        assert tour is not None
        found[name] = tour
    return found


def packed(page: Path) -> Any:
    """What a replay's script draws."""
    data = re.search(r'<script type="text/plain" id="data">([^<]+)<', page.read_text(encoding="utf-8"))
    assert data
    return json.loads(gzip.decompress(base64.b64decode(data[1])))


def test_the_recordings_are_those_of_all_tours_and_reports_and_small() -> None:
    files = sorted(RECORDED.iterdir())
    assert [each.name for each in files] == sorted(f"{name}{SUFFIX}" for name in (*REPORTS, *TOURS))
    assert sum(each.stat().st_size for each in files) < BYTES_MAX


@pytest.mark.parametrize("name", TOURS)
def test_a_recorded_tour_is_the_tour_as_it_is_now(name: str, recorded: dict[str, Recorded]) -> None:
    """Its words may change; if this fails, record it again: make recordings ARGS=<name>."""
    assert (recorded[name].tour, recorded[name].designs) == (name, TOURS[name].designs)
    assert recorded[name].acts == TOURS[name].acts


@pytest.mark.parametrize("name", TOURS)
def test_the_words_lie_within_the_trace_and_their_moments_follow_each_other(
    name: str, recorded: dict[str, Recorded], pages: dict[str, Path]
) -> None:
    all_of_it, words = packed(pages[name]), captions(TOURS[name], recorded[name])
    require_captions(words, name)
    moments = [at for each in words for at in (each.at, *sorted(seen.at for seen in each.seen))]
    assert moments == sorted(moments)
    assert -all_of_it["change_ms"] / 1000 <= moments[0]
    assert moments[-1] <= (all_of_it["length_ms"] - all_of_it["change_ms"]) / 1000
    assert "{m}" not in str(words)
    did_ms = next(each.did_ms for each in recorded[name].steps if each.did_ms is not None)
    assert abs(all_of_it["change_ms"] - did_ms) <= FRAMES_MS  # times count from the first thing that is done


@pytest.mark.parametrize("name", TOURS)
def test_what_the_words_expect_comes_in_the_replay_by_the_time_that_it_is_ticked(
    name: str, recorded: dict[str, Recorded], pages: dict[str, Path], browser: Any
) -> None:
    modules = {each: file.content.decode() for each, file in page_files().items() if each.endswith(".js")}
    own = {
        each.name: each.read_text(encoding="utf-8")
        for each in Path(bundled.__code__.co_filename).parent.glob("web/*.js")
    }
    page, all_of_it = browser.new_page(), packed(pages[name])
    page.evaluate(
        f"all => {{ globalThis.all = all; {bundled('check.js', {**modules, **own, 'check.js': CHECK})} }}", all_of_it
    )
    for step, taken in zip(TOURS[name].steps, recorded[name].steps, strict=True):
        added = sum(each.get("count", 0) for each in step.do)
        for each, seen_ms in zip(step.seen, taken.seen_ms, strict=True):
            about = {**each, "member": recorded[name].member, "memo": {}}
            about["added"] = added if each.get("added") == "all" else each.get("added")
            asked = [each["design"], each["is"], about, taken.did_ms, seen_ms + FRAMES_MS]
            assert page.evaluate("asked => comes(all, ...asked)", asked), (step.say, each)
    page.close()


def test_the_reports_say_what_the_analysis_of_their_traces_found(pages: dict[str, Path]) -> None:
    """All of it as the models say, and what docs/recorded.md says of it."""
    runs = read_result(recorded_pages.BUILD / "reports" / RESULT).runs
    texts = {name: html.unescape(re.sub(r"<[^>]+>", "", pages[name].read_text(encoding="utf-8"))) for name in REPORTS}
    for run in runs:
        name = next(name for name in REPORTS if f"/{name}/" in run.path)
        for verdict in run.verdicts:
            assert verdict.outcome is VerdictOutcome.EXPECTED
            assert verdict.reason in texts[name]
    found = {(run.scenario, run.design): run.metrics for run in runs}
    for scenario in ("split-brain", "pause"):
        zookeeper, eager = found[scenario, "zookeeper"], found[scenario, "eager"]
        assert min(zookeeper["two_delivering_partition_s"], zookeeper["moved_back"], eager["refused"]) > 0
        assert eager["two_delivering_partition_s"] == eager["moved_back"] == zookeeper["refused"] == 0
    stopped = {design: metrics["stopped"] for (scenario, design), metrics in found.items() if scenario == ROLLING}
    assert list(stopped) == list(DESIGN_NAMES)
    assert stopped["static"] == 0
    few = [stopped[design] for design in ("cooperative", "delayed", "consumer")]
    assert stopped["zookeeper"] == stopped["server"] == stopped["eager"] > 3 * max(few) > 0
    assert found["herd", "zookeeper"]["zk_reads"] > 1000 > found["herd", "eager"]["zk_reads"] == 0


@pytest.mark.parametrize("name", TOURS)
def test_a_tour_plays_step_by_step_to_its_end(name: str, pages: dict[str, Path], browser: Any) -> None:
    with visit(browser, pages[name], viewport=DESKTOP) as seen:
        page, steps = seen.page, TOURS[name].steps
        page.locator(".card").first.wait_for(state="attached")
        page.locator("#speed").select_option("10")
        for number, step in enumerate(steps, start=1):
            page.get_by_role("heading", name=f"{TOURS[name].title}: {number} of {len(steps)}").wait_for()
            page.locator('#play:text-is("Play")').wait_for()
            assert page.locator(f'[data-part="{step.part}"].looked-at:visible').count() in (1, 2)
            assert {text[0] for text in page.locator("#caption li").all_text_contents()} <= {"…"}
            page.locator("#play").click()
        page.locator('#play:text-is("Play")').wait_for()
        assert {text[0] for text in page.locator("#caption li").all_text_contents()} == {"✓"}


@pytest.mark.parametrize(("width", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", [*TOURS, *REPORTS])
def test_each_page_is_accessible_and_no_wider_than_the_screen(
    name: str, pages: dict[str, Path], browser: Any, width: Any, scheme: str
) -> None:
    with visit(browser, pages[name], viewport=width, color_scheme=scheme, reduced_motion="reduce") as seen:
        page = seen.page
        if name in TOURS:
            page.locator(".card").first.wait_for(state="attached")
            page.locator("#step-on").click()
            page.locator("#caption li").first.wait_for()
        require_accessible(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width["width"]
