"""What follows the options in a command's help fits a terminal of 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from comparison.cli.epilogs import WIDTH, fitted
from comparison.cli.main import COMMANDS, cli

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = "word " * 20


def commands(root: click.Command, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    if isinstance(root, click.Group):
        with click.Context(root) as context:
            for name in root.list_commands(context):
                command = root.get_command(context, name)
                assert command is not None
                yield from commands(command, *names, name)


def test_help_of_every_command_fits_80_columns() -> None:
    found = list(commands(cli))
    assert len(found) > len(COMMANDS)
    for names in found:
        said = CliRunner(env={"COLUMNS": "80"}).invoke(cli, [*names, "--help"], terminal_width=80)
        assert said.exit_code == 0, names
        assert [line for line in said.output.splitlines() if len(line) > 80] == [], names


@pytest.mark.parametrize(
    ("epilog", "lines"),
    [
        ("\b\nShort.\n  lab run", ["\b", "Short.", "  lab run"]),
        (
            "\b\nA sentence that\ngoes on. Ctrl-C ends it.\nAnother.",
            ["\b", "A sentence that goes on. Ctrl-C ends it.", "Another."],
        ),
        (
            f"\b\n  lab run --set {'x' * 30}=1    what this does, in so many words, {'y' * 20}",
            ["\b", f"  lab run --set {'x' * 30}=1", f"      what this does, in so many words, {'y' * 20}"],
        ),
        (
            f"\b\n  lab run --set {'x' * 30}=1 --set {'y' * 40}=1",
            ["\b", f"  lab run --set {'x' * 30}=1 \\", f"      --set {'y' * 40}=1"],
        ),
    ],
)
def test_long_lines_are_broken_where_they_can_be(epilog: str, lines: list[str]) -> None:
    assert fitted(epilog).split("\n") == lines
    assert fitted(fitted(epilog)) == fitted(epilog)


def test_prose_is_wrapped() -> None:
    assert max(map(len, fitted(f"\b\n{LONG}.").split("\n"))) <= WIDTH
