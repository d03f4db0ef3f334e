"""Assignors by protocol name: the built-in ones, and those that packages plug in.

A package plugs in an assignor with an entry point in the group `rebalance_lab.assignors`. The entry's name is the
name of the strategy, and it points to the function (docs/writing-an-assignor.md). Built-in names cannot be replaced.
"""

from __future__ import annotations

import functools
import sys
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.assignors.checking import checked
from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.per_topic import assign_ranges
from kernel.assignors.roundrobin import assign_round_robin
from kernel.assignors.sticky import assign_sticky
from kernel.errors import ConfigurationError
from kernel.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import Assignor

#: The group of entry points.
ENTRY_POINTS = "rebalance_lab.assignors"

#: Protocol name -> built-in strategy. JoinGroup carries these names, so all implementations share them.
ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        "range": assign_ranges,
        "roundrobin": assign_round_robin,
        "sticky": assign_sticky,
        "cooperative-sticky": assign_cooperative_sticky,
    }
)

#: Strategies that let members keep partitions during a rebalance. That requires that all members offer only such
#: strategies; with an eager one in any member's list, members give up everything first (KIP-429).
COOPERATIVE = frozenset({"cooperative-sticky"})

#: The Java client's values of partition.assignment.strategy.
JAVA_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "org.apache.kafka.clients.consumer.RangeAssignor": "range",
        "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
        "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
    }
)


def assignor_name(given: str) -> str:
    """The protocol name of a strategy given by protocol name or Java class. Loads a plugged-in one.

    Raises `ConfigurationError` if the strategy is unknown or cannot be loaded.
    """
    name = JAVA_CLASSES.get(given, given)
    assignor(name)
    return name


def names() -> frozenset[str]:
    """The protocol names of all strategies; plugged-in ones are listed without being loaded."""
    return frozenset(ASSIGNORS) | _plugged_names(tuple(sys.path))


@functools.cache
def _plugged_names(_path: tuple[str, ...]) -> frozenset[str]:
    """Those on this path. To read what every installed package offers takes a tenth of a simulated run."""
    return frozenset(entry_points(group=ENTRY_POINTS).names)


def assignor(name: str) -> Assignor:
    """The strategy with this protocol name. Raises `ConfigurationError` like `assignor_name`."""
    built_in = ASSIGNORS.get(name)
    return plugged_in(name) if built_in is None else built_in


@functools.cache
def plugged_in(name: str) -> Assignor:
    """The strategy that an installed package offers, with a check of its results. Raises `ConfigurationError`."""
    offers = {entry.value: entry for entry in entry_points(group=ENTRY_POINTS, name=name)}
    if not offers:
        others = sorted(names() - ASSIGNORS.keys())
        meant = did_you_mean(name, names()) or "."
        raise ConfigurationError(
            f"no assignment strategy {name!r}{meant} Choose from {', '.join([*ASSIGNORS, *others])}, "
            f"or install a package with an entry point of that name in the group {ENTRY_POINTS}"
        )
    if len(offers) > 1:
        raise ConfigurationError(
            f"assignment strategy {name!r} is offered more than once. Uninstall all but one of "
            f"{', '.join(sorted(offers))}"
        )
    ((value, entry),) = offers.items()
    try:
        loaded = entry.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ConfigurationError(f"assignment strategy {name!r} ({value}) cannot be loaded: {error}") from error
    if not callable(loaded):
        raise ConfigurationError(
            f"assignment strategy {name!r} ({value}) is {type(loaded).__name__}, not a function. "
            "Point the entry to a function of (partitions per topic, subscriptions)"
        )
    return checked(name, loaded)
