"""The examples need what a wheel installs; of anything else, their page says so."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs" / "examples"
#: Modules of the examples themselves.
OWN = {path.stem for path in EXAMPLES.glob("*.py")}


def source_of(path: Path) -> str:
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def imported(path: Path) -> set[str]:
    """The packages that an example imports, without Python's own."""
    names = set()
    for node in ast.walk(ast.parse(source_of(path))):
        if isinstance(node, ast.Import):
            names |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names - sys.stdlib_module_names - OWN


def installed_by_a_wheel() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[^\w-]", each, maxsplit=1)[0].lower() for each in project["dependencies"]}
    packages = {name for name, makers in packages_distributions().items() if needed & {each.lower() for each in makers}}
    return {"rebalance_lab", *packages}


@pytest.mark.parametrize(
    "path", sorted([*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")]), ids=lambda path: path.name
)
def test_example_imports_what_a_wheel_installs_or_its_page_says_so(path: Path) -> None:
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    missing = sorted(imported(path) - installed_by_a_wheel())
    assert [
        name for name in missing if f"`pip install {name}`" not in page and f"`pip install {name};" not in page
    ] == []


def test_imports_of_an_example_are_found() -> None:
    assert imported(EXAMPLES / "moved_back.py") == {"duckdb"}
    assert imported(EXAMPLES / "waits.ipynb") == {"pyspark"}
    assert {"duckdb", "pandas", "pyspark", "rebalance_lab"} <= installed_by_a_wheel()
