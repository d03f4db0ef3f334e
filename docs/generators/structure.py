"""The structure of the code in figures: `python -m docs.generators.structure [--types]`.

For every folder: how many rooms it has (modules and folders directly in it), how many levels they form, which imports
run back against that order, and which rooms import each other in circles. `--types` counts imports for type checking.
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


def rooms_of(graph: grimp.ImportGraph, folder: str) -> Edges:
    """Room -> the rooms of the same folder that it imports, of all imports between modules in them."""
    rooms = graph.find_children(folder)
    edges: Edges = {room: set() for room in rooms}
    for room in rooms:
        for module in {room, *graph.find_descendants(room)}:
            for imported in graph.find_modules_directly_imported_by(module):
                target = next((other for other in rooms if f"{imported}.".startswith(f"{other}.")), room)
                if target != room:
                    edges[room].add(target)
    return edges


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Rooms that import each other, directly or by way of others."""
    reached = {room: _reached(edges, room) for room in edges}
    found = {tuple(sorted(other for other in reached[room] if room in reached[other])) for room in edges}
    return [list(circle) for circle in sorted(found) if len(circle) > 1]


def back_arrows(edges: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """A few imports without which no circle is left (greedy, so perhaps not the fewest)."""
    rest = {room: set(targets) for room, targets in edges.items()}
    found = []
    while found_circles := circles(rest):
        inside = set(found_circles[0])
        arrows = sorted((room, target) for room in inside for target in rest[room] & inside)
        # The room that the fewest in the circle import is taken as the top one: what imports it runs back.
        arrow = min(arrows, key=lambda a: (sum(a[1] in rest[room] for room in inside), a))
        rest[arrow[0]].discard(arrow[1])
        found.append(arrow)
    return found


def levels(edges: Mapping[str, set[str]]) -> int:
    """Of the longest chain of imports, without the back arrows."""
    back = set(back_arrows(edges))
    depth: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in depth:
            depth[room] = 1 + max((of(target) for target in edges[room] if (room, target) not in back), default=0)
        return depth[room]

    return max((of(room) for room in edges), default=0)


def _reached(edges: Mapping[str, set[str]], room: str) -> set[str]:
    seen: set[str] = set()
    stack = list(edges[room])
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
    """Print rooms, levels, back arrows and circles of every folder with code."""
    sys.path.insert(0, root)
    graph = graph_of(types=types)
    table = Table("folder", "rooms", "levels", "back arrows", "circles")
    for folder in folders_of(graph):
        edges = rooms_of(graph, folder)
        shown = [folder, len(edges), levels(edges), len(back_arrows(edges))]
        names = [" ".join(room.rpartition(".")[2] for room in circle) for circle in circles(edges)]
        table.add_row(*map(str, shown), "; ".join(names))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
