"""The catalogue and every fault in simulated worlds: each verdict is as in real runs.

`make test` runs each design and each fault at least once; `make test-long` every scenario in every design.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from comparison.fuzzing.judging import Outcome
from comparison.scenarios.plan.catalogue import CATALOGUE
from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import Inject
from kernel.designs import CONSUMER, COOPERATIVE, DELAYED, DESIGN_NAMES, EAGER, SERVER, STATIC, ZOOKEEPER
from kernel.trace.reader import read_trace
from tests.support.runs.cells import CELLS, LOW_RATE, sizes_of
from tests.support.runs.injected_faults import GROUPS, scenario_of
from tests.support.runs.simulations import Simulations

SEED, FAULTS_SEED = 7, 5
#: What `make test` runs: what each design is known for, and each kind of outage and change.
USUAL = [
    ("herd", ZOOKEEPER),
    ("split-brain", EAGER),
    ("crash", ZOOKEEPER),
    ("pause", ZOOKEEPER),
    ("pause", EAGER),
    ("join", COOPERATIVE),
    ("join", CONSUMER),
    ("leave", SERVER),
    ("mass-start", ZOOKEEPER),
    ("rolling-restart", COOPERATIVE),
    ("scale-out", SERVER),
    ("coordinator-failover", CONSUMER),
    ("partition-increase", EAGER),
    ("subscription-change", COOPERATIVE),
    ("stale-view", ZOOKEEPER),
    ("zombie-commit", ZOOKEEPER),
    ("zombie-commit", EAGER),
    ("idle-members", ZOOKEEPER),
    ("duplicate-instance-id", STATIC),
    ("rebalance-failed", ZOOKEEPER),
    ("quorum-loss", DELAYED),
    ("session-expiry", ZOOKEEPER),
    ("flapping-member", STATIC),
    ("slow-listener", EAGER),
    ("paused-partition", CONSUMER),
]
#: The design in which `make test` injects each group of faults.
USUAL_GROUPS = {
    "links": CONSUMER,
    "processes": STATIC,
    "sessions": ZOOKEEPER,
    "owner-znodes": ZOOKEEPER,
    "applications": EAGER,
    "membership": SERVER,
    "listeners": ZOOKEEPER,
    "pauses": COOPERATIVE,
}


@pytest.fixture(scope="module")
def simulations() -> Iterator[Simulations]:
    faults = {name: scenario_of(steps, servers) for name, steps, servers, _ in GROUPS}
    with closing(Simulations({**CATALOGUE, **faults})) as made:
        yield made


def test_make_test_runs_each_design_and_each_group_of_faults() -> None:
    assert {design for _, design in USUAL} == set(DESIGN_NAMES)
    assert set(USUAL) <= set(CELLS)
    assert USUAL_GROUPS.keys() == {name for name, _, _, _ in GROUPS}


@pytest.mark.parametrize(
    ("scenario", "design"),
    [pytest.param(*cell, id=" ".join(cell), marks=[] if cell in USUAL else [pytest.mark.long]) for cell in CELLS],
)
def test_scenario_ends_with_every_verdict_as_expected(
    scenario: str, design: str, simulations: Simulations, tmp_path: Path
) -> None:
    found = simulations.run(tmp_path / "run", scenario, design, seed=SEED, **sizes_of(scenario))

    assert (found.outcome.outcome, found.outcome.error) == ("complete", "")
    assert found.run.verdicts
    assert found.unexpected == {}


@pytest.mark.parametrize(
    ("group", "steps", "design"),
    [
        pytest.param(
            *(name, steps, design),
            id=f"{name}-{design}",
            marks=[] if USUAL_GROUPS[name] == design else [pytest.mark.long],
        )
        for name, steps, _, designs in GROUPS
        for design in designs
    ],
)
def test_group_comes_through_injected_faults(
    group: str, steps: tuple[Step, ...], design: str, simulations: Simulations, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    found = simulations.run(folder, group, design, seed=FAULTS_SEED, rate=LOW_RATE)

    assert (found.outcome.outcome, found.outcome.error) == ("complete", "")
    events = read_trace(folder / "trace" / "runner.jsonl").events
    begun = [event["fault"] for event in events if event["kind"] == "fault_started"]
    assert begun == [step.fault for step in steps if isinstance(step, Inject)]
    stay = {step.fault for step in steps if isinstance(step, Inject) and FAULTS[step.fault].stays}
    assert {event["fault"] for event in events if event["kind"] == "fault_ended"} >= set(begun) - stay
    assert found.judgement.outcome is Outcome.HELD, found.judgement.in_words()
