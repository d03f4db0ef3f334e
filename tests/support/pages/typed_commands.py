"""Commands as they stand on pages: whether they can be typed. Nothing runs."""

from __future__ import annotations

import re
import shlex

import click

from comparison.cli.main import cli

_BLOCK = re.compile(r"^```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def parsed(command: str) -> click.Context:
    """The context of the command that this line of a page calls. Raises what click raises for a bad one."""
    name, *arguments = shlex.split(command, comments=True)
    assert name == "rebalance-lab"
    for shell in (">", "|"):
        if shell in arguments:
            arguments = arguments[: arguments.index(shell)]
    context = click.Context(cli)
    found: click.Command = cli
    if arguments[0].startswith("-"):  # the program's own options: what they call is not called
        _, arguments, _ = cli.make_parser(context).parse_args(arguments)
        if not arguments:
            return context
    while isinstance(found, click.Group) and arguments and not arguments[0].startswith("-"):
        called, resolved, arguments = found.resolve_command(context, arguments)
        assert resolved is not None
        context = click.Context(resolved, parent=context, info_name=called)
        found = resolved
    return found.make_context(context.info_name, arguments)


def commands(page: str) -> list[str]:
    """The lines in a page's blocks that call us, those that go on behind a backslash as one."""
    lines = "".join(_BLOCK.findall(page)).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("rebalance-lab ")]


def commands_in_text(page: str) -> list[str]:
    """The commands in backquotes and in indented lines of a page's text, each whole if it goes on in the next line."""
    text = _BLOCK.sub("", page)
    quoted = re.findall(r"`(rebalance-lab\s[^`]+)`", text)
    indented = re.findall(r"^    (rebalance-lab .+)$", text, re.MULTILINE)
    return [" ".join(command.split()) for command in (*quoted, *indented)]
