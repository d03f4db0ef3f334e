"""Options that several commands have in the same words."""

from __future__ import annotations

from pathlib import Path

import click

from comparison.near_paths import RUNS
from comparison.scenarios.plan.plugins import load

#: Of every command that prints what it has found.
form_option = click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Output format."
)
#: Of every command that reports its progress.
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only the result, warnings and errors.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be run, and exit.")
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=RUNS,
    show_default=True,
    help="Folder for traces and reports.",
)
#: May be repeated; plugins are loaded while options are parsed, before any name is looked up.
plugin_option = click.option(
    "--plugin",
    "plugins",
    multiple=True,
    metavar="FILE|MODULE",
    is_eager=True,
    expose_value=False,
    callback=lambda _, __, names: [load(name) for name in names],
    help="Python file or module with your own steps and faults (docs/own-scenarios.md). May be repeated.",
)
