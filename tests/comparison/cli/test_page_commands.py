"""Commands that pages print can be typed as they stand there. Nothing runs."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from tests.support.pages.typed_commands import commands, commands_in_text, parsed

ROOT = Path(__file__).parents[3]
PAGES = (
    "README",
    *(f"docs/{name}" for name in ("sources", "history", "results", "own-scenarios", "fuzzing", "settings", "choosing")),
    *(f"docs/{name}" for name in ("which-design", "weaknesses", "coordinator-weaknesses", "added-partitions")),
    *(f"docs/{name}" for name in ("concepts", "assignment", "consumer-protocol", "by-hand", "comparisons", "sweeps")),
)
COMMANDS = [
    pytest.param(command, id=f"{page}: {command}")
    for page in PAGES
    for text in [(ROOT / f"{page}.md").read_text(encoding="utf-8")]
    for command in dict.fromkeys([*commands(text), *commands_in_text(text)])
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
