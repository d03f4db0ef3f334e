"""The faults that a scenario can be composed of, as one table: what each does, to what, and with which parameters.

A step `Inject("delay", "follower->ensemble", {"by_ms": 700, "ways": "in"})` names a fault and a target; `check` refuses
what makes no sense before anything starts. `comparison.scenarios.run.injections` has what performs each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.targets import LINKS, PROCESSES, TargetKind, kind_of
from kernel.designs import COORDINATED, DESIGN_NAMES, SERVER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.suggestions import did_you_mean, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

Given = int | str
K = TargetKind
#: Targets that only an ensemble of three servers has.
_IN_AN_ENSEMBLE = (K.ENSEMBLE, K.SERVERS)


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number, whose name ends with its unit."""

    name: str
    default: int
    least: int
    most: int

    def complaint(self, value: Given) -> str:
        if isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most:
            return ""
        return f"{self.name}={value!r}: must be a whole number from {self.least} to {self.most}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some words."""

    name: str
    default: str
    words: tuple[str, ...]

    def complaint(self, value: Given) -> str:
        if value in self.words:
            return ""
        return f"{self.name}={value!r}: must be one of {', '.join(self.words)}{did_you_mean(str(value), self.words)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One row: a fault that can be injected, and healed unless it is over at once."""

    name: str
    area: str = "own"  #: what it is a fault of, as a heading
    does: str
    heals: str  #: what its heal does; '' if there is nothing to heal
    targets: tuple[TargetKind, ...]
    parameters: tuple[Number | Choice, ...] = ()
    designs: tuple[str, ...] = DESIGN_NAMES
    is_change: bool = False  #: it changes who is in the group, and is measured as a change
    stays: bool = False  #: if no step heals it, it is left as it is at the end: the group is whole without a heal
    #: Settings without which it cannot happen, by design.
    needs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def values(self, given: Mapping[str, Given]) -> dict[str, Given]:
        """Every parameter with its value. Raises `ConfigurationError` for an unknown or impossible one."""
        known = {each.name: each for each in self.parameters}
        for name, value in given.items():
            if name not in known:
                has = f"It has {', '.join(known)}" if known else "It has none: leave it out"
                raise ConfigurationError(
                    f"{self.name} has no parameter {name!r}{did_you_mean(name, known) or '.'} {has}"
                )
            if complaint := known[name].complaint(value):
                raise ConfigurationError(f"{self.name}: {complaint}")
        return {each.name: given.get(each.name, each.default) for each in self.parameters}


#: As seen from the end that is named first.
_WAYS = Choice("ways", "both", ("both", "out", "in"))
_AWAY = Number("away_ms", 1000, 0, 600_000)
_CALLBACK = Choice("callback", "any", ("any", "revoked", "assigned"))
#: 0.8 calls no listener, so this is Kafka 1.1's.
_LISTENER = MappingProxyType({ZOOKEEPER: MappingProxyType({"rebalance.listener.in.attempt": "true"})})
_LASTING_MS = 3_600_000
_YEARS_MS = 10 * 365 * 86_400_000

