"""Commands that pages print can be typed as they stand there. Nothing runs."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.support.pages.typed_commands import commands, commands_in_text, parsed

ROOT = Path(__file__).parents[3]
#: Pages whose sentences name whole commands; the others also say what a command is called.
WHOLE = {"README", "sources", "history", "results", "own-scenarios", "fuzzing", "settings", "choosing", "which-design"}
WHOLE |= {"weaknesses", "coordinator-weaknesses", "added-partitions", "concepts", "assignment", "consumer-protocol"}
WHOLE |= {"by-hand", "comparisons", "sweeps"}
COMMANDS = [
    pytest.param(command, id=f"{page.stem}: {command}")
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for text in [page.read_text(encoding="utf-8")]
    for command in dict.fromkeys([*commands(text), *(commands_in_text(text) if page.stem in WHOLE else ())])
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("own_folder")
def test_command_of_a_page_can_be_typed(command: str) -> None:
    assert parsed(command).command.name


def test_commands_of_a_page_are_found() -> None:
    text = "Try `rebalance-lab run\njoin`.\n\n    rebalance-lab doctor\n\n"
    page = f"{text}```\nrebalance-lab watch \\\n  --group g\n$ x\n```\n"
    assert commands(page) == ["rebalance-lab watch    --group g"]
    assert commands_in_text(page) == ["rebalance-lab run join", "rebalance-lab doctor"]
    assert len(COMMANDS) > 200


@pytest.mark.parametrize("command", ["rebalance-lab watch", "rebalance-lab diagram", "rebalance-lab runs join"])
def test_command_that_cannot_be_typed_is_refused(command: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(command)
