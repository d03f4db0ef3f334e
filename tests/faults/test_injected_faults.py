"""Every fault of the table, injected into a real group by a scenario that is composed of steps.

Verify: each fault begins and ends in the trace, in the order of the steps, and the group comes through all of them.

Setup: three ZooKeeper servers where their links or the quorum are at stake, otherwise one; two brokers, four members.

Expectation: the run completes, so every record was delivered and committed in the end, and every promise that the
design gives under all circumstances was kept, as the fuzzer judges it. What it promises under one fault is judged in
the catalogue's scenarios.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from comparison.fuzzing.judging import Outcome, judge_folder
from comparison.scenarios.plan import catalogue
from comparison.scenarios.plan.faults import FAULTS
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import Inject
from comparison.scenarios.run.experiments import Experiments, plan
from comparison.screen.progress import RunProgress
from kernel.designs import CONSUMER, COOPERATIVE, DELAYED, EAGER, SERVER, STATIC, ZOOKEEPER
from kernel.trace.reader import read_trace
from tests.support.runs.injected_faults import GROUPS, scenario_of

pytestmark = pytest.mark.faults

#: The design in which CI injects each group of faults.
IN_CI = {
    "links": EAGER,
    "processes": DELAYED,
    "sessions": ZOOKEEPER,
    "owner-znodes": ZOOKEEPER,
    "applications": CONSUMER,
    "membership": COOPERATIVE,
    "listeners": SERVER,
    "pauses": STATIC,
}


def marks_of(group: str, design: str) -> list[pytest.MarkDecorator]:
    if IN_CI[group] == design:
        return []
    return [pytest.mark.catalogue if design in (ZOOKEEPER, EAGER) else pytest.mark.long]


def test_every_fault_is_among_them() -> None:
    injected = {step.fault for _, steps, _, _ in GROUPS for step in steps if isinstance(step, Inject)}
    assert injected == set(FAULTS)


def test_every_fault_is_injected_in_every_design_that_has_it() -> None:
    tried = {
        (step.fault, design)
        for _, steps, _, designs in GROUPS
        for step in steps
        for design in designs
        if isinstance(step, Inject)
    }
    assert tried == {(fault.name, design) for fault in FAULTS.values() for design in fault.designs}


@pytest.mark.parametrize(
    ("steps", "servers", "design"),
    [
        pytest.param(steps, servers, design, id=f"{name}-{design}", marks=marks_of(name, design))
        for name, steps, servers, designs in GROUPS
        for design in designs
    ],
)
def test_group_comes_through_injected_faults(
    steps: tuple[Step, ...], servers: int, design: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = scenario_of(steps, servers)
    monkeypatch.setattr(catalogue, "CATALOGUE", MappingProxyType({**catalogue.CATALOGUE, "mine": mine}))
    with RunProgress(1, quiet=True) as progress:
        experiments = Experiments(
            root=tmp_path, name="test", command=["pytest"], zookeeper="embedded", progress=progress
        )
        finished = experiments.perform(plan(["mine"], [design], {"seed": 5}))
    (outcome,) = finished.outcomes
    assert (outcome.outcome, outcome.error) == ("complete", "")
    (run_dir,) = finished.run_dirs
    events = read_trace(run_dir / "trace" / "runner.jsonl").events
    begun = [event["fault"] for event in events if event["kind"] == "fault_started"]
    assert begun == [step.fault for step in steps if isinstance(step, Inject)]
    stay = {step.fault for step in steps if isinstance(step, Inject) and FAULTS[step.fault].stays}
    ended = [event["fault"] for event in events if event["kind"] == "fault_ended"]
    assert set(begun) - stay <= set(ended) <= set(begun)
    judgement = judge_folder(run_dir)
    assert judgement.outcome is Outcome.HELD, judgement.in_words()
