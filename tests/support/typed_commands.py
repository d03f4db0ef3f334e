"""Commands as they stand on pages: whether they can be typed. Nothing runs."""

from __future__ import annotations

import re
import shlex

import click

from comparison.cli.main import cli


def parsed(command: str) -> click.Context:
    """The context of the command that this line of a page calls. Raises what click raises for a bad one."""
    name, *arguments = shlex.split(command, comments=True)
    assert name == "rebalance-lab"
    context, found = click.Context(cli), cli
    while isinstance(found, click.Group) and arguments and not arguments[0].startswith("-"):
        name, resolved, arguments = found.resolve_command(context, arguments)
        assert resolved is not None
        context = click.Context(resolved, parent=context, info_name=name)
        found = resolved
    return found.make_context(name, arguments)


def commands(page: str) -> list[str]:
    """The lines in a page's blocks that call us, those that go on behind a backslash as one."""
    blocks = re.findall(r"^```\w*\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("rebalance-lab ")]
