"""Options of all commands: those of one command do not get in each other's way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import click

from comparison.cli.main import cli


def commands(group: click.Group, name: str = "rebalance-lab") -> Iterator[tuple[str, click.Command]]:
    """Each command with its full name, the groups included."""
    yield name, group
    context = click.Context(group)
    for each in group.list_commands(context):
        found = group.get_command(context, each)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, f"{name} {each}")
        else:
            yield f"{name} {each}", found


def test_no_two_options_of_a_command_have_the_same_parameter() -> None:
    """click gives the value of one of them to both."""
    twice = {
        name: [parameter for parameter, times in Counter(each.name for each in command.params).items() if times > 1]
        for name, command in commands(cli)
    }
    assert len(twice) > 20
    assert {name: parameters for name, parameters in twice.items() if parameters} == {}
