"""The catalogue of scenarios, as a table: the symptom that users see, the steps, what to look for.

A scenario runs real processes, and a producer that numbers its records. Its steps are a literal sequence, which
`comparison.scenarios.run.steps` performs in order. A step ends when a condition on the members' events holds, never
after a guessed time. After the last step every run heals the remaining faults, waits until all records are delivered,
commits, reads the final offsets and stops.

The faults, as named in the trace:

- *kill*: SIGKILL to the process. The operating system closes its sockets.
- *freeze*: SIGSTOP for longer than the session timeout, then SIGCONT. Commits are requested just before, and wait in
  the process's input while it is frozen, so that the first thing it does afterwards is to commit.
- *cut*: bytes between two ends are held until the heal, as in a network partition. Neither end gets an error.

`comparison.scenarios.plan.faults` has the others, of which a scenario can be composed.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.admitted import admitted
from comparison.scenarios.plan.catalogue_application import APPLICATIONS
from comparison.scenarios.plan.catalogue_brokers import BROKERS
from comparison.scenarios.plan.catalogue_changes import CHANGES
from comparison.scenarios.plan.catalogue_membership import MEMBERSHIP
from comparison.scenarios.plan.catalogue_refusals import REFUSALS
from comparison.scenarios.plan.catalogue_splits import SPLITS
from comparison.scenarios.plan.catalogue_topics import TOPICS
from comparison.scenarios.plan.catalogue_zookeeper import OUTAGES
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import (
    CutAuthority,
    CutEnsemble,
    Form,
    FreezeOwner,
    JoinOne,
    KillOwner,
    LeaveOne,
    Steady,
    Undisturbed,
)
from kernel.designs import DESIGN_NAMES, EAGER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from comparison.scenarios.plan.step import Step


def herd_steps(sizes: tuple[int, ...]) -> tuple[Step, ...]:
    """Grow the group to each size, leave it alone for a while, and let one more member join."""
    steps: list[Step] = []
    for round_, size in enumerate(sizes, start=1):
        steps += [Form(size, "form" if round_ == 1 else "grow"), Undisturbed(), JoinOne(round_)]
    return tuple(steps)


HERD_SIZES = (2, 5, 10, 20)

#: Faults, and changes that every group sees. A comparison shows them first.
FAULTS = (
    Scenario(
        name="herd",
        symptom="Adding one consumer wakes all the others: why does one join cost every member?",
        look_for=(
            "notifications: N-1 per join in zookeeper; none to members of the other designs",
            "reads per join: N^2 + N(T+3B+9) + P + T in zookeeper (the linear terms dominate while N is small)",
            "requests when one member joins a group of N: N+2 JoinGroup and N+1 SyncGroup in eager, one JoinGroup less "
            "in static, two rounds instead of one in cooperative and delayed; none in consumer, whose heartbeats carry "
            "each member's assignment",
            "how long an uninvolved client of the same ZooKeeper waits for its get and set, before each join and "
            "during it",
        ),
        checks=("kept partitions never stop", "counts", "server's counters"),
        steps=herd_steps(HERD_SIZES),
        defaults=Parameters(members=HERD_SIZES[0], partitions=24, rate=100, time_limit_s=60),
        budget_s=25,
        members_per_process=4,
        references=("KAFKA-265", "KAFKA-364", "KAFKA-167"),
    ),
    Scenario(
        name="split-brain",
        symptom="Two consumers own my partition: the old owner was cut off from the authority, not from its data.",
        look_for=(
            "partition-seconds in which two members deliver: in zookeeper about the cut minus the takeover; in eager "
            "none (a race that it wins narrowly)",
            "offset writes accepted from a member that is no longer the owner, and committed offsets that move back: "
            "some in zookeeper, after the heal, in the new session; none in eager, which refuses them all",
            "server: the member is not notified either and keeps delivering, but its commits are refused",
            "consumer: nothing fences its deliveries: it has no session timer of its own, so it goes on for the whole "
            "cut beside the new owner. Its commits are refused",
        ),
        checks=(
            "old commits refused",
            "zombie commits after a cut",
            "no stale write",
            "no offset moved back if fenced",
            "two members deliver during a cut",
            "two members deliver while cut off from the coordinator",
            "not promised: two members never deliver",
        ),
        steps=(Form(), Steady(), CutAuthority()),
        defaults=Parameters(time_limit_s=60),
        budget_s=25,
        zookeeper_servers=3,
        members_min=2,
        brokers_min=2,
        references=("ZOOKEEPER programmer's guide, consistency guarantees",),
    ),
    Scenario(
        name="split-brain-ensemble",
        symptom="One ZooKeeper server was cut off from the other two: who owns what in the meantime?",
        look_for=(
            "zookeeper: the same run as split-brain, where the owner uses the server that is cut off",
            "the other designs: the coordinating broker uses the server that is cut off; the group moves to the other "
            "broker, and the old coordinator cannot acknowledge anything",
        ),
        checks=(
            "old coordinator silenced",
            "zombie commits after a cut",
            "no stale write",
            "no offset moved back if fenced",
            "two members deliver during a cut",
            "not promised: two members never deliver",
        ),
        steps=(Form(), Steady(), CutEnsemble()),
        defaults=Parameters(time_limit_s=60),
        budget_s=25,
        zookeeper_servers=3,
        members_min=2,
        brokers_min=2,
        same_run_as=MappingProxyType({ZOOKEEPER: "split-brain"}),
    ),
    Scenario(
        name="crash",
        symptom="A consumer died: how long do its partitions stop, and are records lost or delivered twice?",
        look_for=(
            "the timers decide: the group settles about one session timeout after the kill; in delayed, plus its delay",
            "duplicates: the records that were delivered but not yet committed",
            "no lost records, except perhaps the one being processed in zookeeper: the 0.8 consumer's timer commits "
            "what was delivered, not what was processed",
        ),
        checks=("no offset moved back", "kept partitions never stop", "delay honoured", "counts"),
        members_min=2,
        steps=(Form(), Steady(), KillOwner()),
    ),
    Scenario(
        name="pause",
        symptom="After a long garbage collection pause, committed offsets have moved back: the zombie commit.",
        look_for=(
            "zookeeper: offset writes are accepted from the replaced member, in its new session",
            "eager: every commit with the old generation or member id is refused. A client that notices drops its own "
            "commits, so the runner sends a late one in the member's name while it is frozen",
            "consumer: refused by epoch or member id. The coordinator also refuses a healthy member whose epoch rose "
            "while its commit was on the way; that is no zombie, and the member commits again",
        ),
        checks=(
            "old commits refused",
            "zombie commits after a pause",
            "two members deliver after a pause",
            "no stale write",
            "no offset moved back if fenced",
            "not promised: two members never deliver",
        ),
        members_min=2,
        needs_steady_load=True,
        steps=(Form(), Steady(), FreezeOwner()),
        references=("KIP-62", "KAFKA-2431"),
    ),
    Scenario(
        name="join",
        symptom="I added one consumer: which partitions stop, which move, and for how long?",
        look_for=(
            "stopped and moved partitions: zookeeper, server, eager and static stop all partitions; cooperative, "
            "delayed and consumer stop only those that move",
            "rebalances: one, two in cooperative and delayed; one epoch in consumer, which each member reaches by its "
            "own heartbeats, within two or three of their intervals",
        ),
        checks=("kept partitions never stop", "counts", "server's counters"),
        steps=(Form(), Steady(), JoinOne()),
    ),
    Scenario(
        name="leave",
        symptom="I shut one consumer down cleanly: how soon do the others take over its partitions?",
        look_for=(
            "no wait for a session timeout, except in static, whose members do not leave: they may come back",
            "delayed waits for its delay",
        ),
        checks=("kept partitions never stop", "delay honoured", "counts"),
        members_min=2,
        steps=(Form(), Steady(), LeaveOne()),
    ),
    Scenario(
        name="mass-start",
        symptom="I started all consumers at once, and the group did not settle.",
        look_for=(
            "attempts and conflicts in zookeeper: each conflict costs a whole backoff",
            "rounds in eager: a member that is too late for the first one causes a second one",
            "epochs in consumer: one for each member that joins, but nobody waits for the others",
        ),
        checks=("not promised: attempts of a mass start",),
        # Original consumers in one JVM need 44 to 65 ms until 20 have registered, with a JVM each far longer. At 200 ms
        # ours make as many attempts as the originals do; if all registered at once, there would be no herd.
        steps=(Form(change="mass-start", spread_ms=200), Steady()),
        defaults=Parameters(members=8),
        references=("SOHU-Co/kafka-node issue 341",),
    ),
)

#: In the order in which a comparison shows them.
CATALOGUE: Mapping[str, Scenario] = MappingProxyType(
    {
        scenario.name: scenario
        for scenario in (
            *(*FAULTS, *CHANGES, *BROKERS, *APPLICATIONS, *TOPICS, *REFUSALS, *SPLITS, *MEMBERSHIP, *OUTAGES),
        )
    }
)

#: Where all of them are listed.
LIST = "`rebalance-lab scenarios` lists all"

#: What `compare` runs by default.
COMPARED = tuple(scenario.name for scenario in FAULTS)

#: What `compare --smoke` runs.
SMOKE = ("herd", "crash")

#: The designs that are compared by default: the first one, and the one that replaced it.
COMPARED_DESIGNS = (ZOOKEEPER, EAGER)


def scenario_named(name: str) -> Scenario:
    """A scenario of the catalogue, or of a file that was read. Raises `ConfigurationError` with their names."""
    known = {**{each: file.scenario for each, file in admitted().items()}, **CATALOGUE}
    scenario = known.get(name)
    if scenario is None:
        raise ConfigurationError(unknown("scenario", name, CATALOGUE, hint=f"{LIST}; a file ends in .toml"))
    return scenario


def judged_by(scenario: Scenario) -> tuple[str, ...]:
    """The checks that a scenario names, and those of the one that it is like."""
    like = judged_by(CATALOGUE[scenario.like]) if scenario.like else ()
    return tuple(dict.fromkeys((*like, *scenario.checks)))


def counts_predicted(scenario: Scenario) -> bool:
    """Whether the formulas of counts hold for a scenario, and for the one that it is like."""
    return scenario.counts_predicted and (not scenario.like or counts_predicted(CATALOGUE[scenario.like]))


def naming(is_named: Callable[[Collection[str]], bool]) -> list[str]:
    """The scenarios of the catalogue whose rows name a check, without variants of them."""
    named = {each.name for each in CATALOGUE.values() if is_named(each.checks)}
    return [name for name in CATALOGUE if name in named and CATALOGUE[name].variant_of not in named]


def designs_for(scenarios: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """As `designs_named`. If none are named and no default is applicable, all designs that are."""
    designs = designs_named(names)
    applicable = [d for d in DESIGN_NAMES if any(d not in scenario_named(name).not_applicable for name in scenarios)]
    if not names and not set(designs) & set(applicable):
        return tuple(applicable)
    return designs


def designs_named(names: Sequence[str]) -> tuple[str, ...]:
    """The designs of `--design` in their order, each once. `all` means every design, no names the defaults."""
    asked = {part for name in names for part in name.split(",") if part}
    if strange := sorted(asked - {*DESIGN_NAMES, "all"}):
        raise ConfigurationError(unknown("design", strange[0], (*DESIGN_NAMES, "all")))
    if not asked:
        return COMPARED_DESIGNS
    return DESIGN_NAMES if "all" in asked else tuple(design for design in DESIGN_NAMES if design in asked)
