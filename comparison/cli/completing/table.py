"""The table of everything that can be completed: click's own account of the commands, and names of known sets."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003  # msgspec reads the types of fields
from typing import Any

import click
import msgspec

#: What click's `to_info_dict` says of a command or of a parameter.
About = dict[str, Any]


class Table(msgspec.Struct, frozen=True):
    """What a completion needs."""

    root: About
    names: Mapping[str, Mapping[str, str]]  #: {kind: {name: help}}
    #: {command, or command and design: {setting: its values, if they are words}}
    settings: Mapping[str, Mapping[str, tuple[str, ...]]]


def table_of(root: click.Group) -> Table:
    """The table of all commands, which imports them all."""
    from comparison.cli.completing import sets  # takes as long as a command

    about = root.to_info_dict(click.Context(root))
    plain: About = msgspec.json.decode(msgspec.json.encode(about, enc_hook=str))  # as it is read from the cache
    return Table(plain, sets.names(), sets.settings())
