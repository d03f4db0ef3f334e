"""The named points of a rebalance at which a process can be stopped, so that something can be killed exactly there.

A point is an event that the process traces as it gets there: it enters a phase, ZooKeeper has answered an operation, or
the coordinator has moved the group to another state. What comes after a point has not begun, and what comes before it
is over, so that the points of a design in their order cover "before" and "after" each of its steps.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.designs.table import PROFILES
from kernel.errors import ConfigurationError
from kernel.suggestions import did_you_mean
from kernel.trace.events import Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.designs.profile import Point

POINTS: Mapping[str, tuple[Point, ...]] = MappingProxyType({name: each.points for name, each in PROFILES.items()})
#: The names of all points, and what `KillAtPoint` can kill there.
NAMED = tuple(dict.fromkeys(point.name for points in POINTS.values() for point in points))
KILLED = ("member", "broker", "server")


def points_of_members(design: str) -> tuple[Point, ...]:
    """Those of a design that a member passes."""
    return tuple(point for point in POINTS[design] if point.role is Role.MEMBER)


def point_named(design: str, name: str) -> Point:
    """Raises `ConfigurationError` with the names of the design's points."""
    for point in POINTS[design]:
        if point.name == name:
            return point
    known = [point.name for point in POINTS[design]]
    meant = did_you_mean(name, known) or "."
    raise ConfigurationError(f"a rebalance in {design} has no point {name!r}{meant} Use one of {', '.join(known)}")
