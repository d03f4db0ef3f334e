"""The docs as a site: it builds without a warning, works without a network, and lacks no page."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.site import hook
from tests.support.pages.browser import DESKTOP, PHONE, require_accessible
from tests.support.pages.fault_tables import cards
from tests.test_tidy import PACKAGES, ROOT

DOCS = ROOT / "docs"
PAGES = sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))
#: They lead on to the pages that their text has become part of.
MOVED = ("server-member.md",)
#: Shown in a browser: the start with a wide table, pictures in two colours, a diagram, code.
LOOKED_AT = (
    *("index", "results", "which-design", "history", "concepts", "consumer-protocol"),
    *("coordinator-weaknesses", "source/kernel/zookeeper/paths.py"),
)
#: Of the theme: the navigation of each block of code is called alike, and a wide table scrolls in an element that
#: browsers make focusable by themselves.
NOT_OURS = {"rules": {name: {"enabled": False} for name in ("landmark-unique", "scrollable-region-focusable")}}
#: The colour of a picture's corner.
CORNER = """async (source) => {
  const picture = new Image();
  picture.src = source;
  await picture.decode();
  const canvas = document.createElement("canvas").getContext("2d");
  canvas.drawImage(picture, 0, 0);
  return [...canvas.getImageData(2, 2, 1, 1).data].slice(0, 3);
}"""
#: Of the README.
LINES_MAX, WORDS_MAX = 90, 1_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as by `make docs`."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def listed(entry: Any) -> list[str]:
    """The pages of a part of `nav`."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in listed(part)]


def test_every_page_is_in_the_navigation_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    nav = yaml.safe_load(text[text.index("\nnav:") :])["nav"]
    assert sorted(listed(nav)) == sorted([*({*PAGES} - {*MOVED}), "contributing.md", "changelog.md"])


def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r'<(?:script|img|iframe|link rel="?(?:stylesheet|icon|preconnect))\b[^>]*(?:src|href)="?https?:')
    assert [page.name for page in site.rglob("*.html") if loads.search(page.read_text(encoding="utf-8"))] == []
    styles = (path.read_text(encoding="utf-8") for path in site.rglob("*.css"))
    assert not [text for text in styles if re.search(r"url\([\"']?https?:|@import", text)]


def test_links_of_the_site_lead_to_files(site: Path) -> None:
    """Also those that MkDocs does not check, in what the hook makes."""
    gone = [
        (page.name, link)
        for page in site.rglob("*.html")
        if page.name != "404.html"
        for link in re.findall(r'(?:href|src)="?([^"#>\s]+)', page.read_text(encoding="utf-8"))
        if "://" not in link and not link.startswith(("data:", "mailto:")) and not (page.parent / link).exists()
    ]
    assert gone == []


def test_a_page_of_a_file_shows_its_text(site: Path) -> None:
    page = (site / "source/zkconsumer/rebalance/table.py.html").read_text(encoding="utf-8")
    assert "<h1" in page
    assert "zkconsumer/rebalance/table.py" in page
    assert 'href="source/zkconsumer/rebalance/table.py.html"' in (site / "zookeeper-consumer.html").read_text("utf-8")


def test_names_are_marked_for_the_style_and_wide_pictures_lead_to_themselves(site: Path) -> None:
    text = {
        name: (site / f"{name}.html").read_text(encoding="utf-8") for name in ("history", "design-eager", "results")
    }
    assert '<code class="whole">fix.retry.when.free</code>' in text["history"]
    assert 'class="picture"' not in text["history"], "its drawing fits a phone"
    wide = re.findall(
        r'<a class="picture" href="([^"]+)"><img [^>]*src="([^"#]+)', text["design-eager"] + text["results"]
    )
    assert {href for href, _ in wide} >= {"diagrams/join-eager.svg", "pictures/split-brain-dark.png"}
    assert all(href == src for href, src in wide)


