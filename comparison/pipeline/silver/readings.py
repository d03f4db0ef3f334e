"""Readings of the ZooKeeper servers' own counters, in pairs `<label>:before` and `<label>:after`.

A reading without its pair (at the end of a run, or of a server that was counting before it) is ignored, and so is a
pair that lacks one of the servers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from comparison.pipeline.measured import CounterReading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comparison.pipeline.measured import RunnerEvent

BEFORE, AFTER = "before", "after"


class Reading(NamedTuple):
    """Reads and writes by namespace, as one server counted them."""

    t_ns: int
    counted: dict[str, tuple[int, int]]


def reading_intervals(events: Iterable[RunnerEvent]) -> dict[str, tuple[int, int]]:
    """When each pair of readings was made, by label: from the last server's `before` to the first one's `after`."""
    return {
        label: (max(before.t_ns for before, _ in pairs.values()), min(after.t_ns for _, after in pairs.values()))
        for label, pairs in pairs_of(events).items()
    }


def pairs_of(events: Iterable[RunnerEvent]) -> Mapping[str, Mapping[str, tuple[Reading, Reading]]]:
    """The two readings by label and server, of labels for which every server was read twice."""
    read: defaultdict[str, dict[tuple[str, str], Reading]] = defaultdict(dict)
    for event in events:
        if isinstance(event, CounterReading):
            label, _, when = event.at.rpartition(":")
            reading = read[label].setdefault((event.server, when), Reading(event.t_ns, {}))
            reading.counted[event.namespace] = (event.reads, event.writes)
    found = {}
    for label, readings in read.items():
        servers = {server for server, _ in readings}
        if all((server, when) in readings for server in servers for when in (BEFORE, AFTER)):
            found[label] = {server: (readings[server, BEFORE], readings[server, AFTER]) for server in servers}
    return found
