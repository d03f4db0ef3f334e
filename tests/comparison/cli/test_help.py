"""The help of every command fits a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import click
from click.testing import CliRunner

from comparison.cli.main import COMMANDS, cli


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
