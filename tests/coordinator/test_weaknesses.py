"""docs/coordinator-weaknesses.md: each has what to see it by, and a test that exists."""

from __future__ import annotations

import re
from pathlib import Path

from comparison.scenarios.plan.setting_rows import rows as setting_rows
from tests.support.pages.fault_tables import TEST, cards, missing

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coordinator-weaknesses.md"
FAULTS = cards(PAGE)
TICKETS = [card for card in FAULTS if "Ticket" in card]
NAMED = re.compile(r"(?:fault|fix)\.kafka\.\d+")


def test_every_fault_has_releases_a_way_to_see_it_and_a_test_that_exists() -> None:
    assert len(FAULTS) > len(TICKETS) > 0
    for card in FAULTS:
        seen = ("Setting", "Asked") if "Setting" in card else ("To see it",)
        seen = seen if "Ticket" in card else ("Designs", *seen)
        assert all(card.get(label) for label in ("text", "Releases", *seen)), f"{card['name']} lacks something"
        assert TEST.search(card["tests"]), f"{card['name']} has no test"
        assert not missing(card["tests"], ROOT / "tests"), card["name"]


def test_every_setting_named_after_a_ticket_is_in_the_page_beside_it() -> None:
    named = {card["Setting"].split("`")[1]: card["Ticket"] for card in TICKETS if "Setting" in card}
    assert named.keys() == {row.setting.name for row in setting_rows() if NAMED.fullmatch(row.setting.name)}
    assert all(ticket == f"KAFKA-{setting.rpartition('.')[2]}" for setting, ticket in named.items())
