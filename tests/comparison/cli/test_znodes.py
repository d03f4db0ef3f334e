"""Znodes as `zookeeper znodes` shows them."""

from __future__ import annotations

from comparison.cli.zookeeper import DATA_MAX, lines_of
from comparison.playground.live.tree import Seen


def node(data: str = "", *, ephemeral: bool = False) -> Seen:
    return Seen(data, 0, ephemeral, 1, 1)


def test_inner_znodes_without_data_are_left_out_and_numbers_are_in_order() -> None:
    tree = {"/": node(), "/t": node(), "/t/10": node("b"), "/t/9": node("a", ephemeral=True), "/empty": node()}
    assert lines_of(tree) == ["/empty", "/t/9 = a (ephemeral)", "/t/10 = b"]
    assert lines_of({"/": node()}) == ["/"]
    assert lines_of({}) == []


def test_data_is_made_printable_and_cut() -> None:
    assert lines_of({"/a": node("x\x1b")}) == ["/a = x\\x1b"]
    assert lines_of({"/a": node("x" * (DATA_MAX + 1))}) == [f"/a = {'x' * DATA_MAX}..."]
