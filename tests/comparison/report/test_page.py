"""The report as one HTML file: well-formed, safe against hostile traces, with words for every picture."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import comparison.report.page
from comparison.pipeline.analysis import compose
from comparison.pipeline.figures.judging import judge
from comparison.report.page import SCRIPTS, page
from comparison.report.sections.done import About
from comparison.report.summaries.figures import OF_WHAT
from comparison.results.outcomes import VerdictOutcome
from comparison.results.result import NotApplicable, Result
from comparison.results.run import Counted, Overlap
from kernel.designs import DESIGN_NAMES
from tests.support.runs.results import change, counted, every_design, run

_VOID = frozenset({"meta", "br", "rect", "line", "path"})


class _Reader(HTMLParser):
    """Reads the file like a browser, as far as the tests need."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.loads: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        self.loads += [tag] if tag in ("script", "link", "img", "iframe") or "src" in given else []
        self.loads += [name for name in given if name.startswith("on")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in _VOID or tag in ("rect", "line", "path"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


@pytest.fixture(scope="module")
def read() -> _Reader:
    return _Reader(page(every_design()))


def test_file_is_well_formed_and_loads_nothing(read: _Reader) -> None:
    assert read.open == []
    assert read.loads == ["script"]
    assert all(link.startswith("#") for link in read.links)


def test_every_verdict_links_to_its_reasons(read: _Reader) -> None:
    assert {link[1:] for link in read.links} <= set(read.ids)
    assert len(read.ids) == len(set(read.ids))
    assert "#rolling-restart-static" in read.links


def test_overview_has_both_verdicts_and_three_prices_of_each_design(read: _Reader) -> None:
    assert ["scenario", *DESIGN_NAMES] in read.rows
    (restart, slow) = (row for row in read.rows if row[0] in ("rolling-restart", "slow-member"))
    assert restart[1:] == ["+ kept<0.1 0 10 "] * len(DESIGN_NAMES)
    assert slow[2] == "-"
    assert "slow-member in server: no member is slow" in read.text


def test_title_says_both_verdicts(read: _Reader) -> None:
    assert "<h1>All 13 runs as the model says; every promise kept</h1>" in page(every_design())
    assert read.text.count("+ as expected") == 1, "what the mark means, and no verdict is repeated"


def test_every_figure_of_the_first_table_leads_somewhere_on_the_page() -> None:
    text = page(every_design())
    cells = re.findall(r'<table class="heat">.*?</table>', text, re.DOTALL)
    links = [link for table in cells for link in re.findall(r'href="#(.*?)"', table)]
    assert len(links) > 50
    assert set(links) <= set(_Reader(text).ids)


def test_rolling_restart_shows_its_costs(read: _Reader) -> None:
    assert ["eager", "10", "108", "46", "13.90", "0", "1,800"] in read.rows


def test_slow_member_is_described(read: _Reader) -> None:
    assert "In eager: m2 is slow; 3 members waited 5.0 s for m2; nothing delivered for 4.80 s." in read.text


def test_settings_for_only_some_designs_cause_one_warning_above_the_figures() -> None:
    warning = "session.timeout.ms=6000 applies only to eager"
    runs = [run("crash", design, parameters={"warnings": [warning], "rate": 5}) for design in ("zookeeper", "eager")]
    assert _Reader(page(compose(runs))).text.count(f"warning: {warning}") == 1


def test_counts_are_shown_with_the_models() -> None:
    changes = [change(counted=[counted("JoinGroup", 6, 6), counted("moved", 4, 3)], attempts_failed=1)]
    shown = _Reader(page(compose([run("join", "eager", changes=changes)])))
    assert ["join to 5", "eager", "300", "1", "12", "3", "1.50", "6 JoinGroup (=), 4 moved (3), 1 failed"] in shown.rows


def test_every_table_of_figures_says_of_what_they_are(read: _Reader) -> None:
    assert read.text.count(OF_WHAT) == len(every_design().scenarios)


def test_ratios_are_shown_below_figures_other_than_zero() -> None:
    runs = [run("join", "zookeeper", stopped=12.0, moved=3.0), run("join", "eager", stopped=6.0)]
    shown = _Reader(page(compose(runs)))
    assert ["partitions stopped", "12", "60.50x"] in shown.rows
    assert ["partitions moved", "3", "0"] in shown.rows


EVIL = '</td><script>alert(1)</script><img src="http://x/y">&amp;'


def evil() -> Result:
    named = run(EVIL, EVIL, failures=[EVIL], outcome="failed", error=EVIL, changes=[change(EVIL)])
    return compose([judge(named)], [NotApplicable(scenario=EVIL, design=EVIL, reason=EVIL)])


def test_traces_cannot_inject_markup_into_the_page() -> None:
    shown = _Reader(page(evil()))
    assert shown.loads == ["script"]
    assert shown.open == []
    assert shown.text.count(EVIL) >= 5


def test_settings_topics_and_formulas_cannot_inject_markup_into_the_page() -> None:
    quoted = f'" onclick="x" {EVIL}'
    parameters = {"members": quoted, "preset": quoted, "warnings": [quoted], "rate": 5}
    overlap = Overlap(view="believed", topic=quoted, partition=0, from_ms=1.0, until_ms=2.0, owners=[quoted])
    count = Counted(what=quoted, measured=1, model=2, formula=quoted)
    found = run("join", "eager", parameters=parameters, overlaps=[overlap], changes=[change(quoted, counted=[count])])
    shown = _Reader(page(compose([found])))
    assert shown.loads == ["script"]
    assert shown.open == []
    # Members, preset, warning, count, overlap; the change in the table.
    assert shown.text.count(quoted) >= 6


def test_page_says_what_went_wrong() -> None:
    broken = run("join", "eager", outcome="interrupted", verdict=VerdictOutcome.UNKNOWN)
    text = _Reader(page(compose([broken]))).text
    assert "the run was interrupted" in text
    assert "? unknown" in text


def test_style_fetches_nothing() -> None:
    text = page(every_design()).replace("http://www.w3.org/2000/svg", "")
    assert re.findall(r"url\([^#]|@import|https?://", text) == []


def test_only_the_page_s_own_script_may_run() -> None:
    text = page(every_design())
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    assert html.unescape(policy).startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in html.unescape(policy)


def test_every_file_of_the_script_is_on_the_page() -> None:
    folder = Path(comparison.report.page.__file__).parent / "script"
    assert sorted(SCRIPTS) == sorted(path.stem for path in folder.glob("*.js"))
    text = page(every_design())
    assert all(path.read_text(encoding="utf-8") in text for path in folder.iterdir())


def test_each_design_has_both_verdicts_and_what_broke_a_promise() -> None:
    """As the model says stands in the title, and again only where a design differs from it."""
    foreseen = judge(run("pause", moved_back=3.0, stale_writes=2.0, two_delivering_partition_s=1.5))
    cut = judge(run("pause", "eager", outcome="interrupted"))
    text = " ".join(_Reader(page(compose([foreseen, cut]))).text.split())
    assert "zookeeper: + as expected, ! broke 3 of 9 promises" in text
    assert "! broken: no offset moves back: offsets moved back: 3" in text
    assert "eager: ? promises unknown" in text
    assert "no member gives up, every member gets in: the run did not go to its end" in text


def test_page_needs_no_spark() -> None:
    code = "import sys; import comparison.report.page; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_not_as_the_model_says_is_first_then_the_most_broken_promises_and_others_as_they_were_named() -> None:
    runs = [run(name, "eager", **({"lost": 1.0} if name == "pause" else {})) for name in ("crash", "join", "pause")]
    about = About({"command": ["rebalance-lab", "run", "join", "crash", "herd", "pause"]})
    unforeseen = run("herd", "eager", verdict=VerdictOutcome.NOT_EXPECTED)
    found = re.findall(r'id="([a-z]+)-first"', page(compose([*runs, unforeseen]), about=about))
    assert found == ["herd", "pause", "join", "crash"]
