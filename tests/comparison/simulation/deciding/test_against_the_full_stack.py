"""Counted groups against simulated runs of everything: the same counts, and times that differ only by phases."""

from __future__ import annotations

import asyncio
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


async def change_in_full(folder: Path, scenario: str, design: str, members: int) -> Change:
    (planned,) = plan([scenario], [design], {"seed": 1, "rate": min(2 * members, 200)})
    size = {"members": members, "partitions": TWO_PARTITIONS_EACH * members}
    parameters = LargeParameters.of(planned.parameters, **size)
    (folder / "trace").mkdir()
    request = RunRequest(
        scenario=scenario_named(scenario),
        design=design,
        parameters=parameters,
        configuration=configuration(design, parameters),
        zookeeper="embedded",
        run=simulated_run(scenario, design, parameters),
        run_dir=folder,
        clock=TimeSource.SIMULATED,
    )
    outcome = await perform(request, {}, asyncio.Event(), lambda _: None)
    assert outcome.outcome == "complete", outcome.error
    (run,) = find_runs([folder])
    (part,) = parts_of([run], 1)
    tables, read = read_tables([run], part.chunks)
    measured, _ = measure(run, tables[0])
    (change,) = finished(run, measured, read).changes
    return change


def counted(scenario: str, design: str, members: int, seed: int = 1, *, victim: str = "") -> Stage:
    (planned,) = plan([scenario], [design], {"seed": seed})
    made = configuration(design, planned.parameters)
    group = CountedGroup(design, made, partitions=TWO_PARTITIONS_EACH * members, seed=seed)
    group.form(members)
    return group.join() if scenario == "join" else group.crash(victim)


async def held_against_the_full_stack(folder: Path, scenario: str, design: str, members: int) -> None:
    full = await change_in_full(folder, scenario, design, members)
    victim = full.target if scenario == "crash" else ""  # what moves depends on its place in the group
    alone = counted(scenario, design, members, victim=victim)
    assert alone.members == full.members
    requests = {api: count for api, count in full.requests.items() if api in COUNTED}
    assert {api: count for api, count in alone.requests.items() if api in COUNTED} == requests
    assert alone.zk_writes == full.zk_writes
    assert alone.rounds == full.rounds
    if (scenario, design) != ("crash", SERVER):  # who comes behind the victim: its id says that by chance
        assert alone.moved == full.moved
    assert alone.converge_ms == pytest.approx(full.converge_ms, abs=TOLERANCE_MS)


@pytest.mark.parametrize(
    ("scenario", "design"),
    [("join", "eager"), ("join", "cooperative"), ("join", "server"), ("crash", "consumer")],
)
async def test_counts_are_those_of_the_full_stack(tmp_path: Path, scenario: str, design: str) -> None:
    await held_against_the_full_stack(tmp_path, scenario, design, 12)


@pytest.mark.long
@pytest.mark.parametrize("design", COORDINATED)
@pytest.mark.parametrize("scenario", ["join", "crash"])
async def test_counts_of_a_hundred_members_are_those_of_the_full_stack(
    tmp_path: Path, scenario: str, design: str
) -> None:
    await held_against_the_full_stack(tmp_path, scenario, design, 100)


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "design"), [("join", "eager"), ("crash", "consumer")])
async def test_counts_of_a_thousand_members_are_those_of_the_full_stack(
    tmp_path: Path, scenario: str, design: str
) -> None:
    await held_against_the_full_stack(tmp_path, scenario, design, 1_000)


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
