"""The table of everything that can be completed: the commands with their parameters, and names of known sets.

It says of each parameter what its values are: a word that click's `Choice` has, a file, a folder, or names of a set.
"""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # msgspec reads the types of fields

import click
import msgspec

from comparison.cli.completing.kinds import FILE, FOLDER, KINDS


class Parameter(msgspec.Struct, frozen=True):
    """An option, or an argument, which has no `options`."""

    name: str
    options: tuple[str, ...] = ()
    off: tuple[str, ...] = ()  #: options that say the opposite
    is_flag: bool = False
    is_count: bool = False
    multiple: bool = False
    nargs: int = 1
    kind: str = ""
    words: tuple[str, ...] = ()
    help: str = ""


class Node(msgspec.Struct, frozen=True):
    """A command."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]
    commands: tuple[Node, ...] | None = None  #: of a group


class Table(msgspec.Struct, frozen=True):
    """What a completion needs."""

    root: Node
    names: Mapping[str, Mapping[str, str]]  #: {kind: {name: help}}
    #: {command, or command and design: {setting: its values, if they are words}}
    settings: Mapping[str, Mapping[str, tuple[str, ...]]]


def table_of(root: click.Group) -> Table:
    """The table of all commands, which imports them all."""
    from comparison.cli.completing import sets  # takes as long as a command

    return Table(_node(root, "", ""), sets.names(), sets.settings())


def _node(command: click.Command, name: str, path: str) -> Node:
    commands = None
    if isinstance(command, click.Group):
        context = click.Context(command, info_name=name)
        below = ((each, command.get_command(context, each)) for each in command.list_commands(context))
        commands = tuple(_node(each, named, f"{path} {named}".strip()) for named, each in below if each is not None)
    parameters = (*command.params, *filter(None, [command.get_help_option(click.Context(command))]))
    return Node(name, command.get_short_help_str(100), tuple(_parameter(each, path) for each in parameters), commands)


def _parameter(parameter: click.Parameter, path: str) -> Parameter:
    name = parameter.name or ""
    kind = KINDS.get(f"{path} {name}", KINDS.get(name, ""))
    words: tuple[str, ...] = ()
    if isinstance(parameter.type, click.Choice):
        words = tuple(map(str, parameter.type.choices))
    elif isinstance(parameter.type, click.Path) and not kind:
        kind = FILE if parameter.type.file_okay else FOLDER
    if not isinstance(parameter, click.Option):
        return Parameter(name, nargs=parameter.nargs, kind=kind, words=words)
    return Parameter(
        name,
        options=tuple(parameter.opts),
        off=tuple(parameter.secondary_opts),
        is_flag=parameter.is_flag,
        is_count=parameter.count,
        multiple=parameter.multiple,
        nargs=parameter.nargs,
        kind=kind,
        words=words,
        help=parameter.help or "",
    )
