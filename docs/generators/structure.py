"""The structure of the code in figures: `python -m docs.generators.structure [--types]`.

For every folder: how many modules it has (and packages directly in it), how many levels they form, which imports
run back against that order, and which of them import each other in cycles. `--types` counts imports for type checking.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import grimp
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("kernel", "zkconsumer", "coordinator", "comparison")

Edges = dict[str, set[str]]


def graph_of(*, types: bool) -> grimp.ImportGraph:
    """All imports between our modules."""
    return grimp.build_graph(*PACKAGES, exclude_type_checking_imports=not types, cache_dir=None)


def folders_of(graph: grimp.ImportGraph) -> list[str]:
    return sorted(module for module in graph.modules if graph.find_children(module))


def parts_of(graph: grimp.ImportGraph, folder: str) -> Edges:
    """Part -> the parts of the same folder that it imports, of all imports between modules in them."""
    parts = graph.find_children(folder)
    edges: Edges = {part: set() for part in parts}
    for part in parts:
        for module in {part, *graph.find_descendants(part)}:
            for imported in graph.find_modules_directly_imported_by(module):
                target = next((other for other in parts if f"{imported}.".startswith(f"{other}.")), part)
                if target != part:
                    edges[part].add(target)
    return edges


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Parts that import each other, directly or by way of others."""
    reached = {part: _reached(edges, part) for part in edges}
    found = {tuple(sorted(other for other in reached[part] if part in reached[other])) for part in edges}
    return [list(cycle) for cycle in sorted(found) if len(cycle) > 1]


def back_arrows(edges: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """A few imports without which no cycle is left (greedy, so perhaps not the fewest)."""
    rest = {part: set(targets) for part, targets in edges.items()}
    found = []
    while found_cycles := cycles(rest):
        inside = set(found_cycles[0])
        arrows = sorted((part, target) for part in inside for target in rest[part] & inside)
        # The part that the fewest in the cycle import is taken as the top one: what imports it runs back.
        arrow = min(arrows, key=lambda a: (sum(a[1] in rest[part] for part in inside), a))
        rest[arrow[0]].discard(arrow[1])
        found.append(arrow)
    return found


def levels(edges: Mapping[str, set[str]]) -> int:
    """Of the longest chain of imports, without the back arrows."""
    back = set(back_arrows(edges))
    depth: dict[str, int] = {}

    def of(part: str) -> int:
        if part not in depth:
            depth[part] = 1 + max((of(target) for target in edges[part] if (part, target) not in back), default=0)
        return depth[part]

    return max((of(part) for part in edges), default=0)


def _reached(edges: Mapping[str, set[str]], part: str) -> set[str]:
    seen: set[str] = set()
    stack = list(edges[part])
    while stack:
        target = stack.pop()
        if target not in seen:
            seen.add(target)
            stack += edges[target]
    return seen


@click.command()
@click.option("--types", is_flag=True, help="Count imports for type checking, too.")
@click.option("--root", type=click.Path(exists=True, file_okay=False), default=str(ROOT), help="Another checkout.")
def main(types: bool, root: str) -> None:
    """Print parts, levels, back arrows and cycles of every folder with code."""
    sys.path.insert(0, root)
    graph = graph_of(types=types)
    table = Table("folder", "parts", "levels", "back arrows", "cycles")
    for folder in folders_of(graph):
        edges = parts_of(graph, folder)
        shown = [folder, len(edges), levels(edges), len(back_arrows(edges))]
        names = [" ".join(part.rpartition(".")[2] for part in cycle) for cycle in cycles(edges)]
        table.add_row(*map(str, shown), "; ".join(names))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
