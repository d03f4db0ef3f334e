"""Groups that are too large to run everything: which scenarios they play, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from comparison.scenarios.plan.catalogue import CATALOGUE, scenario_named
from comparison.scenarios.plan.parameters import LargeParameters
from comparison.scenarios.plan.vocabulary import Form, JoinOne, KillOwner, LeaveOne, Steady
from comparison.sweep.grid import Grid, axes_from
from comparison.sweep.large import changes_of, figures_of, why_not_large
from comparison.sweep.plan import planned_sweep

BOTH = Path(__file__).parents[3] / "docs" / "sweeps" / "join-and-crash.toml"


def test_scenarios_of_the_catalogue_that_large_groups_play() -> None:
    assert {name: changes for name, each in CATALOGUE.items() if (changes := changes_of(each))} == {
        "crash": ("form", "crash"),
        "join": ("form", "join"),
        "mass-start": ("mass-start",),
    }


@pytest.mark.parametrize(
    "steps",
    [
        (Form(), Steady()),
        (Form(), JoinOne(), LeaveOne()),
        (Form(), KillOwner(), KillOwner()),
        (Form(members=3), JoinOne()),
        (Form(settings={"heartbeat.interval.ms": "500"}), JoinOne()),
    ],
)
def test_what_is_more_than_a_join_and_a_crash_is_not_played(steps: tuple[Form, ...]) -> None:
    scenario = replace(scenario_named("join"), steps=steps)
    parameters = LargeParameters(members=300, partitions=600)
    assert changes_of(scenario) == ()
    assert "at most once join-one and kill-owner" in why_not_large(scenario, "eager", parameters)


def test_members_with_own_names_or_topics_are_not_played() -> None:
    join = scenario_named("join")
    assert changes_of(replace(join, named_members=True)) == ()
    assert changes_of(replace(join, first_topics={1: (1,)})) == ()


def test_one_group_gives_the_figures_of_both_changes() -> None:
    given = [f"scenario={BOTH}", "design=cooperative,zookeeper", "members=20", "partitions=40"]
    axes = axes_from(given, simulated=True)
    plan = planned_sweep(Grid(axes=axes), simulated=True, full_stack_max=1)
    (run,) = plan.runs
    ((_, reason),) = plan.left_out
    assert reason.endswith("is of join only")
    both = figures_of(scenario_named("join-and-crash"), "cooperative", run.planned.parameters)
    alone = figures_of(scenario_named("join"), "cooperative", run.planned.parameters)
    counts = ("join.rounds", "join.moved", "join.authority_requests", "join.converge_ms")
    assert [both[name] for name in counts] == [alone[name] for name in counts]
    assert both["crash.moved"] in (1, 2)
    assert "converge_ms" in alone
    assert "converge_ms" not in both
