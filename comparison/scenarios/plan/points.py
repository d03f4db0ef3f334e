"""The named points of a rebalance at which a process can be stopped, so that something can be killed exactly there.

A point is an event that the process traces as it gets there: it enters a phase, ZooKeeper has answered an operation, or
the coordinator has moved the group to another state. What comes after a point has not begun, and what comes before it
is over, so that the points of a design in their order cover "before" and "after" each of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.designs import ALL_AT_ONCE, CLASSIC_INCREMENTAL, CONSUMER, SERVER, ZOOKEEPER
from kernel.errors import ConfigurationError
from kernel.suggestions import did_you_mean
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Point:
    """An event that a member or a coordinating broker traces, and one field of it."""

    name: str
    role: Role
    kind: str
    field: str
    value: str


def _phase(name: str) -> Point:
    return Point(name, Role.MEMBER, "phase_entered", "phase", name)


def _operation(step: str) -> Point:
    """After the first operation of a step (docs/zookeeper-consumer.md)."""
    return Point(step, Role.MEMBER, "zk_op", "step", step)


def _state(name: str, state: str) -> Point:
    return Point(name, Role.BROKER, "group_changed", "state", state)


_END = Point("end", Role.MEMBER, "rebalance_ended", "outcome", "ok")
_STATES = (
    _state("preparing", "PreparingRebalance"),
    _state("completing", "CompletingRebalance"),
    _state("stable", "Stable"),
)

#: Of the classic protocol: who stops only what moves has no point for it.
_GATHERING = (*map(_phase, ("stop", "join", "decide", "claim", "resume")), _END, *_STATES)

#: What a member passes when another one joins, in the order in which it passes them; then the coordinator's.
POINTS: Mapping[str, tuple[Point, ...]] = MappingProxyType(
    {
        ZOOKEEPER: (
            _phase("detect"),
            *map(_operation, ("R1", "R2", "R3")),
            _phase("stop"),
            _operation("R4"),
            _phase("release"),
            _operation("R5"),
            _phase("join"),
            _operation("R6"),
            _phase("decide"),
            _operation("R8"),
            _phase("claim"),
            _operation("R11"),
            _phase("resume"),
            _END,
        ),
        SERVER: (*map(_phase, ("stop", "join", "resume")), _END, *_STATES),
        **dict.fromkeys(ALL_AT_ONCE, _GATHERING),
        **dict.fromkeys(CLASSIC_INCREMENTAL, _GATHERING[1:]),
        CONSUMER: (*map(_phase, ("join", "stop", "resume")), _END, _state("reconciling", "Reconciling"), _STATES[-1]),
    }
)
#: The names of all points, and what `KillAtPoint` can kill there.
NAMED = tuple(dict.fromkeys(point.name for points in POINTS.values() for point in points))
KILLED = ("member", "broker", "server")


def point_named(design: str, name: str) -> Point:
    """Raises `ConfigurationError` with the names of the design's points."""
    for point in POINTS[design]:
        if point.name == name:
            return point
    known = [point.name for point in POINTS[design]]
    meant = did_you_mean(name, known) or "."
    raise ConfigurationError(f"a rebalance in {design} has no point {name!r}{meant} Use one of {', '.join(known)}")
