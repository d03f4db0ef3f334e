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
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, Settle, Steady
from comparison.scenarios.run.experiments import Experiments, plan
from comparison.screen.progress import RunProgress
from kernel.designs import DESIGN_NAMES, EAGER, SERVER, ZOOKEEPER
from kernel.trace.reader import read_trace

pytestmark = pytest.mark.faults

LINKS: tuple[Step, ...] = (
    Inject("delay", "follower->ensemble", {"by_ms": 700, "ways": "in"}),
    Hold(1000),
    Heal(),
    Inject("cut", "owner->authority", {"ways": "in"}),
    Hold(500),
    Heal(),
    Inject("half-open", "owner->authority"),
    Hold(500),
    Heal(),
    Inject("close", "owner->data"),
    Hold(500),
    Heal(),
    Inject("growing-delay", "coordinator->zookeeper", {"to_ms": 300, "within_ms": 600}),
    Hold(800),
)
PROCESSES: tuple[Step, ...] = (
    Inject("kill", "leader"),
    Hold(1500),
    Heal(),
    Inject("freeze", "coordinator"),
    Hold(500),
    Heal(),
    Inject("restart", "broker-2"),
    Inject("disconnect", "leader->network"),
    Hold(1500),
    Heal(),
    Inject("quorum-loss", "ensemble"),
    Hold(1000),
    Heal(),
    Inject("kill", "owner"),
    Hold(1000),
    Heal(),
    Inject("disk-full", "broker-1"),
    Hold(1000),
    Inject("clock-step", "owner", {"by_ms": -3_600_000}),
    Inject("clock-step", "coordinator", {"by_ms": 86_400_000}),
    Hold(1500),
    Heal(),
    Inject("slow-start", "m2", {"away_ms": 300}),
    Inject("flap", "m3", {"times": 2, "every_ms": 300}),
)
SESSIONS: tuple[Step, ...] = (
    Inject("expire", "owner"),
    Hold(1000),  # until the member has noticed: before that, the group looks settled
    Settle(),
    Inject("expire", "members"),
    Hold(1000),
    Settle(),
)
OWNER_ZNODES: tuple[Step, ...] = (Inject("set-data", "partition-0"), Hold(500))
APPLICATIONS: tuple[Step, ...] = (
    Inject("stuck-record", "owner"),
    Hold(500),
    Heal(),
    Inject("slow-record", "owner"),
    Inject("slow", "m1"),
    Hold(500),
)
MEMBERSHIP: tuple[Step, ...] = (
    Inject("join", "group"),
    Settle(),
    Inject("listener-exception", "m2"),
    Inject("leave", "m1"),
    Settle(),
    Inject("unsubscribe", "owner"),
    Settle(),
    Heal("unsubscribe"),
    Inject("flap", "m3", {"times": 2, "every_ms": 300, "by": "leave"}),
    Heal(),
    Inject("rolling-restart", "members", {"away_ms": 300, "every_ms": 500}),
)

#: What is injected together, into how many ZooKeeper servers, in which designs.
GROUPS: tuple[tuple[str, tuple[Step, ...], int, tuple[str, ...]], ...] = (
    ("links", LINKS, 3, DESIGN_NAMES),
    ("processes", PROCESSES, 3, DESIGN_NAMES),
    ("sessions", SESSIONS, 1, (ZOOKEEPER, SERVER)),
    ("owner-znodes", OWNER_ZNODES, 1, (ZOOKEEPER,)),
    ("applications", APPLICATIONS, 1, DESIGN_NAMES),
    ("membership", MEMBERSHIP, 1, DESIGN_NAMES),
)


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
        pytest.param(steps, servers, design, id=f"{name}-{design}", marks=mark)
        for name, steps, servers, designs in GROUPS
        for design in designs
        for mark in [pytest.mark.catalogue if design in (ZOOKEEPER, EAGER) else pytest.mark.long]
    ],
)
def test_group_comes_through_injected_faults(
    steps: tuple[Step, ...], servers: int, design: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Scenario(
        name="mine",
        symptom="?",
        look_for=("!",),
        steps=(Form(), Steady(), *steps),
        defaults=Parameters(time_limit_s=240),
        settings={"rebalance.listener.in.attempt": "true"},
        zookeeper_servers=servers,
        brokers_min=2,
    )
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
