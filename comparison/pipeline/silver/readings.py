"""Readings of the ZooKeeper servers' own counters, in pairs `<label>:before` and `<label>:after`.

A reading without its pair (at the end of a run, or of a server that was counting before it) is ignored, and so is a
pair that lacks one of the servers. So are readings of former releases, which do not say how long they took: nothing
tells which operations are on which side of them.
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
    """Reads and writes by namespace, as one server counted them at some time from `asked_ns` to `answered_ns`."""

    asked_ns: int
    answered_ns: int
    counted: dict[str, tuple[int, int]]


class ReadingInterval(NamedTuple):
    """What is performed from `from_ns` to `until_ns` is counted between two readings of every server.

    What is performed before `first_ns` or after `last_ns` is not. In between, nobody knows.
    """

    first_ns: int
    from_ns: int
    until_ns: int
    last_ns: int


def reading_intervals(events: Iterable[RunnerEvent]) -> dict[str, ReadingInterval]:
    """The interval of each pair of readings, by label."""
    found = {}
    for label, pairs in pairs_of(events).items():
        before, after = zip(*pairs.values(), strict=True)
        found[label] = ReadingInterval(
            first_ns=min(reading.asked_ns for reading in before),
            from_ns=max(reading.answered_ns for reading in before),
            until_ns=min(reading.asked_ns for reading in after),
            last_ns=max(reading.answered_ns for reading in after),
        )
    return found


def pairs_of(events: Iterable[RunnerEvent]) -> Mapping[str, Mapping[str, tuple[Reading, Reading]]]:
    """The two readings by label and server, of labels for which every server was read twice."""
    read: defaultdict[str, dict[tuple[str, str], Reading]] = defaultdict(dict)
    for event in events:
        if isinstance(event, CounterReading) and event.latency_ns is not None:
            label, _, when = event.at.rpartition(":")
            made = Reading(event.t_ns - event.latency_ns, event.t_ns, {})
            reading = read[label].setdefault((event.server, when), made)
            reading.counted[event.namespace] = (event.reads, event.writes)
    found = {}
    for label, readings in read.items():
        servers = {server for server, _ in readings}
        if all((server, when) in readings for server in servers for when in (BEFORE, AFTER)):
            found[label] = {server: (readings[server, BEFORE], readings[server, AFTER]) for server in servers}
    return found
