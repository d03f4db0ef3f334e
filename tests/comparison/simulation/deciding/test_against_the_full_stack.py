"""Counted groups against simulated runs of everything: the same counts, and times that differ only by phases."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.gold.run import measure
from comparison.pipeline.judged import finished
from comparison.pipeline.reading import read_tables
from comparison.results.run import Change
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.parameters import LargeParameters
from comparison.scenarios.plan.request import RunRequest, simulated_run
from comparison.scenarios.plan.vocabulary import Form, JoinOne, KillOwner, Steady
from comparison.scenarios.run.experiments import plan
from comparison.simulation.deciding.group import CountedGroup, Stage
from comparison.simulation.runs import perform
from kernel.designs import COORDINATED, SERVER
from kernel.trace.words import TimeSource

#: What a change costs, whenever it comes. Heartbeats and commands go on as long as one looks.
COUNTED = ("JoinGroup", "SyncGroup", "LeaveGroup", "FindCoordinator", "OffsetFetch")
#: A change comes at another moment between two heartbeats, of which everybody hears by a heartbeat.
TOLERANCE_MS = 1_000 + 50
TWO_PARTITIONS_EACH = 2
JOIN, CRASH = "join", "crash"
STEPS = {JOIN: (JoinOne(),), CRASH: (KillOwner(),), "both": (JoinOne(), KillOwner())}


async def changes_in_full(folder: Path, what: str, design: str, members: int) -> list[Change]:
    """A run of everything: a group forms, one joins or one is killed, or first the one and then the other."""
    scenario = replace(scenario_named(CRASH), steps=(Form(), Steady(), *STEPS[what]))
    size = {"members": members, "partitions": TWO_PARTITIONS_EACH * members}
    parameters = LargeParameters.of(scenario.parameters({"seed": 1, "rate": min(2 * members, 200)}), **size)
    (folder / "trace").mkdir()
    request = RunRequest(
        scenario=scenario,
        design=design,
        parameters=parameters,
        configuration=configuration(design, parameters),
        zookeeper="embedded",
        run=simulated_run(scenario.name, design, parameters),
        run_dir=folder,
        clock=TimeSource.SIMULATED,
    )
    outcome = await perform(request, {}, asyncio.Event(), lambda _: None)
    assert outcome.outcome == "complete", outcome.error
    (run,) = find_runs([folder])
    (part,) = parts_of([run], 1)
    tables, read = read_tables([run], part.chunks)
    measured, _ = measure(run, tables[0])
    changes = [change for change in finished(run, measured, read).changes if change.change in (JOIN, CRASH)]
    assert len(changes) == len(STEPS[what])
    return changes


def formed(design: str, members: int, seed: int = 1) -> CountedGroup:
    (planned,) = plan([JOIN], [design], {"seed": seed})
    made = configuration(design, planned.parameters)
    group = CountedGroup(design, made, partitions=TWO_PARTITIONS_EACH * members, seed=seed)
    group.form(members)
    return group


def counted(scenario: str, design: str, members: int, seed: int = 1) -> Stage:
    group = formed(design, members, seed)
    return group.join() if scenario == JOIN else group.crash()


async def held_against_the_full_stack(folder: Path, what: str, design: str, members: int) -> None:
    group = formed(design, members)
    for full in await changes_in_full(folder, what, design, members):
        # What moves after a crash depends on the victim's place in the group.
        alone = group.join() if full.change == JOIN else group.crash(full.target)
        assert (alone.change, alone.members) == (full.change, full.members)
        requests = {api: count for api, count in full.requests.items() if api in COUNTED}
        assert {api: count for api, count in alone.requests.items() if api in COUNTED} == requests
        assert alone.zk_writes == full.zk_writes
        assert alone.rounds == full.rounds
        if (full.change, design) != (CRASH, SERVER):  # who comes behind the victim: its id says that by chance
            assert alone.moved == full.moved
        assert alone.converge_ms == pytest.approx(full.converge_ms, abs=TOLERANCE_MS)


@pytest.mark.parametrize(
    ("what", "design"), [(JOIN, "eager"), (JOIN, "cooperative"), (JOIN, "server"), (CRASH, "consumer")]
)
async def test_counts_are_those_of_the_full_stack(tmp_path: Path, what: str, design: str) -> None:
    await held_against_the_full_stack(tmp_path, what, design, 12)


@pytest.mark.long
@pytest.mark.parametrize("design", COORDINATED)
async def test_counts_of_a_hundred_members_are_those_of_the_full_stack(tmp_path: Path, design: str) -> None:
    await held_against_the_full_stack(tmp_path, "both", design, 100)


@pytest.mark.long
@pytest.mark.parametrize("design", COORDINATED)
async def test_counts_of_a_thousand_members_are_those_of_the_full_stack(tmp_path: Path, design: str) -> None:
    await held_against_the_full_stack(tmp_path, "both", design, 1_000)


@pytest.mark.parametrize("design", COORDINATED)
def test_group_forms_takes_one_in_and_loses_one(design: str) -> None:
    joined, crashed = counted("join", design, 30), counted("crash", design, 30)
    assert (joined.members, crashed.members) == (31, 29)
    assert joined.converge_ms is not None
    assert crashed.converge_ms is not None
    assert crashed.detect_ms is not None
    # A session lasts 3 s, and its last sign of life came within the last interval before the end of its member.
    assert 2_000 <= crashed.detect_ms <= 3_500
    assert crashed.converge_ms >= crashed.detect_ms


def test_same_seed_gives_the_same_figures_and_another_one_others() -> None:
    one, again, other = (counted("join", "cooperative", 20, seed) for seed in (1, 1, 2))
    figures = ("converge_ms", "unowned_partition_s", "requests", "lasted_s")
    assert [getattr(one, name) for name in figures] == [getattr(again, name) for name in figures]
    assert one.converge_ms != other.converge_ms


@pytest.mark.parametrize("design", ["eager", "static"])
def test_heartbeats_just_before_a_session_ends_cost_an_interval_more(design: str) -> None:
    """After a rebalance all members beat at once, so that the victim's session ends among the others' heartbeats."""
    early, late = counted("crash", design, 30, seed=1), counted("crash", design, 30, seed=4)
    assert early.detect_ms is not None
    assert late.detect_ms is not None
    assert early.converge_ms == pytest.approx(early.detect_ms, abs=5)
    assert late.converge_ms == pytest.approx(late.detect_ms + 1_000, abs=5)
    assert early.requests["JoinGroup"] == late.requests["JoinGroup"] == early.members
