"""What own steps and faults may call: documented, exported, and all that the example imports."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from comparison.scenarios import extending as behind
from rebalance_lab import extending

ROOT = Path(__file__).resolve().parents[2]
REACHED = ("Group", "Members", "Process", "View", "Testbed", "ZooKeeper", "Server")


def test_public_interface_is_all_of_what_is_behind_it() -> None:
    assert extending.__all__ == behind.__all__


def _callable_names(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}


def _rows() -> dict[str, str]:
    page = (ROOT / "docs" / "own-scenarios.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(\w+)` \| [^|]* \| (.*) \|$", page, re.MULTILINE))


@pytest.mark.parametrize("kind", REACHED)
def test_page_lists_what_each_type_offers_and_nothing_else(kind: str) -> None:
    named = set(re.findall(r"`(\w+)`", _rows()[kind]))
    offered = _callable_names(getattr(extending, kind))
    if kind == "Server":  # of which ours use more
        assert named <= offered
    else:
        assert named == offered


@pytest.mark.parametrize("kind", [kind for kind in REACHED if kind != "Server"])
def test_each_method_says_what_it_does(kind: str) -> None:
    reached = getattr(extending, kind)
    methods = {name: each for name, each in vars(reached).items() if inspect.isfunction(each) and name[0] != "_"}
    assert {name for name, each in methods.items() if not inspect.getdoc(each)} == set()


def test_example_imports_only_what_a_wheel_has_under_this_name() -> None:
    tree = ast.parse((ROOT / "docs" / "examples" / "own_faults.py").read_text(encoding="utf-8"))
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in modules if name.partition(".")[0] in ("kernel", "comparison", "coordinator")} == set()
    assert "rebalance_lab.extending" in modules
