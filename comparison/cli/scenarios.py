"""`rebalance-lab scenarios`: the catalogue. It loads neither what runs scenarios nor what analyses them."""

from __future__ import annotations

import click
import msgspec

from comparison.cli.catalogue_text import scenario_text, vocabulary_text
from comparison.cli.options import plugin_option
from comparison.own_scenarios import names_of
from comparison.scenarios.plan.catalogue import CATALOGUE, scenario_named
from comparison.scenarios.plan.plugins import load_installed
from comparison.scenarios.plan.scenario_text import as_file as text_of
from comparison.scenarios.plan.wording import described

#: To which width symptoms are wrapped beside the names, which are to be typed in full.
_SYMPTOM = 30


@click.command(
    epilog="""\b
Examples:
  rebalance-lab scenarios
  rebalance-lab scenarios --show split-brain
  rebalance-lab scenarios --show crash --as-file > my.toml    to change it: docs/own-scenarios.md
  rebalance-lab scenarios --json"""
)
@click.option("--json", "as_json", is_flag=True, help="Print the whole catalogue as JSON.")
@click.option("--show", metavar="NAME", help="Describe one scenario: the symptom, the steps, what to look for.")
@click.option("--as-file", is_flag=True, help="Print the scenario of --show as a file that `run` takes.")
@click.option("--steps", is_flag=True, help="List the steps, faults and checks that a file can have.")
@plugin_option
def scenarios(as_json: bool, show: str | None, as_file: bool, steps: bool) -> None:
    """List the scenarios, or describe one."""
    if as_file and (as_json or not show):
        raise click.UsageError("--as-file needs --show NAME, and excludes --json")
    if steps:
        if as_json or show:
            raise click.UsageError("--steps excludes --json and --show")
        load_installed()
        click.echo(vocabulary_text(), nl=False)
        return
    chosen = [scenario_named(names_of([show])[0])] if show else list(CATALOGUE.values())
    if as_file:
        click.echo(text_of(chosen[0]), nl=False)
    elif as_json:
        click.echo(msgspec.json.format(msgspec.json.encode([described(scenario) for scenario in chosen]), indent=2))
    elif show:
        click.echo(scenario_text(chosen[0], show), nl=False)
    else:
        from rich.console import Console

        from comparison.text_table import Column, TextTable

        symptom = Column(heading="SYMPTOM", wraps=True, narrowest=_SYMPTOM)
        seconds = Column(heading="SECONDS", is_right=True)
        table = TextTable([Column(heading="SCENARIO", is_label=True), symptom, seconds], gaps=(2, 1), is_ruled=False)
        for scenario in chosen:
            table.add(scenario.name, scenario.symptom, f"{scenario.budget_s}")
        Console().print(table)
