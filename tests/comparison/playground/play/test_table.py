"""The rows of the rebalance table that operations belong to."""

from __future__ import annotations

import pytest

from comparison.playground.live.table import rows_of
from comparison.playground.play.table import rebalance_table


@pytest.mark.parametrize(
    ("operation", "path", "step", "does"),
    [
        ("getChildren", "/brokers/ids", "R1", ["list the brokers"]),
        ("getData", "/brokers/ids/1", "R1", ["read the brokers; all must exist"]),
        ("getData", "/consumers/lab/ids/lab_m1", "R2", ["read back our own subscription"]),
        ("delete", "/consumers/lab/owners/orders/3", "R5", ["delete the owner nodes, topic by topic, unconditionally"]),
        ("getChildren", "/consumers/lab/ids", "R6", ["read our topics, list the members"]),
        ("getData", "/brokers/topics/orders", "R6", ["read our topics, list the members"]),
        ("setData", "/consumers/lab/offsets/orders/3", "commit", []),
    ],
)
def test_an_operation_is_found_in_the_table_of_the_rebalance(operation, path, step, does) -> None:
    table = rebalance_table()
    found = [table[row].does for row in rows_of(table, operation, path, step)]
    assert found[: len(does)] == does
    assert bool(found) == bool(does)
