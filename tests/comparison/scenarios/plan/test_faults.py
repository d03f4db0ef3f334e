"""The table of faults: targets, parameters with their bounds, and which design has which fault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from comparison.pipeline.silver.windows import TRACED_AS_CHANGES
from comparison.scenarios.plan.configuration import configuration
from comparison.scenarios.plan.faults import FAULTS, Choice, Number, check, fault_named
from comparison.scenarios.plan.feasibility import Case, require_feasible
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.targets import TargetKind, kind_of
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject
from comparison.scenarios.run.injections import PERFORMERS
from kernel.designs import DESIGN_NAMES
from kernel.errors import ConfigurationError

ONE_OF_EACH = {
    TargetKind.MEMBER: ("owner", "m1", "m12"),
    TargetKind.MEMBERS: ("members",),
    TargetKind.GROUP: ("group",),
    TargetKind.BROKER: ("coordinator", "broker-1"),
    TargetKind.SERVER: ("leader", "follower", "zookeeper-3"),
    TargetKind.ENSEMBLE: ("ensemble",),
    TargetKind.PARTITION: ("partition-0",),
    TargetKind.MEMBER_AUTHORITY: ("owner->authority", "m2->authority"),
    TargetKind.MEMBER_DATA: ("m1->data",),
    TargetKind.BROKER_ZOOKEEPER: ("coordinator->zookeeper", "broker-2->zookeeper"),
    TargetKind.SERVERS: ("follower->ensemble", "leader->ensemble", "zookeeper-1->ensemble"),
    TargetKind.NETWORK: ("follower->network", "leader->network", "zookeeper-1->network"),
}


def composed(
    *steps: Step, servers: int = 3, design: str = "zookeeper", settings: Mapping[str, str] | None = None
) -> None:
    scenario = Scenario(name="mine", symptom="?", look_for=("!",), steps=(Form(), *steps), zookeeper_servers=servers)
    parameters = Parameters(settings=settings or {})
    require_feasible(Case(scenario, design, parameters, configuration(design, parameters)))


def test_every_fault_has_its_own_performer() -> None:
    assert list(PERFORMERS) == list(FAULTS)
    assert len(set(PERFORMERS.values())) == len(FAULTS)


@pytest.mark.parametrize("kind", TargetKind)
def test_every_kind_of_target_is_recognised_as_written(kind: TargetKind) -> None:
    assert {kind_of(target) for target in ONE_OF_EACH[kind]} == {kind}
    assert any(kind in fault.targets for fault in FAULTS.values())


@pytest.mark.parametrize("target", ["", "m0", "owner ", "broker", "zookeeper-4", "m1->", "m1->ensemble", "data->m1"])
def test_what_names_no_target_is_refused_with_those_there_are(target: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a fault target. Use a member: owner"):
        kind_of(target)


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_says_what_it_does_and_its_defaults_are_within_bounds(name: str) -> None:
    fault = FAULTS[name]
    assert fault.does.endswith(".")
    assert fault.heals == "" or fault.heals.endswith(".")
    assert set(fault.designs) <= set(DESIGN_NAMES)
    assert fault.values({}) == {each.name: each.default for each in fault.parameters}
    for parameter in fault.parameters:
        if isinstance(parameter, Number):
            for value in (parameter.least - 1, parameter.most + 1, "1", True):
                assert parameter.complaint(value)
            assert not parameter.complaint(parameter.least) + parameter.complaint(parameter.most)
        else:
            assert isinstance(parameter, Choice)
            assert parameter.complaint("nonesuch")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("nonesuch", "owner", {}), "unknown fault 'nonesuch'. `rebalance-lab scenarios --steps` lists all"),
        (("kill", "owner->data", {}), "kill cannot be injected into 'owner->data'. Use a member: owner"),
        (("delay", "owner->data", {"by_ms": 0}), "delay: by_ms=0: must be a whole number from 1 to 60000"),
        (("delay", "owner->data", {"ways": "up"}), "delay: ways='up': must be one of both, out, in"),
        (("delay", "owner->data", {"ms": 5}), "delay has no parameter 'ms'. It has by_ms, ways"),
        (("kill", "owner", {"ms": 5}), "kill has no parameter 'ms'. It has none"),
        (("set-data", "partition-0", {}), "set-data does not exist in eager. Choose zookeeper"),
        (("expire", "members", {}), "expire does not exist in eager. Choose zookeeper or server"),
        (("quorum-loss", "ensemble", {}), "needs an ensemble of three ZooKeeper servers"),
        (("kill", "follower", {}), "needs an ensemble of three ZooKeeper servers"),
        (("disconnect", "follower->network", {}), "needs an ensemble of three ZooKeeper servers"),
        (("disconnect", "leader->ensemble", {}), "disconnect cannot be injected .* all links of a ZooKeeper server"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(given: tuple[str, str, dict[str, Any]], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        check(*given, design="eager", servers=1)


def test_a_fault_that_fits_is_accepted() -> None:
    check("kill", "leader", {}, design="eager", servers=1)
    check("delay", "follower->ensemble", {"by_ms": 700, "ways": "in"}, design="zookeeper", servers=3)
    assert fault_named("flap").values({"times": 2}) == {"times": 2, "every_ms": 500, "by": "kill"}


def test_what_changes_the_group_is_measured_as_a_change_and_not_also_as_a_fault() -> None:
    assert {name for name, fault in FAULTS.items() if fault.is_change} == TRACED_AS_CHANGES
    assert {name for name, fault in FAULTS.items() if fault.stays} == {"join", "leave", "unsubscribe"}


def test_a_listener_can_only_fail_where_one_is_called() -> None:
    with pytest.raises(ConfigurationError, match=r"listener-exception needs -c rebalance\.listener\.in\.attempt=true"):
        composed(Inject("listener-exception", "owner"))
    composed(Inject("listener-exception", "owner"), design="eager")
    composed(Inject("listener-exception", "owner"), settings={"rebalance.listener.in.attempt": "true"})


def test_several_members_may_join_and_leave_one_after_the_other() -> None:
    composed(Inject("join", "group"), Inject("join", "group"), Inject("leave", "owner"), Inject("leave", "owner"))
    with pytest.raises(ConfigurationError, match="leave is already in effect on 'm1'"):
        composed(Inject("leave", "m1"), Inject("leave", "m1"))


@pytest.mark.parametrize(
    ("steps", "complaint"),
    [
        ((Inject("kill", "nobody"),), "mine in zookeeper: 'nobody' is not a fault target"),
        ((Heal(),), "nothing to heal: no fault is in effect"),
        ((Inject("restart", "owner"), Heal("restart")), "nothing to heal: restart is not in effect$"),
        ((Inject("freeze", "m1"), Inject("freeze", "m1")), "freeze is already in effect on 'm1'; heal it first"),
    ],
)
def test_steps_that_contradict_each_other_are_refused(steps: tuple[Step, ...], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        composed(*steps)


def test_faults_that_follow_each_other_or_come_together_are_accepted() -> None:
    composed(Inject("delay", "m1->authority"), Inject("cut", "m2->authority"), Inject("cut", "coordinator->zookeeper"))
    composed(Inject("cut", "m1->data"), Hold(1), Heal(), Inject("delay", "m1->data"))
    composed(Inject("cut", "m1->data"), Inject("delay", "follower->ensemble"), Heal("cut", "m1->data"), Heal())
