"""What there is to know of a design: timers of its members, points of its rebalance, words for its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

STRATEGY = "partition.assignment.strategy"
DELAY = "scheduled.rebalance.max.delay.ms"
#: The brokers' default. The members' own is their session timeout, which is short in equal-timers, and on a busy
#: machine a process may need longer to start: how soon it gives up is nothing that designs are compared by.
FIRST_CONNECTION = {"zookeeper.connection.timeout.ms": "18000"}


@dataclass(frozen=True, slots=True)
class Point:
    """An event that a member or a coordinating broker traces, and one field of it."""

    name: str
    role: Role
    kind: str
    field: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One design; settings as text, by Kafka's names."""

    equal_timers: Mapping[str, str]  #: its members' settings in the preset of this name
    kafka_defaults: Mapping[str, str]
    #: What a member passes when another one joins, in the order in which it passes them; then the coordinator's.
    points: tuple[Point, ...]
    purposes: Mapping[str, str]  #: of the steps of a member's rebalance, in their order


def phase(name: str) -> Point:
    return Point(name, Role.MEMBER, "phase_entered", "phase", name)


def state(name: str, of_group: str) -> Point:
    return Point(name, Role.BROKER, "group_changed", "state", of_group)


END = Point("end", Role.MEMBER, "rebalance_ended", "outcome", "ok")
#: Of a group whose members join and sync.
STATES = (
    state("preparing", "PreparingRebalance"),
    state("completing", "CompletingRebalance"),
    state("stable", "Stable"),
)
