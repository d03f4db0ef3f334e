"""The units that Connect assigns (connectors and tasks), and the units of each worker in a round."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kernel.assignors.hash_order import texts_in_hash_order
from kernel.assignors.subscription import java_order

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet


class Unit(NamedTuple):
    """A connector (no task), or one of its tasks."""

    connector: str
    task: int | None = None

    def __str__(self) -> str:
        return self.connector if self.task is None else f"{self.connector}-{self.task}"


def in_order(units: Iterable[Unit]) -> list[Unit]:
    """Sort units: connectors before tasks, each by the connector's name and the task's number."""
    return sorted(units, key=lambda u: (u.task is not None, java_order(u.connector), u.task or 0))


class Workers:
    """The units of each worker, in the order of their assignment; workers in Kafka's hash order."""

    def __init__(self, running: Mapping[str, Iterable[Unit]]) -> None:
        self._units = {worker: dict.fromkeys(running[worker]) for worker in texts_in_hash_order(running)}

    def __iter__(self) -> Iterator[str]:
        return iter(self._units)

    def of(self, worker: str) -> Collection[Unit]:
        return self._units[worker].keys()

    def of_kind(self, worker: str, *, tasks: bool) -> list[Unit]:
        return [unit for unit in self._units[worker] if (unit.task is not None) is tasks]

    def every(self) -> set[Unit]:
        return {unit for units in self._units.values() for unit in units}

    def give(self, worker: str, unit: Unit) -> None:
        self._units[worker][unit] = None

    def take(self, revoked: Mapping[str, AbstractSet[Unit]]) -> None:
        for worker, units in revoked.items():
            self._units[worker] = {unit: None for unit in self._units[worker] if unit not in units}

    def fill(self, units: Iterable[Unit], *, tasks: bool) -> None:
        """Give units of one kind to the workers with the fewest of that kind, ties by name.

        In each pass, all workers with as few units as the first one get one. The order of workers does not change.
        """
        loads = {worker: len(self.of_kind(worker, tasks=tasks)) for worker in self._units}
        queue = sorted(loads, key=lambda worker: (loads[worker], java_order(worker)))
        waiting = [unit for unit in units if (unit.task is not None) is tasks]
        while waiting:
            least = loads[queue[0]]
            end = next((at for at, worker in enumerate(queue) if loads[worker] > least), len(queue))
            for worker, unit in zip(queue[:end], waiting, strict=False):
                self.give(worker, unit)
                loads[worker] += 1
            del waiting[:end]
