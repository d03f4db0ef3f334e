"""The tables of members: what leads to several states says when it leads to which."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.membership.classic.table import TABLE as CLASSIC
from coordinator.membership.consumer.table import TABLE as CONSUMER
from coordinator.membership.server.table import TABLE as SERVER

TABLES: dict[str, Any] = {"classic": CLASSIC, "server": SERVER, "consumer": CONSUMER}
CELLS = [
    pytest.param(cell, id=f"{design}-{state.name}-{event.__name__}")
    for design, table in TABLES.items()
    for state, row in table.items()
    for event, cell in row.items()
]


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_has_a_condition_of_its_own_for_each_of_several_states_and_for_no_other(cell):
    assert cell.leads_to
    assert set(cell.when) == (cell.leads_to if len(cell.leads_to) > 1 else set())
    assert all(cell.when.values())
    assert len(set(cell.when.values())) == len(cell.when)
    assert not any(mark in condition for condition in cell.when.values() for mark in (": ", ";", "|"))
