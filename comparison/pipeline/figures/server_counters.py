"""Compare the ZooKeeper servers' own counters with the traced operations.

Each read is answered by one server, so the reads of an ensemble are added up. Each write is applied by all servers, so
the highest count is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.silver.readings import pairs_of
from comparison.results.run import Counter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comparison.pipeline.measured import RunnerEvent, TracedOperations
    from comparison.pipeline.silver.readings import Reading


def compare_counters(events: Iterable[RunnerEvent], traced: Sequence[TracedOperations]) -> list[Counter]:
    """Compare what the servers counted between each pair of readings with what was traced; only what differs from 0.

    Operations on the root belong to no namespace, so no server counts them (`exists /` of kafka.release=1.1).
    """
    traced_by = {(each.label, each.namespace, each.is_read): each for each in traced if each.namespace}
    found = []
    for label, pairs in sorted(pairs_of(events).items()):
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


def _differences(before: Reading, after: Reading) -> dict[str, tuple[int, int]]:
    """Reads and writes between two readings, by namespace; a server does not name a namespace before it counts it."""
    differences = {}
    for namespace, (reads, writes) in after.counted.items():
        reads_before, writes_before = before.counted.get(namespace, (0, 0))
        differences[namespace] = (reads - reads_before, writes - writes_before)
    return differences
