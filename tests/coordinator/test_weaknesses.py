"""docs/coordinator-weaknesses.md: each known fault has a setting and a test that exist."""

from __future__ import annotations

import re
from pathlib import Path

from comparison.scenarios.plan.setting_rows import rows as setting_rows
from tests.support.pages.fault_tables import TEST, missing, rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "coordinator-weaknesses.md"
FAULTS = [row for table in rows(PAGE).values() for row in table]
NAMED = re.compile(r"(?:fault|fix)\.kafka\.\d+")


def test_every_fault_has_releases_witnesses_and_a_test_that_exists() -> None:
    for ticket, what, releases, _, asked, tests in FAULTS:
        assert all((what, releases, asked)), f"{ticket} has an empty cell"
        assert TEST.search(tests), f"{ticket} has no test"
        assert not missing(tests, ROOT / "tests"), ticket


def test_every_setting_named_after_a_ticket_is_in_the_page_beside_it() -> None:
    named = {setting: ticket for ticket, _, _, cell, _, _ in FAULTS for setting in NAMED.findall(cell)}
    assert named.keys() == {row.setting.name for row in setting_rows() if NAMED.fullmatch(row.setting.name)}
    assert all(ticket == f"KAFKA-{setting.rpartition('.')[2]}" for setting, ticket in named.items())
