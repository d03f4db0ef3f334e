"""`docs/which-design.md`: its figures are those of runs that give the same again, and no advice is without a ground."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE
from docs.generators.choice_page import PAGE, ROWS
from docs.generators.choice_records import COMMANDS, DESIGNS, METRICS, SEEDS, read_records
from kernel.designs import DESIGN_NAMES
from tests.support.runs.simulations import Simulations


def test_kept_runs_are_those_of_the_command_and_have_the_figures_of_the_page() -> None:
    kept = read_records()
    assert tuple(map(tuple, kept.commands)) == COMMANDS
    assert {tuple(each.seeds) for each in kept.cases} == {tuple(range(1, SEEDS + 1))}
    assert {row.metric for row in ROWS} <= set(METRICS)


@pytest.fixture(scope="module")
def simulations() -> Iterator[Simulations]:
    made = Simulations(CATALOGUE)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("scenario", "design"), [("slow-member", "eager"), ("split-brain", "consumer"), ("rolling-restart", "static")]
)
def test_a_kept_run_gives_the_same_again(simulations: Simulations, scenario: str, design: str, tmp_path: Path) -> None:
    again = simulations.run(tmp_path, scenario, design, seed=1).run
    kept = read_records().case(scenario, design)
    assert {metric: again.metrics[metric] for metric in METRICS} == {
        metric: figures[0] for metric, figures in kept.figures.items()
    }


def test_every_card_rests_on_a_command_a_page_or_a_proposal() -> None:
    _, _, told = PAGE.read_text(encoding="utf-8").partition("## By symptom and constraint\n")
    cards = {card.partition("\n")[0]: card for card in re.split(r"^### ", told, flags=re.MULTILINE)[1:]}
    assert len(cards) > 12
    rests = re.compile(r"`rebalance-lab [^`]+`|\]\([\w.#-]+\)|(?:KIP|KAFKA)-\d+")
    assert [name for name, card in cards.items() if name != "When none fits" and not rests.search(card)] == []


def test_the_page_says_of_every_design_whether_to_use_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    start = text.partition("## What it rests on")[0]
    assert [name for name in DESIGN_NAMES if f"`{name}`" not in start and f"={name}`" not in start] == ["cooperative"]
    assert "`cooperative-sticky`" in start
    assert set(DESIGNS) < set(DESIGN_NAMES)
