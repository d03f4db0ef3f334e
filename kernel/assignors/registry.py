"""Assignors by the name under which members offer them to the group."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.assignors.per_topic import assign_ranges
from kernel.assignors.roundrobin import deal_round_robin
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.assignors.subscription import Assignor

#: Protocol name -> strategy. The names travel in JoinGroup, so members of all implementations agree on them.
ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"range": assign_ranges, "roundrobin": deal_round_robin})

#: What a user of the Java client writes for partition.assignment.strategy.
JAVA_CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "org.apache.kafka.clients.consumer.RangeAssignor": "range",
        "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    }
)


def assignor_name(given: str) -> str:
    """The protocol name of a strategy given by protocol name or by its Java class.

    Raises `ConfigurationError` when we have no such strategy.
    """
    name = JAVA_CLASSES.get(given, given)
    if name not in ASSIGNORS:
        raise ConfigurationError(f"no assignment strategy {given!r}: choose from {', '.join(ASSIGNORS)}")
    return name