def test_a_recording_leads_back_to_the_page_of_all_and_that_page_to_it(site: Path) -> None:
    around = (site / "recorded.html").read_text(encoding="utf-8")
    for page in (site / "recorded").iterdir():
        assert f'href="recorded/{page.name}' in around
        assert 'href="../recorded.html"' in page.read_text(encoding="utf-8"), page.name


def test_pages_are_found_without_a_server_or_a_network(site: Path, browser: Any) -> None:
    """On one page, whose index takes seconds to load."""
    context = browser.new_context(viewport=DESKTOP, offline=True)
    shown = context.new_page()
    errors: list[str] = []
    shown.on("pageerror", lambda error: errors.append(str(error)))
    shown.on("requestfailed", lambda request: errors.append(request.url))
    shown.goto((site / "history.html").as_uri())
    for words, page in (("quarantine", "tables"), ("session.timeout.ms", "settings"), ("poll interval", "settings")):
        shown.locator("input.md-search__input").fill("")
        shown.locator(".md-search-result__link").first.wait_for(state="detached")
        shown.locator("input.md-search__input").click()
        shown.keyboard.type(words)
        found = shown.locator(f'.md-search-result__link[href*="{page}.html"]').first
        found.wait_for()
    found.click()
    shown.wait_for_url(re.compile(rf"/{page}\.html"))
    assert errors == []
    context.close()


