"""The figures of `docs.generators.structure`, and their limits: modules in levels, without cycles."""

from __future__ import annotations

import pytest

from docs.generators.structure import back_arrows, cycles, folders_of, graph_of, levels, parts_of

LINE = {"a": {"b"}, "b": {"c"}, "c": set()}
RING = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}
TWO_RINGS = {"a": {"b"}, "b": {"a"}, "c": {"d", "a"}, "d": {"c"}}


@pytest.mark.parametrize(
    ("edges", "rings", "back", "deep"),
    [(LINE, [], 0, 3), (RING, [["a", "b", "c"]], 1, 3), (TWO_RINGS, [["a", "b"], ["c", "d"]], 2, 3), ({}, [], 0, 0)],
)
def test_figures_of_small_graphs(edges: dict[str, set[str]], rings: list[list[str]], back: int, deep: int) -> None:
    assert cycles(edges) == rings
    assert len(back_arrows(edges)) == back
    assert levels(edges) == deep


def test_no_folder_has_modules_that_import_each_other_in_a_cycle() -> None:
    graph = graph_of(types=True)
    found = {folder: rings for folder in folders_of(graph) if (rings := cycles(parts_of(graph, folder)))}
    assert not found
