"""The experiments, as a table that can be read and checked: what a user saw, what is done, what to look for.

Each scenario is real processes under a producer that numbers its records. Its plan is a literal sequence of
steps; `comparison.scenarios.run.steps` performs them one after the other, each ending when a condition holds (as
told by the members' own events), never after a guessed time. After the last step every run does the same:
heal what is still broken, drain what was produced, commit, read the final offsets, stop.

Vocabulary of the faults, as in the trace:

- *kill*: SIGKILL to the process; its sessions and sockets end as the operating system ends them.
- *freeze*: SIGSTOP for longer than the session timeout, then SIGCONT; commits are asked for just before and
  wait in the process's input while it is frozen, so that the first thing it does afterwards is to commit.
- *cut*: bytes between two ends are held and delivered at the heal, as TCP does; neither end is told.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.catalogue_changes import CHANGES
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
)
from kernel.designs import DESIGN_NAMES, EAGER, ZOOKEEPER
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.scenarios.plan.vocabulary import Step


def herd_steps(sizes: tuple[int, ...]) -> tuple[Step, ...]:
    """Grow the group to each size, and let one more join there."""
    steps: list[Step] = []
    for round_, size in enumerate(sizes, start=1):
        steps += [Form(size, "form" if round_ == 1 else "grow"), JoinOne(round_)]
    return tuple(steps)


HERD_SIZES = (2, 5, 10, 20)

#: What goes wrong, and the changes that nobody can do without: the first thing that a comparison shows.
FAULTS = (
    Scenario(
        name="herd",
        symptom="One new consumer wakes everybody: why does adding a member cost all the others?",
        look_for=(
            "notifications: N-1 for one join in zookeeper, none at a member of any other design",
            "reads of one join: N^2 + N(T+3B+9) + P + T in zookeeper (the linear terms rule while N is small)",
            "requests of one join into a group of N: N+2 JoinGroup and N+1 SyncGroup in eager, one JoinGroup less in "
            "static, twice as many rounds in cooperative and delayed",
        ),
        steps=herd_steps(HERD_SIZES),
        defaults=Parameters(members=HERD_SIZES[0], partitions=24, rate=100, time_limit_s=60),
        budget_s=20,
        members_per_process=4,
        references=("KAFKA-265", "KAFKA-364", "KAFKA-167"),
    ),
    Scenario(
        name="split-brain",
        symptom="Two consumers own my partition: the old owner was cut from what decides, not from its data.",
        look_for=(
            "partition-seconds in which two members deliver: zookeeper about the length of the cut less "
            "the takeover, eager none (a race it wins narrowly)",
            "offset writes accepted while the authority names another member, and committed offsets moved "
            "back: zookeeper some, after the heal, in the new session; eager none, all refused",
            "server: nothing tells the member either, and it goes on delivering, but its commits are refused",
        ),
        steps=(Form(), Steady(), CutAuthority()),
        defaults=Parameters(time_limit_s=60),
        budget_s=25,
        zookeeper_servers=3,
        members_min=2,
        brokers_min=2,
        references=("seed 003 §2.1", "ZOOKEEPER programmer's guide, consistency guarantees"),
    ),
    Scenario(
        name="split-brain-ensemble",
        symptom="One ZooKeeper server was cut off from the other two: who believes what meanwhile?",
        look_for=(
            "zookeeper: the same run as split-brain, whose owner uses the cut server",
            "the coordinator designs: the coordinating broker uses the cut server; the group moves to the other "
            "broker, and the old coordinator can acknowledge nothing",
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
        symptom="A consumer died: how long do its partitions stand still, and is anything lost or read twice?",
        look_for=(
            "the timers decide: the designs settle about a session timeout after the kill, delayed its delay later",
            "duplicates: what was delivered and not yet committed",
            "no lost record, but perhaps the one in hand in zookeeper: the 0.8 consumer commits by timer what "
            "it has handed out, not what was processed",
        ),
        members_min=2,
        steps=(Form(), Steady(), KillOwner()),
    ),
    Scenario(
        name="pause",
        symptom="A long garbage collection, and afterwards offsets have moved back: the zombie commit.",
        look_for=(
            "zookeeper: offset writes accepted from the member that had been replaced, in its new session",
            "eager: every commit with the old generation or member id refused; a client that notices drops its "
            "own, so one that was long on its way is sent in its name while it is frozen",
        ),
        members_min=2,
        needs_steady_load=True,
        steps=(Form(), Steady(), FreezeOwner()),
        references=("KIP-62", "KAFKA-2431"),
    ),
    Scenario(
        name="join",
        symptom="I added one consumer: which partitions stop, which move, for how long?",
        look_for=(
            "stopped partitions against moved ones: zookeeper, server, eager and static stop all of them, cooperative "
            "and delayed those that move",
        ),
        steps=(Form(), Steady(), JoinOne()),
    ),
    Scenario(
        name="leave",
        symptom="I stopped one consumer in order: how soon do the others go on with its partitions?",
        look_for=(
            "no session timeout to wait for, but in static: it does not leave, for it may come back",
            "delayed waits for it as long as its delay",
        ),
        members_min=2,
        steps=(Form(), Steady(), LeaveOne()),
    ),
    Scenario(
        name="mass-start",
        symptom="All consumers were started at once and the group would not settle.",
        look_for=(
            "attempts and conflicts in zookeeper: every conflict costs a whole backoff",
            "rounds in eager: who comes too late for the first one causes a second one",
        ),
        steps=(Form(change="mass-start"), Steady()),
        defaults=Parameters(members=8),
        references=("kafka-node issue 341",),
    ),
)

#: The order in which a comparison shows them: the product's reason first.
CATALOGUE: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in (*FAULTS, *CHANGES)})

#: What `compare` runs unless it is told otherwise.
COMPARED = tuple(scenario.name for scenario in FAULTS)

#: What `compare --smoke` runs.
SMOKE = ("herd", "crash")

#: The designs that are compared by default: the first one, and the one that replaced it.
COMPARED_DESIGNS = (ZOOKEEPER, EAGER)


def scenario_named(name: str) -> Scenario:
    """Raises `ConfigurationError` that lists the names there are."""
    scenario = CATALOGUE.get(name)
    if scenario is None:
        raise ConfigurationError(f"unknown scenario {name!r}: there are {', '.join(CATALOGUE)}")
    return scenario


def designs_for(scenarios: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """As `designs_named`; where none are named, and the two have no part in these scenarios, those that have."""
    designs = designs_named(names)
    applicable = [d for d in DESIGN_NAMES if any(d not in scenario_named(name).not_applicable for name in scenarios)]
    if not names and not set(designs) & set(applicable):
        return tuple(applicable)
    return designs


def designs_named(names: Sequence[str]) -> tuple[str, ...]:
    """The designs of `--design`, each once and in the catalogue's order; `all` is every one, none named are the two."""
    asked = {part for name in names for part in name.split(",") if part}
    unknown = asked - {*DESIGN_NAMES, "all"}
    if unknown:
        raise ConfigurationError(f"unknown design {sorted(unknown)[0]!r}: there are {', '.join(DESIGN_NAMES)}, or all")
    if not asked:
        return COMPARED_DESIGNS
    return DESIGN_NAMES if "all" in asked else tuple(design for design in DESIGN_NAMES if design in asked)
