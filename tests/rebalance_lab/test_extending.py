"""What own steps and faults may call: documented, exported, and all that the example imports."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.plugins import load
from comparison.scenarios.plan.step_names import STEPS
from kernel.errors import ConfigurationError
from rebalance_lab import extending

ROOT = Path(__file__).resolve().parents[2]
REACHED = ("Group", "Members", "Process", "View", "Testbed", "ZooKeeper", "Server")


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


# -- what they add to the tables, and what is refused ------------------------------------------------------------------

IMPORTS = "from dataclasses import dataclass\nfrom rebalance_lab.extending import *\n"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (
            '@own_fault(Fault(name="kill", does="", heals="", targets=()))\nclass Mine(Performer):\n    pass\n',
            "there is a fault 'kill' already. Choose another name",
        ),
        (
            "@own_step\n@dataclass(frozen=True, slots=True)\nclass KillOwner(OwnStep):\n    pass\n",
            "there is a step 'kill-owner' already. Choose another name for KillOwner",
        ),
        ("@own_step\nclass Mine:\n    pass\n", "Mine must be a dataclass that inherits from OwnStep"),
        (
            "@own_step\n@dataclass(frozen=True, slots=True)\nclass Mine(OwnStep):\n    each: 'Nothing' = 1\n",
            "Mine: the type of a field cannot be read: name 'Nothing' is not defined",
        ),
        (
            "@own_step\n@dataclass(frozen=True, slots=True)\nclass Mine(OwnStep):\n    losses: int = 1\n",
            "Mine: a field cannot have the name 'losses'. Choose another one",
        ),
    ],
)
def test_what_cannot_be_added_to_the_tables_is_refused(tmp_path: Path, source: str, complaint: str) -> None:
    (tmp_path / "mine.py").write_text(IMPORTS + source)
    before = (dict(FAULTS), dict(STEPS))
    with pytest.raises(ConfigurationError, match=complaint):
        load("mine.py", tmp_path)
    assert (dict(FAULTS), dict(STEPS)) == before


def test_the_example_is_added_to_the_tables() -> None:
    """In a process of its own, whose tables it changes."""
    command = [sys.executable, "-m", "comparison.cli.main", "scenarios", "--steps", "--plugin"]
    listed = subprocess.run(
        [*command, "docs/examples/own_faults.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {"  hiccups", "  join-in-turn", "      count: a whole number, default 2"} <= set(listed)
    assert "      every_ms: 1 to 60000, default 300" in listed
