"""Changes of a group's znodes, and the rows of the table that operations belong to."""

from __future__ import annotations

import pytest

from comparison.playground.live.table import rows_of
from comparison.playground.live.tree import DATA_MAX, Seen, Tree
from comparison.playground.play.table import rebalance_table


def node(data: str = "", *, written: int = 1, created: int = 1) -> Seen:
    return Seen(data, version=0, ephemeral=False, created=created, written=written)


def test_only_what_changed_is_given_out() -> None:
    tree = Tree()
    tree.see(100, {"/a": node("1"), "/b": node("2")})
    put, gone = tree.drained()
    assert ([each.path for each in put], gone) == (["/a", "/b"], ())
    tree.see(200, {"/a": node("1"), "/b": node("3", written=2)})
    put, gone = tree.drained()
    assert ([(each.path, each.data, each.changed_ms) for each in put], gone) == ([("/b", "3", 200)], ())
    tree.see(300, {"/b": node("3", written=2)})
    assert tree.drained() == ((), ("/a",))
    assert tree.drained() == ((), ())


def test_a_znode_that_was_deleted_and_created_again_between_two_readings_has_changed() -> None:
    tree = Tree()
    tree.see(100, {"/owner": node("m1")})
    tree.drained()
    tree.see(200, {"/owner": node("m1", created=9, written=9)})
    put, _ = tree.drained()
    assert [each.changed_ms for each in put] == [200]


def test_a_znode_that_comes_back_before_its_end_was_told_is_not_gone() -> None:
    tree = Tree()
    tree.see(100, {"/a": node()})
    tree.drained()
    tree.see(200, {})
    tree.see(300, {"/a": node(created=2, written=2)})
    put, gone = tree.drained()
    assert ([each.path for each in put], gone) == (["/a"], ())


def test_long_data_is_cut() -> None:
    tree = Tree()
    tree.see(1, {"/a": node("x" * 1000)})
    ((only,), _) = tree.drained()
    assert len(only.data) == DATA_MAX


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
