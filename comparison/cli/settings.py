"""`rebalance-lab settings`: every setting of every design, with what to choose."""

from __future__ import annotations

import click

from comparison.cli.complaints import OneOf
from comparison.cli.documents import print_document
from comparison.cli.options import form_option
from comparison.cli.setting_text import as_json, in_full, listed
from comparison.scenarios.plan.setting_rows import elsewhere, named, rows
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError
from kernel.suggestions import unknown


@click.command(
    epilog="""\b
Examples:
  rebalance-lab settings                      all, by the part that has them
  rebalance-lab settings session.timeout.ms   one in full, with advice
  rebalance-lab settings backoff              those with this in their name
  rebalance-lab settings --design static
  rebalance-lab settings --format json

\b
docs/settings.md has the same, with a chapter on timers that belong together."""
)
@click.argument("name", metavar="[NAME]", default="")
@click.option(
    "--design",
    "designs",
    type=OneOf(DESIGN_NAMES),
    multiple=True,
    help="Only what matters to this design: its members and its brokers. May be repeated.",
)
@form_option
def settings(name: str, designs: tuple[str, ...], form: str) -> None:
    """List the settings, or describe one."""
    chosen = rows(designs or DESIGN_NAMES)
    found = named(name, chosen)
    if not found:
        _refuse(name, designs)
    if form == "json":
        print_document([as_json(row) for row in found])
    elif {row.setting.name for row in found} == {name}:
        click.echo("\n\n".join("\n".join(in_full(row)) for row in found))
    else:
        click.echo("\n".join(listed(found)))


def _refuse(name: str, designs: tuple[str, ...]) -> None:
    """Raises `ConfigurationError`."""
    if designs and named(name, rows()):
        raise ConfigurationError(f"{name} does not matter to {' or '.join(designs)}. Leave --design out")
    if name in elsewhere():
        raise ConfigurationError(
            f"{name} is a Kafka setting that rebalance-lab does not implement. `rebalance-lab settings` lists the rest"
        )
    names = dict.fromkeys(row.setting.name for row in rows())
    raise ConfigurationError(unknown("setting", name, names, hint="`rebalance-lab settings` lists all"))
