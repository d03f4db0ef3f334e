"""Refuses runs that cannot work before anything starts, and names the remedy.

Otherwise they would wait for their time limit. Each rule checks one run: scenario, design, parameters and settings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from comparison.consumers import CONSUMERS, unconnected
from comparison.scenarios.plan.applicability import step_complaints
from comparison.scenarios.plan.configuration import OF_A_STEP
from comparison.scenarios.plan.configuration import check as check_settings
from comparison.scenarios.plan.faults import FAULTS, check
from comparison.scenarios.plan.presets import ZOOKEEPER_SESSION_MS
from comparison.scenarios.plan.sequence import objections
from comparison.scenarios.plan.step import pattern_problem
from comparison.scenarios.plan.step_names import name_of
from comparison.scenarios.plan.vocabulary import Heal, Inject
from kernel.broker.settings.configuration import BrokerConfig
from kernel.designs import DESIGNS
from kernel.errors import ConfigurationError, SeveralErrors
from kernel.java_regex import compiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from comparison.scenarios.plan.configuration import Configuration
    from comparison.scenarios.plan.parameters import Parameters
    from comparison.scenarios.plan.scenario import Scenario

#: Targets that are different members each time if they stay away.
_ANY = ("group", "owner")
#: A run waits up to a minute for every partition to be delivered and committed; with less load it would time out.
SECONDS_A_RECORD_MAX = 10


class Case(NamedTuple):
    """One requested run."""

    scenario: Scenario
    design: str
    parameters: Parameters
    made: Configuration


def require_feasible(*cases: Case) -> None:
    """Raises `ConfigurationError` with the first reason why each of these runs cannot work, and the remedy."""
    designs: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for case in cases:
        if reason := next((reason for rule in RULES for reason in rule(case)), ""):
            designs[case.scenario.name, reason][case.design] = None
    texts = [f"{scenario} in {', '.join(of_one)}: {reason}" for (scenario, reason), of_one in designs.items()]
    if texts:
        raise SeveralErrors(texts)


def _replicas(case: Case) -> Iterator[str]:
    brokers = case.parameters.brokers
    for name in ("default.replication.factor", "offsets.topic.replication.factor"):
        if (factor := int(case.made.broker[name])) > brokers:
            yield f"{name}={factor}, but there are {brokers} brokers. Use --brokers {factor}, or leave the setting out"


def _every_member_owns(case: Case) -> Iterator[str]:
    """The member to be cut off is chosen before any member starts, so each must own something."""
    parameters = case.parameters
    needed = (parameters.members - 1) * parameters.streams + 1
    if case.scenario.zookeeper_servers > 1 and parameters.partitions < needed:
        yield (
            f"the member to be cut off must own a partition, but {parameters.members} members share "
            f"{parameters.partitions} partitions. Use --partitions {needed} or more, or fewer members"
        )


def _load(case: Case) -> Iterator[str]:
    parameters = case.parameters
    partitions = parameters.partitions * parameters.topics
    least = max(1, -(-partitions // SECONDS_A_RECORD_MAX))
    if case.scenario.zookeeper_servers > 1 or case.scenario.needs_steady_load:
        least = max(least, partitions)
    if parameters.rate < least:
        yield (
            f"at {parameters.rate} records per second, {partitions} partitions get too few records for a verdict. "
            f"Use --rate {least} or more, or fewer partitions"
        )


def _sessions(case: Case) -> Iterator[str]:
    design, made = DESIGNS[case.design], case.made
    least, most = ZOOKEEPER_SESSION_MS
    if design.zookeeper_sessions:
        if not least <= made.session_ms <= most:
            yield (f"zookeeper.session.timeout.ms={made.session_ms}: the run's ZooKeeper allows {least} to {most} ms")
        return
    kind = "group.consumer" if design.reconciles else "group"
    bounds = tuple(f"{kind}.{end}.session.timeout.ms" for end in ("min", "max"))
    least, most = (_of_brokers(made, name) for name in bounds)
    if not least <= made.session_ms <= most:
        name = CONSUMERS[case.design].session_setting
        yield f"{name}={made.session_ms}: the brokers allow {least} to {most} ms ({', '.join(bounds)})"


def _broker_session(case: Case) -> Iterator[str]:
    least, most = ZOOKEEPER_SESSION_MS
    if not least <= case.made.broker_session_ms <= most:
        yield (
            f"zookeeper.session.timeout.ms={case.made.broker_session_ms} of the brokers: the run's ZooKeeper allows "
            f"{least} to {most} ms"
        )


def _group_size(case: Case) -> Iterator[str]:
    """The member to be cut off is chosen before any member starts, so none may be refused."""
    design, parameters = DESIGNS[case.design], case.parameters
    name = "group.consumer.max.size" if design.reconciles else "group.max.size"
    most = _of_brokers(case.made, name)
    members = parameters.members * parameters.streams
    if case.scenario.zookeeper_servers > 1 and design.coordinator and most <= members:
        yield f"{name}={most}: the group has {members} members, of which the one to be cut off may not be refused"


def _of_brokers(made: Configuration, name: str) -> int:
    return BrokerConfig.from_settings(made.broker)[0].number(name)


def _automatic_commits(case: Case) -> Iterator[str]:
    for name in ("enable.auto.commit", "auto.commit.enable"):
        if case.made.member.get(name, "true").strip().lower() == "false":
            yield (
                f"{name}=false: a run is judged by its members' automatic commits. Set auto.commit.interval.ms instead"
            )


def _assignor(case: Case) -> Iterator[str]:
    """The coordinator refuses a member that prefers an assignor that it does not have."""
    preferred = case.made.member.get("group.remote.assignor")
    if preferred and DESIGNS[case.design].reconciles:
        offered = BrokerConfig.from_settings(case.made.broker)[0].words("group.consumer.assignors")
        if preferred not in offered:
            yield (
                f"group.remote.assignor={preferred}: the brokers have only {' and '.join(offered)} "
                "(group.consumer.assignors). Use what they have, or leave it out"
            )


def _parts_start(case: Case) -> Iterator[str]:
    """Contradicting settings are refused here, not by the process that would be started with them."""
    try:
        CONSUMERS[case.design].config(unconnected(case.made.member, instance="m1-0"))
        BrokerConfig.from_settings(case.made.broker)
    except ConfigurationError as error:
        yield str(error)


def _step_settings(case: Case) -> Iterator[str]:
    """Settings of the members of one step reach them as they are: nothing else refuses them before they start."""
    design = case.design  # of the members at that time
    for number, step in enumerate(case.scenario.steps, start=1):
        design = step.design_after(design, case.design)
        settings = getattr(step, "settings", None) or {}
        if not isinstance(settings, Mapping):
            continue  # a user's step may mean something else by it
        try:
            # A run is judged by the offsets of its own design, so members of another one may keep theirs elsewhere.
            free = frozenset[str]() if design == case.design else OF_A_STEP
            check_settings({name: value for name, value in settings.items() if name not in free})
        except ConfigurationError as error:
            yield f"step {number} ({name_of(type(step))}): {error}"
        for complaint in step_complaints(design, settings):
            yield f"step {number} ({name_of(type(step))}): {complaint}. Leave it out, or leave the design out"


def _faults(case: Case) -> Iterator[str]:
    """Each fault fits its target and the design; no target has it twice, and none is healed that was not injected."""
    present: list[Inject] = []
    for step in case.scenario.steps:
        if isinstance(step, Inject):
            try:
                check(
                    step.fault,
                    step.target,
                    step.parameters,
                    design=case.design,
                    servers=case.scenario.zookeeper_servers,
                )
            except ConfigurationError as error:
                yield str(error)
                return
            fault = FAULTS[step.fault]
            for name, value in fault.needs.get(case.design, {}).items():
                if case.made.member.get(name) != value:
                    yield f"{step.fault} needs -c {name}={value}"
            again = any((other.fault, other.target) == (step.fault, step.target) for other in present)
            if again and not (fault.stays and step.target in _ANY):
                yield f"{step.fault} is already in effect on {step.target!r}; heal it first"
            if fault.heals:
                present.append(step)
        elif isinstance(step, Heal):
            healed = [each for each in present if step.heals(each.fault, each.target)]
            if not healed:
                yield _nothing_to_heal(step)
            present = [each for each in present if each not in healed]


def _names_of_their_own(case: Case) -> Iterator[str]:
    scenario, design = case.scenario, DESIGNS[case.design]
    if scenario.named_members and CONSUMERS[case.design].name_setting not in CONSUMERS[case.design].settings:
        yield "named_members is true, and its members cannot have a name. Leave the design out"
    duplicated = any(step.needs_names for step in scenario.steps)
    if duplicated and not (design.static_membership or scenario.named_members):
        yield (
            "its members have no group.instance.id, so none can be duplicated. Choose static, or set "
            "named_members = true in the scenario's file"
        )


def _pattern(case: Case) -> Iterator[str]:
    pattern, topics = case.scenario.pattern, case.parameters.topic_names
    if pattern:
        problems = list(pattern_problem(case.design, pattern))
        yield from problems
        if not problems and not any(compiled(pattern).fullmatch(topic) for topic in topics):
            yield (
                f"pattern {pattern!r} matches none of the topics at the start ({', '.join(topics)}), so nothing would "
                "be delivered. Let it match one"
            )


def _of_the_design(case: Case) -> Iterator[str]:
    """What each step needs that not every design has."""
    for step in case.scenario.steps:
        yield from step.complaints_in(case.design)


def _sequence(case: Case) -> Iterator[str]:
    """The steps can follow each other, also in a group of the size that was asked for."""
    for number, why in objections(case.scenario, case.parameters):
        yield f"step {number + 1} ({name_of(type(case.scenario.steps[number]))}): {why}"


def _nothing_to_heal(step: Heal) -> str:
    where = f" on {step.target}" if step.target else ""
    return f"nothing to heal: {f'{step.fault} is not' if step.fault else 'no fault is'} in effect{where}"


RULES: tuple[Callable[[Case], Iterator[str]], ...] = (
    _parts_start,
    _assignor,
    _replicas,
    _every_member_owns,
    _load,
    _sessions,
    _broker_session,
    _group_size,
    _automatic_commits,
    _step_settings,
    _faults,
    _names_of_their_own,
    _sequence,
    _pattern,
    _of_the_design,
)
