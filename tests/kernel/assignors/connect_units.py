"""The units of connectors for Connect's assignor."""

from __future__ import annotations

from collections.abc import Mapping

from kernel.assignors.connect_units import Unit


def configured_units(connectors: Mapping[str, int]) -> frozenset[Unit]:
    """All units of {connector: number of tasks}."""
    tasks = (Unit(name, task) for name, count in connectors.items() for task in range(count))
    return frozenset(Unit(name) for name in connectors).union(tasks)
