"""What `--format json` prints: one document of every command that ends by itself.

What goes on until it is stopped (`consume`, `produce`, `watch`) prints JSON lines instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable


def print_document(content: object) -> None:
    """Print a value to standard output as JSON, indented."""
    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=2))


def print_found(form: str, content: object, lines: Iterable[str]) -> None:
    """Print what a command has found: as JSON, or as lines of text."""
    if form == "json":
        print_document(content)
        return
    for line in lines:
        click.echo(line)