_ROWS = (
    Fault(
        name="kill",
        area="processes",
        does="Kills the process (SIGKILL); the operating system closes its sockets.",
        heals="Starts it again.",
        targets=PROCESSES,
        is_change=True,
    ),
    Fault(
        name="freeze",
        area="processes",
        does="Stops the process (SIGSTOP): its connections stay open, and nothing answers on them.",
        heals="Lets it go on (SIGCONT).",
        targets=PROCESSES,
    ),
    Fault(
        name="restart",
        area="processes",
        does="Shuts the process down cleanly, and starts it again after away_ms.",
        heals="",
        targets=PROCESSES,
        parameters=(_AWAY,),
    ),
    Fault(
        name="slow-start",
        area="processes",
        does="Kills the process; the one that takes its place needs away_ms until it joins.",
        heals="",
        targets=(K.MEMBER,),
        parameters=(_AWAY,),
    ),
    Fault(
        name="flap",
        area="processes",
        does="Ends the process and starts it again `times` times, by a kill or by leaving cleanly; each time it is "
        "down, and then up, for every_ms.",
        heals="",
        targets=(K.MEMBER,),
        parameters=(
            Number("times", 3, 1, 100),
            Number("every_ms", 500, 1, 60_000),
            Choice("by", "kill", ("kill", "leave")),
        ),
    ),
    Fault(
        name="join",
        area="membership",
        does="Lets `count` more join the group at once.",
        heals="They leave.",
        targets=(K.GROUP,),
        parameters=(Number("count", 1, 1, 100),),
        is_change=True,
        stays=True,
    ),
    Fault(
        name="leave",
        area="membership",
        does="The member leaves cleanly, and its process ends.",
        heals="A new process joins in its place.",
        targets=(K.MEMBER,),
        is_change=True,
        stays=True,
    ),
    Fault(
        name="unsubscribe",
        area="membership",
        does="The member unsubscribes, and its process goes on. In zookeeper, where a consumer keeps its subscription "
        "for life, the application shuts it down instead.",
        heals="It subscribes again; in zookeeper, the application creates another consumer.",
        targets=(K.MEMBER,),
        is_change=True,
        stays=True,
    ),
    Fault(
        name="rolling-restart",
        area="membership",
        does="Restarts the members one after the other: each leaves cleanly, its process ends, and a new one joins "
        "in its place away_ms later; the next one leaves after another every_ms.",
        heals="",
        targets=(K.MEMBERS,),
        parameters=(_AWAY, Number("every_ms", 2000, 0, 600_000)),
        is_change=True,
    ),
    Fault(
        name="cut",
        area="links",
        does="Holds all bytes of the link, or those of one direction; neither end gets an error.",
        heals="Delivers what was held.",
        targets=LINKS,
        parameters=(_WAYS,),
    ),
    Fault(
        name="delay",
        area="links",
        does="Delivers all bytes of the link, or those of one direction, by_ms later.",
        heals="Ends the delay.",
        targets=LINKS,
        parameters=(Number("by_ms", 500, 1, 60_000), _WAYS),
    ),
    Fault(
        name="growing-delay",
        area="links",
        does="Raises the link's delay to to_ms, in ten equal steps over within_ms.",
        heals="Ends the delay.",
        targets=LINKS,
        parameters=(Number("to_ms", 1000, 10, 60_000), Number("within_ms", 2000, 10, 600_000), _WAYS),
    ),
    Fault(
        name="half-open",
        area="links",
        does="Resets the link's connections at the far end only: what the near end sends is swallowed.",
        heals="Resets them at the near end as well.",
        targets=LINKS,
    ),
    Fault(
        name="close",
        area="links",
        does="Resets the link's connections, and refuses new ones.",
        heals="Lets connections be made again.",
        targets=LINKS,
    ),
    Fault(
        name="disconnect",
        area="links",
        does="Takes the server off its network: its clients' connections are reset and new ones refused, and what it "
        "and the other servers send each other is held. In a container, Docker disconnects it.",
        heals="Puts it back, at the same address.",
        targets=(K.NETWORK,),
    ),
    Fault(
        name="quorum-loss",
        area="ZooKeeper",
        does="Kills two of the three ZooKeeper servers, the leader among them.",
        heals="Starts both again.",
        targets=(K.ENSEMBLE,),
    ),
    Fault(
        name="disk-full",
        area="disk and clock",
        does="The broker's data file finds no room: SQLite refuses every write with `database or disk is full`, and "
        "reads go on. The process's other files, its trace among them, have room.",
        heals="There is room again.",
        targets=(K.BROKER,),
    ),
    Fault(
        name="clock-step",
        area="disk and clock",
        does="Sets the wall clock of the process ahead by by_ms, or back, as its Kafka code reads it: for the times of "
        "records, commits and registrations, retention and expiry. All timers read the monotonic clock.",
        heals="Sets it right again.",
        targets=(K.MEMBER, K.BROKER),
        parameters=(Number("by_ms", 3_600_000, -_YEARS_MS, _YEARS_MS),),
    ),
    Fault(
        name="expire",
        area="ZooKeeper",
        does="Ends the ZooKeeper session of the member, or of all: another client takes it over and closes it.",
        heals="",
        targets=(K.MEMBER, K.MEMBERS),
        designs=(ZOOKEEPER, SERVER),
    ),
    Fault(
        name="set-data",
        area="ZooKeeper",
        does="Writes another owner into the partition's owner znode, as by hand; the znode still belongs to the same "
        "session.",
        heals="",
        targets=(K.PARTITION,),
        designs=(ZOOKEEPER,),
    ),
    Fault(
        name="listener-exception",
        area="application",
        does="The application's rebalance listener raises an exception when it is called next, once. With a "
        "coordinator the rebalance goes on, and the application's poll raises it, as in Kafka since 2.4 (until then "
        "it was only logged); in zookeeper the attempt fails, as in Kafka 1.1, since 0.8 calls no listener.",
        heals="The listener works, even if it was not called.",
        targets=(K.MEMBER,),
        parameters=(_CALLBACK,),
        needs=_LISTENER,
    ),
    Fault(
        name="slow-listener",
        area="application",
        does="The application's rebalance listener takes for_ms when it is called next, once. Its member's part of the "
        "rebalance waits for it, and so does whoever waits for that.",
        heals="The listener returns at once, also from the call that it is in.",
        targets=(K.MEMBER,),
        parameters=(_CALLBACK, Number("for_ms", 3000, 1, _LASTING_MS)),
        needs=_LISTENER,
    ),
    Fault(
        name="late-commit",
        area="application",
        does="When the application's rebalance listener next hears that partitions go, once, it takes for_ms, and then "
        "commits what was delivered. A coordinator that has not waited so long refuses it.",
        heals="The listener goes on at once, and commits no more.",
        targets=(K.MEMBER,),
        parameters=(Number("for_ms", 7000, 1, _LASTING_MS),),
        needs=_LISTENER,
    ),
    Fault(
        name="paused-partitions",
        area="application",
        does="The application pauses all partitions that it owns: it goes on polling, and gets nothing from them. What "
        "a rebalance gives it later is not paused. Not in zookeeper: an application of 0.8 stops reading instead.",
        heals="It resumes those that are still paused.",
        targets=(K.MEMBER,),
        designs=COORDINATED,
    ),
    Fault(
        name="slow",
        area="application",
        does="The application stops polling, while its client's background work goes on.",
        heals="It polls again.",
        targets=(K.MEMBER,),
    ),
    Fault(
        name="slow-record",
        area="application",
        does="The application spends per_record_ms on each record.",
        heals="It processes at full speed.",
        targets=(K.MEMBER,),
        parameters=(Number("per_record_ms", 50, 1, _LASTING_MS),),
    ),
    Fault(
        name="stuck-record",
        area="application",
        does="The application is stuck in one record.",
        heals="It gets past it.",
        targets=(K.MEMBER,),
    ),
)

