"""What `--format json` prints: one document of every command that ends by itself.

What goes on until it is stopped (`consume`, `produce`, `watch`) prints JSON lines instead.
"""

from __future__ import annotations

import click
import msgspec


def print_document(content: object) -> None:
    """Print a value to standard output as JSON, indented."""
    click.echo(msgspec.json.format(msgspec.json.encode(content), indent=2))
