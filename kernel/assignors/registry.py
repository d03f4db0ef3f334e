"""Assignors by the name under which members offer them to the group: ours, and those that users plug in.

A package plugs one in by an entry point of the group `rebalance_lab.assignors`: the entry's name is the strategy's,
and it points to the function (docs/writing-an-assignor.md). Built-in names cannot be taken over.
"""

from __future__ import annotations

import functools
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.assignors.checking import checked
from kernel.assignors.cooperative_sticky import assign_cooperative_sticky
from kernel.assignors.per_topic import assign_ranges
from kernel.assignors.roundrobin import deal_round_robin
from kernel.assignors.sticky import assign_sticky
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import Assignor

#: The group of entry points that is looked up.
ENTRY_POINTS = "rebalance_lab.assignors"

#: Protocol name -> built-in strategy. The names travel in JoinGroup, so members of all implementations agree on them.
ASSIGNORS: Mapping[str, Assignor] = MappingProxyType(
    {
        "range": assign_ranges,
        "roundrobin": deal_round_robin,
        "sticky": assign_sticky,
        "cooperative-sticky": assign_cooperative_sticky,
    }
)

#: Strategies that let members keep partitions during a rebalance. A group does that when every member offers only
#: such strategies; one eager strategy in a member's list, and everything is given back first (KIP-429).
COOPERATIVE = frozenset({"cooperative-sticky"})

#: What a user of the Java client writes for partition.assignment.strategy.
JAVA_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "org.apache.kafka.clients.consumer.RangeAssignor": "range",
        "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
        "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
    }
)


def assignor_name(given: str) -> str:
    """The protocol name of a strategy given by protocol name or by its Java class; a plugged-in one is loaded.

    Raises `ConfigurationError` when there is no such strategy, or when it cannot be loaded.
    """
    name = JAVA_CLASSES.get(given, given)
    assignor(name)
    return name


def names() -> frozenset[str]:
    """All strategies by protocol name, those that are plugged in unseen."""
    return frozenset(ASSIGNORS) | entry_points(group=ENTRY_POINTS).names


def assignor(name: str) -> Assignor:
    """The strategy of this protocol name. Raises `ConfigurationError`, as `assignor_name`."""
    built_in = ASSIGNORS.get(name)
    return plugged_in(name) if built_in is None else built_in


@functools.cache
def plugged_in(name: str) -> Assignor:
    """What an installed package offers under this name, its answers checked. Raises `ConfigurationError`."""
    offers = {entry.value: entry for entry in entry_points(group=ENTRY_POINTS, name=name)}
    if not offers:
        others = sorted(names() - ASSIGNORS.keys())
        raise ConfigurationError(
            f"no assignment strategy {name!r}: choose from {', '.join([*ASSIGNORS, *others])}, "
            f"or install a package with an entry point of that name in the group {ENTRY_POINTS}"
        )
    if len(offers) > 1:
        raise ConfigurationError(
            f"assignment strategy {name!r} is offered more than once: uninstall all but one of "
            f"{', '.join(sorted(offers))}"
        )
    ((value, entry),) = offers.items()
    try:
        loaded = entry.load()
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ConfigurationError(f"assignment strategy {name!r} ({value}) cannot be loaded: {error}") from error
    if not callable(loaded):
        raise ConfigurationError(
            f"assignment strategy {name!r} ({value}) is {type(loaded).__name__}, not a function: "
            "point the entry to a function of (partitions per topic, subscriptions)"
        )
    return checked(name, loaded)
