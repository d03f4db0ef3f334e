"""`rebalance-lab scenarios`: the catalogue. It loads neither what runs scenarios nor what analyses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comparison.cli.catalogue_text import scenario_text
from comparison.cli.documents import print_document
from comparison.cli.options import form_option, plugin_option
from comparison.cli.vocabulary import vocabulary, vocabulary_text
from comparison.own_scenarios import is_file, names_of
from comparison.scenarios.plan.catalogue import CATALOGUE, scenario_named
from comparison.scenarios.plan.plugins import load_installed
from comparison.scenarios.plan.scenario_text import as_file as text_of
from comparison.scenarios.plan.wording import described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.scenarios.plan.scenario import Scenario

#: To which width symptoms are wrapped beside the names, which are to be typed in full.
_SYMPTOM = 30


@click.command(
    epilog="""\b
Examples:
  rebalance-lab scenarios
  rebalance-lab scenarios split-brain
      one in full: the symptom, the steps, what to look for
  rebalance-lab scenarios restart  those with this in their name
  rebalance-lab scenarios crash --as-file > my.toml
      to change it: docs/own-scenarios.md
  rebalance-lab scenarios --format json"""
)
@click.argument("name", metavar="[NAME]", default="")
@click.option("--as-file", is_flag=True, help="Print the scenario as a file that `run` takes.")
@click.option("--steps", is_flag=True, help="List the steps, faults and checks that a file can have.")
@form_option
@plugin_option
def scenarios(name: str, as_file: bool, steps: bool, form: str) -> None:
    """List the scenarios, or describe one: by its name, or in a file of your own."""
    if as_file and (form == "json" or not name):
        raise click.UsageError("--as-file needs the name of a scenario, and excludes --format json")
    if steps:
        if as_file or name:
            raise click.UsageError("--steps excludes --as-file and a name")
        load_installed()
        if form == "json":
            print_document(vocabulary())
        else:
            click.echo(vocabulary_text(), nl=False)
        return
    found = _named(name)
    is_one = len(found) == 1 and (found[0].name == name or is_file(name))
    if as_file:
        click.echo(text_of(found[0] if is_one else scenario_named(name)), nl=False)
    elif form == "json":
        print_document([described(scenario) for scenario in found])
    elif is_one:
        click.echo(scenario_text(found[0], name), nl=False)
    else:
        _print_table(found)


def _named(name: str) -> Sequence[Scenario]:
    """The scenario of that name or in that file, or those with this in their name; all of them for ''.

    Raises `ConfigurationError` if there is none.
    """
    if name in CATALOGUE or is_file(name):
        return [scenario_named(names_of([name])[0])]
    return [each for each in CATALOGUE.values() if name in each.name] or [scenario_named(name)]


def _print_table(found: Sequence[Scenario]) -> None:
    from rich.console import Console

    from comparison.screen.text_table import Column, TextTable

    symptom = Column(heading="SYMPTOM", wraps=True, narrowest=_SYMPTOM)
    seconds = Column(heading="SECONDS", is_right=True)
    table = TextTable([Column(heading="SCENARIO", is_label=True), symptom, seconds], gaps=(2, 1), is_ruled=False)
    for scenario in found:
        table.add(scenario.name, scenario.symptom, f"{scenario.budget_s}")
    Console().print(table)
