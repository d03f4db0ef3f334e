"""From a grid to its runs: every combination that can work, once, in its own folder."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comparison.sweep.grid import Grid, axes_from
from comparison.sweep.plan import Cell, SweepPlan, planned_sweep
from kernel.errors import ConfigurationError


def sweep(*axes: str, **counts: int) -> SweepPlan:
    return planned_sweep(Grid(axes=axes_from(axes)).overridden({}, **counts))


def test_every_combination_is_run_with_every_seed_and_all_cells_come_before_the_next_seed() -> None:
    plan = sweep("scenario=join", "design=zookeeper,eager", "members=2,4", seed=5, seeds=2)
    assert [run.folder for run in plan.runs] == [
        f"join/{design}/members-{members}/seed-{seed}"
        for seed in (5, 6)
        for design in ("zookeeper", "eager")
        for members in (2, 4)
    ]
    assert [run.planned.parameters.members for run in plan.runs] == [2, 4] * 4
    assert [run.seed for run in plan.runs] == [5] * 4 + [6] * 4
    assert plan.left_out == ()
    assert plan.runs[1].title == "join · zookeeper · members 4 · seed 5"


def test_repeats_of_a_seed_have_folders_of_their_own() -> None:
    plan = sweep("scenario=join", "design=eager", repeats=2)
    assert [run.folder for run in plan.runs] == ["join/eager/seed-1-run-1", "join/eager/seed-1-run-2"]
    assert plan.runs[0].planned == plan.runs[1].planned


def test_folder_depends_on_the_cell_alone() -> None:
    small = sweep("scenario=join", "design=eager", "members=4", "rate=300")
    large = sweep("scenario=crash,join", "rate=100,300", "members=2,4,8", seeds=3)
    assert {run.folder for run in small.runs} < {run.folder for run in large.runs}


def test_values_reach_the_run() -> None:
    (run,) = sweep(
        "scenario=crash", "design=zookeeper", "session-timeout=6000", "preset=kafka-defaults", "rebalance.max.retries=7"
    ).runs
    parameters = run.planned.parameters
    assert (parameters.session_timeout_ms, parameters.preset) == (6000, "kafka-defaults")
    assert parameters.settings == {"rebalance.max.retries": "7"}
    assert run.folder == "crash/zookeeper/preset-kafka-defaults_session-timeout-6000_rebalance.max.retries-7/seed-1"


def test_what_only_some_designs_use_has_no_effect_in_the_others_and_options_that_replace_settings_are_noted() -> None:
    plan = sweep("scenario=rolling-restart", "design=zookeeper,eager", "group.max.size=20,50", "session-timeout=4000")
    assert [run.cell.at["group.max.size"] for run in plan.runs] == [None, "20", "50"]
    assert "group.max.size has no effect in zookeeper, which does not use it" in plan.notes
    assert any(note.startswith("rolling-restart: --session-timeout 4000 replaces its own") for note in plan.notes)
    twice = sweep("scenario=join", "design=zookeeper,eager", "session-timeout=4000", "session.timeout.ms=6000")
    assert "session.timeout.ms=6000 overrides --session-timeout 4000 in eager" in twice.notes


def test_setting_that_a_design_lacks_has_no_value_there_and_multiplies_nothing() -> None:
    plan = sweep("scenario=join", "design=zookeeper,eager", "rebalance.max.retries=2,4,8")
    assert [run.cell.at["rebalance.max.retries"] for run in plan.runs] == ["2", "4", "8", None]
    assert plan.runs[-1].folder == "join/eager/seed-1"
    assert plan.notes == ("rebalance.max.retries has no effect in eager, which does not have it",)


def test_members_have_no_effect_where_a_scenario_sets_its_own_sizes() -> None:
    plan = sweep("scenario=herd,join", "design=eager", "members=2,4")
    assert [run.folder for run in plan.runs] == [
        "herd/eager/seed-1",
        "join/eager/members-2/seed-1",
        "join/eager/members-4/seed-1",
    ]
    assert plan.notes == ("members has no effect in herd, which sets its own group sizes",)


def test_strategy_has_no_effect_in_a_design_that_is_made_by_its_own() -> None:
    plan = sweep("scenario=join", "design=eager,cooperative", "partition.assignment.strategy=range,roundrobin")
    assert [run.cell.design for run in plan.runs] == ["eager", "eager", "cooperative"]
    assert "no effect in cooperative, which is defined by its own" in plan.notes[0]


def test_combination_that_cannot_work_is_left_out_with_the_reason_of_run() -> None:
    plan = sweep("scenario=split-brain", "design=eager", "members=4,16")
    assert [run.cell.at["members"] for run in plan.runs] == [4]
    ((title, reason),) = plan.left_out
    assert title == "split-brain · eager · members 16"
    assert "16 members share 12 partitions. Use --partitions 16" in reason


def test_scenario_that_a_design_does_not_have_is_left_out_once() -> None:
    plan = sweep("scenario=split-brain,split-brain-ensemble", "design=zookeeper", "rate=200,300")
    assert {run.cell.scenario for run in plan.runs} == {"split-brain"}
    assert [reason for _, reason in plan.left_out] == ["same run as split-brain"] * 2


def test_value_that_a_design_does_not_accept_is_left_out() -> None:
    plan = sweep("scenario=join", "design=zookeeper", "partition.assignment.strategy=range,sticky")
    assert len(plan.runs) == 1
    assert "supports only range and roundrobin" in plan.left_out[0][1]


def test_grid_without_any_possible_combination_is_refused_with_the_first_reason() -> None:
    with pytest.raises(
        ConfigurationError, match=r"no combination .* crash · zookeeper · members 1: .* needs 2 or more"
    ):
        sweep("scenario=crash", "members=1")


def test_grid_of_too_many_runs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"the grid has 80000 runs. Make at most 20000"):
        sweep("scenario=join", "members=1..200", seeds=200)


def test_long_or_ambiguous_values_get_a_digest() -> None:
    exact = Cell(scenario="join", design="eager", at={"some.setting": "a,b"})
    other = Cell(scenario="join", design="eager", at={"some.setting": "a-b"})
    assert exact.folder != other.folder
    assert other.folder == "join/eager/some.setting-a-b"
    assert exact.folder.startswith("join/eager/some.setting-a-b-")
    assert len(Cell(scenario="join", design="eager", at={"some.setting": "x" * 500}).folder) < 150


@given(
    st.lists(st.integers(1, 12), min_size=1, max_size=3, unique=True),
    st.lists(st.integers(12, 48), min_size=1, max_size=3, unique=True),
    st.integers(1, 3),
    st.integers(1, 2),
)
def test_plan_has_each_combination_once(members: list[int], partitions: list[int], seeds: int, repeats: int) -> None:
    axes = {"scenario": ("join",), "design": ("eager",), "members": tuple(members), "partitions": tuple(partitions)}
    plan = planned_sweep(Grid(axes=axes, seeds=seeds, repeats=repeats))
    assert len(plan.runs) == len(members) * len(partitions) * seeds * repeats
    assert len({run.folder for run in plan.runs}) == len(plan.runs)
    assert {(run.planned.parameters.members, run.planned.parameters.partitions) for run in plan.runs} == {
        (m, p) for m in members for p in partitions
    }
