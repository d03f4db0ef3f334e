"""The parts of documents that `make draw` generates: all are there."""

from __future__ import annotations

import re
from functools import cache

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from docs.generators import rebalance_table, reconciliation_page, results_page
from docs.generators.draw import COMMANDS, Runs, fillings, pages
from docs.generators.pages import DOCS, chapter
from kernel.designs import DESIGN_NAMES, STATIC

README = DOCS.parent / "README.md"
PLACE = re.compile(r"<!-- drawn: ([\w.-]+) -->\n(.*?)<!-- end -->", re.DOTALL)


@cache
def places(page: str) -> dict[str, str]:
    found = PLACE.findall((DOCS / f"{page}.md").read_text(encoding="utf-8"))
    assert len(found) == len(dict(found))
    return dict(found)


@pytest.mark.parametrize("page", [page for source in COMMANDS for page in pages(source)])
def test_every_generated_part_is_known_and_filled(page):
    told = {name for each in (rebalance_table, reconciliation_page) if each.PAGE.stem == page for name in each.places()}
    recorded = {name for name, table in results_page.TABLES.items() if table.page.stem == page}
    assert set(places(page)) == {*fillings(page, Runs([])), *told, *recorded}
    for name, content in places(page).items():
        assert content.strip(), name
        if name.endswith(".svg"):
            assert f"](diagrams/{name})" in content
            assert (DOCS / "diagrams" / name).read_text(encoding="utf-8").startswith("<svg ")


def test_each_design_has_its_picture_on_the_page_of_concepts_and_in_its_chapter():
    text = (DOCS / "concepts.md").read_text(encoding="utf-8")
    for name in DESIGN_NAMES:
        shown = f"](diagrams/figures/concept-{name}.svg)"
        assert shown in text
        assert shown in (DOCS / f"{chapter(name)}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [README, *sorted(DOCS.glob("*.md"))], ids=lambda path: path.stem)
def test_commands_on_a_page_name_scenarios_that_exist(page):
    """Folders and files have a slash or a dot, what is still being typed a <; names in capitals are placeholders."""
    text = " ".join(page.read_text(encoding="utf-8").split())
    named = re.findall(r"rebalance-lab (?:run|scenarios) ([a-z][a-z-]+)(?![\w./<])", text)
    assert set(named) <= set(CATALOGUE)


@pytest.mark.parametrize("page", COMMANDS)
def test_a_page_names_the_commands_that_it_is_made_from(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for command in COMMANDS[page]:
        assert set(command).intersection(CATALOGUE)
        assert page == "zookeeper-consumer" or f"rebalance-lab {' '.join(command)}" in text


def test_the_steps_of_a_restart_are_one_join_and_one_sync_and_nobody_stops():
    steps = places(chapter(STATIC))[f"steps-{STATIC}"]
    assert re.findall(r"^\*[\w.]+: ([\w-]+)\*$", steps, re.MULTILINE) == ["subscribe"]
    assert "stops delivering" not in steps
    assert [steps.count(api) for api in ("`JoinGroup` to", "`SyncGroup` to")] == [1, 1]
