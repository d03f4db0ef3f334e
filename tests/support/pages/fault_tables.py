"""Faults in pages, as rows of tables or as cards: each names tests, which must exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

#: A test: its file and name, and perhaps the id of a parameter.
TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def rows(page: Path) -> dict[str, list[list[str]]]:
    """{heading: the cells of each row of the table below it}, without the tables' header rows."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("|"):
            found.setdefault(heading, []).append([cell.strip() for cell in line.strip("|").split("|")])
    return {heading: table[2:] for heading, table in found.items()}  # the header and the line below it


def cards(page: Path) -> list[dict[str, str]]:
    """Each heading with tests below it: its `name`, its `text`, what its list says by label, and its `tests`."""
    found = []
    for part in re.split(r"^#{2,4} ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        told, folded, tests = rest.partition("<summary>Tests</summary>")
        if folded:
            text, *items = re.split(r"^- ", told, flags=re.MULTILINE)
            labelled = (re.match(r"\*\*([^*]+)\*\*: (.*)", item, re.DOTALL) for item in items)
            facts = {
                match[1]: " ".join(match[2].replace("<details markdown>", "").split()) for match in labelled if match
            }
            found.append({"name": name, "text": text.strip(), **facts, "tests": tests})
    return found


def missing(cell: str, below: Path) -> list[str]:
    """Tests that a cell names and that do not exist."""
    return [
        f"{file}::{name}"
        for file, name in TEST.findall(cell)
        if not (below / file).is_file() or name not in _names_in(below / file)
    ]


@cache
def _names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