_FAULTS = {fault.name: fault for fault in _ROWS}
FAULTS: Mapping[str, Fault] = MappingProxyType(_FAULTS)
#: Where all of them are listed, with the steps and the checks.
LIST = "`rebalance-lab scenarios --steps` lists all"


def add_fault(fault: Fault) -> None:
    """Add a user's fault to the table. Raises `ConfigurationError` if its name is taken."""
    if fault.name in _FAULTS:
        raise ConfigurationError(f"there is a fault {fault.name!r} already. Choose another name")
    _FAULTS[fault.name] = fault


def fault_named(name: str) -> Fault:
    """Raises `ConfigurationError` with the names of the faults."""
    fault = FAULTS.get(name)
    if fault is None:
        raise ConfigurationError(unknown("fault", name, FAULTS, hint=LIST))
    return fault


def check(name: str, target: str, given: Mapping[str, Given], *, design: str, servers: int) -> None:
    """Raises `ConfigurationError` if the fault cannot be injected there, in this design or with so many servers."""
    fault, kind = fault_named(name), kind_of(target)
    if kind not in fault.targets:
        possible = "; ".join(each.value for each in fault.targets)
        raise ConfigurationError(f"{name} cannot be injected into {target!r}. Use {possible}")
    if design not in fault.designs:
        raise ConfigurationError(f"{name} does not exist in {design}. Choose {' or '.join(fault.designs)}")
    if servers < 3 and (kind in _IN_AN_ENSEMBLE or target.startswith("follower")):
        raise ConfigurationError(f"{name} into {target!r} needs an ensemble of three ZooKeeper servers")
    fault.values(given)
