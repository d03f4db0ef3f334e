"""Readings of the ZooKeeper servers' own counters, in pairs `<label>:before` and `<label>:after`.

Each read is answered by one server, so the reads of an ensemble are added up. Each write is applied by all servers, so
the highest count is taken. A reading without its pair (at the end of a run, or of a server that was counting before it)
is ignored, and so is a pair that lacks one of the servers.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from comparison.pipeline.measured import CounterReading
from comparison.pipeline.result import Counter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.pipeline.measured import RunnerEvent, TracedOperations

BEFORE, AFTER = "before", "after"


class _Reading(NamedTuple):
    """Reads and writes by namespace, as one server counted them."""

    t_ns: int
    counted: dict[str, tuple[int, int]]


def reading_intervals(events: Iterable[RunnerEvent]) -> dict[str, tuple[int, int]]:
    """When each pair of readings was made, by label: from the last server's `before` to the first one's `after`."""
    return {
        label: (max(before.t_ns for before, _ in pairs.values()), min(after.t_ns for _, after in pairs.values()))
        for label, pairs in _pairs(events).items()
    }


def _pairs(events: Iterable[RunnerEvent]) -> Mapping[str, Mapping[str, tuple[_Reading, _Reading]]]:
    """The two readings by label and server, of labels for which every server was read twice."""
    read: defaultdict[str, dict[tuple[str, str], _Reading]] = defaultdict(dict)
    for event in events:
        if isinstance(event, CounterReading):
            label, _, when = event.at.rpartition(":")
            reading = read[label].setdefault((event.server, when), _Reading(event.t_ns, {}))
            reading.counted[event.namespace] = (event.reads, event.writes)
    found = {}
    for label, readings in read.items():
        servers = {server for server, _ in readings}
        if all((server, when) in readings for server in servers for when in (BEFORE, AFTER)):
            found[label] = {server: (readings[server, BEFORE], readings[server, AFTER]) for server in servers}
    return found


def compare_counters(events: Iterable[RunnerEvent], traced: Sequence[TracedOperations]) -> list[Counter]:
    """Compare what the servers counted between each pair of readings with what was traced; only what differs from 0."""
    traced_by = {(each.label, each.namespace, each.is_read): each for each in traced}
    found = []
    for label, pairs in sorted(_pairs(events).items()):
        differences = [_differences(*pair) for pair in pairs.values()]
        namespaces = {namespace for difference in differences for namespace in difference}
        namespaces |= {namespace for of_label, namespace, _ in traced_by if of_label == label}
        for namespace in sorted(namespaces):
            counted = [difference.get(namespace, (0, 0)) for difference in differences]
            for is_read, server in ((False, max(w for _, w in counted)), (True, sum(r for r, _ in counted))):
                seen = traced_by.get((label, namespace, is_read))
                traced_here, low, high = (seen.traced, seen.sure, seen.possible) if seen is not None else (0, 0, 0)
                if server or traced_here:
                    found.append(
                        Counter(
                            label=label,
                            namespace=namespace,
                            reads=is_read,
                            server=server,
                            traced=traced_here,
                            traced_min=low,
                            traced_max=high,
                        )
                    )
    return found


def _differences(before: _Reading, after: _Reading) -> dict[str, tuple[int, int]]:
    """Reads and writes between two readings, by namespace; a server does not name a namespace before it counts it."""
    differences = {}
    for namespace, (reads, writes) in after.counted.items():
        reads_before, writes_before = before.counted.get(namespace, (0, 0))
        differences[namespace] = (reads - reads_before, writes - writes_before)
    return differences
