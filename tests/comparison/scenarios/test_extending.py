"""The public interface for own steps and faults: what it adds to the tables, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.plugins import load
from comparison.scenarios.plan.step_names import STEPS
from kernel.errors import ConfigurationError

ROOT = Path(__file__).resolve().parents[3]
IMPORTS = "from dataclasses import dataclass\nfrom comparison.scenarios.extending import *\n"


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
        (
            "@own_step\nclass Mine:\n    pass\n",
            "Mine must be a dataclass that inherits from OwnStep",
        ),
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
