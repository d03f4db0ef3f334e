"""`make test-faults` runs what `pytest tests/faults` collects, and `make test` everything else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
FAULTS = TESTS / "faults"
#: Without `make test-faults` these run in `make test-long`.
MARKS = {"faults", "long"}


def marks(nodes: list[ast.expr]) -> set[str]:
    """The names of pytest's marks in these expressions."""
    inside = (node for each in nodes for node in ast.walk(each) if isinstance(node, ast.Attribute))
    return {node.attr for node in inside if isinstance(node.value, ast.Attribute) and node.value.attr == "mark"}


def marked_tests(module: Path) -> dict[str, set[str]]:
    """The marks of each test of a module, with the module's own."""
    body = ast.parse(module.read_text(encoding="utf-8")).body
    of_module = [
        node.value
        for node in body
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)
    ]
    return {
        f"{module.relative_to(TESTS)}::{node.name}": marks([*node.decorator_list, *of_module])
        for node in body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_tests_with_fault_injection_are_in_their_folder_and_no_others() -> None:
    found = {module: marked_tests(module) for module in sorted(TESTS.rglob("test_*.py"))}
    assert sum(map(len, found.values())) > 1000
    elsewhere = [
        name
        for module, tests in found.items()
        for name, its in tests.items()
        if module.parent != FAULTS and "faults" in its
    ]
    assert not elsewhere, "make test-faults would not run them, and make test neither"
    inside = [name for module, tests in found.items() for name in tests if module.parent == FAULTS]
    assert inside
    assert not [name for name in inside if not MARKS & found[TESTS / name.partition("::")[0]][name]]


def test_make_runs_the_folder() -> None:
    recipe = re.search(
        r"^test-faults:.*\n\t(.*)$", (TESTS.parent / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert recipe is not None
    assert re.search(r"-m pytest tests/faults\b", recipe[1])
    without = r'-m pytest tests/faults \$\(if \$\(SMOKE\),-m "not originals and not long and not catalogue"\) -n'
    assert re.search(without, recipe[1]), "whatever else is selected, `pytest tests/faults` would not say so"
