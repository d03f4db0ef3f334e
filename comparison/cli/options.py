"""Options that several commands have in the same words."""

from __future__ import annotations

from pathlib import Path

import click

form_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output."
)
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder for traces and reports.",
)
