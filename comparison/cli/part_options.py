"""The options that choose tables about a group, as kafka-consumer-groups has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comparison.cli.options import with_options
from comparison.group_readers.columns import Part

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Not `--state`, as in every command for use by hand that is the state folder.
part_options = with_options(
    click.option(
        "--group-state", str(Part.STATE), is_flag=True, help="Show the coordinator, the strategy and the state."
    ),
    click.option("--members", str(Part.MEMBERS), is_flag=True, help="Show each member with what it owns."),
    click.option("--offsets", str(Part.OFFSETS), is_flag=True, help="Show each partition's offsets, lag and owner."),
)


def chosen_parts(flags: Mapping[str, bool]) -> list[Part]:
    """The chosen tables; all of them if none is."""
    return [part for part in Part if flags[part]] or list(Part)