@pytest.mark.parametrize(("width", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_pages_are_accessible_and_no_wider_than_the_screen(site: Path, browser: Any, width: Any, scheme: str) -> None:
    context = browser.new_context(viewport=width, color_scheme=scheme, offline=True)
    page = context.new_page()
    for name in LOOKED_AT:
        page.goto((site / f"{name}.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
        require_accessible(page, context="article", options=NOT_OURS)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_has_the_colours_that_the_reader_chose(site: Path, browser: Any, scheme: str) -> None:
    """By the button of the page, against the system's."""
    context = browser.new_context(color_scheme="dark" if scheme == "light" else "light", offline=True)
    page = context.new_page()
    page.goto((site / "results.html").as_uri())
    page.locator("label.md-header__button:visible[for^=__palette]").click()
    shown = page.locator("article img[src*='#only-']:visible").evaluate_all(
        "all => all.map(each => each.getAttribute('src'))"
    )
    assert shown
    assert {src.endswith(f"#only-{scheme}") for src in shown} == {True}
    page.goto((site / "history.html").as_uri())
    corner = base64.b64encode(page.locator('article img[src$="history.svg"]').screenshot()).decode()
    paper = page.evaluate(CORNER, f"data:image/png;base64,{corner}")
    assert (max(paper) < 64) == (scheme == "dark"), paper
    context.close()


# -- the hook ----------------------------------------------------------------------------------------------------------


def test_links_to_code_lead_to_pages_of_the_site() -> None:
    text = "[table](../zkconsumer/rebalance/table.py) [a](history.md#b) [c](../CONTRIBUTING.md) [d](../README.md)"
    assert hook.for_site(text, "docs/tables.md", "tables.md") == (
        "[table](source/zkconsumer/rebalance/table.py.md) [a](history.md#b) [c](contributing.md) [d](index.md)"
    )
    assert hook.linked(text, "docs/tables.md") >= {"zkconsumer/rebalance/table.py", "docs/history.md"}


def test_links_of_a_page_outside_the_docs_lead_to_those_of_the_docs() -> None:
    assert hook.origin("changelog.md") == "CHANGELOG.md"
    assert hook.for_site("[t](docs/transactions.md#x)", "CHANGELOG.md", "changelog.md") == "[t](transactions.md#x)"


def test_a_link_to_nothing_stays_for_mkdocs_to_refuse() -> None:
    assert hook.for_site("[a](../kernel/gone.py)", "docs/tables.md", "tables.md") == "[a](../kernel/gone.py)"


def test_blocks_of_code_are_left_alone() -> None:
    text = "```\n[a](../zkconsumer/rebalance/table.py)\n```\n"
    assert hook.for_site(text, "docs/tables.md", "tables.md") == text
    assert hook.linked(text, "docs/tables.md") == set()


def test_a_picture_in_two_colours_becomes_two() -> None:
    text = (
        '<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="pictures/split-brain-dark.png">\n'
        '  <img alt="a split brain" src="pictures/split-brain.png">\n</picture>'
    )
    assert hook.for_site(text, "docs/results.md", "results.md") == (
        "![a split brain](pictures/split-brain.png#only-light)![a split brain](pictures/split-brain-dark.png#only-dark)"
    )


def test_proposals_tickets_and_wiki_pages_become_links() -> None:
    """But in links, code and headings; and of KIP-5, nothing is known."""
    text = hook.with_sources(
        "<h2>KIP-345</h2><p>KIP-345 (KAFKA-7641), KIP-5, <code>KIP-345</code>, "
        '<a href="x">KIP-345</a>, KIP-792 and <em>Central Consumer Coordination</em></p>'
    )
    page = "https://cwiki.apache.org/confluence/display/KAFKA/"
    assert re.findall(r'<a class="source" href="([^"]+)"(?: title="([^"]*)")?>([^<]+)</a>', text) == [
        (
            f"{page}KIP-345%3A+Introduce+static+membership+protocol+to+reduce+consumer+rebalances",
            "KIP-345: Introduce static membership protocol to reduce consumer rebalances",
            "KIP-345",
        ),
        ("https://issues.apache.org/jira/browse/KAFKA-7641", "", "KAFKA-7641"),
        (
            "https://cwiki.apache.org/confluence/pages/viewpage.action?pageId=191336614",
            "KIP-792: Add &quot;generation&quot; field into consumer protocol",
            "KIP-792",
        ),
        (
            f"{page}Central+Consumer+Coordination",
            "Central Consumer Coordination, Kafka&#x27;s wiki",
            "Central Consumer Coordination",
        ),
    ]
    assert "KIP-5, <code>KIP-345</code>" in text


@pytest.mark.parametrize("page", [*(f"docs/{page}" for page in PAGES), "README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_what_a_page_names_is_known(page: str) -> None:
    """A proposal or ticket that is in no list would stay without a link, or is a slip of the pen."""
    named = hook.named((ROOT / page).read_text(encoding="utf-8"))
    assert sorted({name for name in named if name not in hook.sources()}) == []


def test_sources_that_no_page_names_are_not_listed() -> None:
    pages = [*DOCS.rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in hook.sources() if not re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_a_notebook_becomes_text_and_code() -> None:
    page = hook.source_page("docs/examples/waits.ipynb")
    assert "\n``` python\n" in page
    assert '"cell_type"' not in page


# -- what names the pages ----------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_code_names_pages_and_anchors_that_exist() -> None:
    """What `scenarios NAME`, help texts and errors name."""
    named = {
        (path.name, page, anchor)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for page, anchor in re.findall(r"\b(docs/[\w/-]+\.\w+)(?:#([\w-]+))?", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 20
    assert [each for each in sorted(named) if not (ROOT / each[1]).exists()] == []
    assert [each for each in sorted(named) if each[2] and each[2] not in anchors(ROOT / each[1])] == []


def test_the_readme_is_one_screen() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LINES_MAX
    assert len(text.split()) <= WORDS_MAX


def test_the_readme_counts_the_weaknesses() -> None:
    fixes = [card["Fixed by"] for card in cards(DOCS / "weaknesses.md")]
    never = [fix for fix in fixes if re.search(r"\bnever\b", fix)]
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "Of 27 weaknesses of the ZooKeeper consumer" in readme
    assert "eight were never fixed" in readme
    assert (len(fixes), len(never)) == (27, 8)
