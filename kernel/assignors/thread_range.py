"""The range strategy of the ZooKeeper-era consumer: divides a topic over *threads* (RangeAssignor of 0.8.2).

Thread ids are `<consumer id>-<n>` and sort as strings, so thread 10 comes before thread 2. Every member computes the
assignment itself, from what it has just read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.assignors.per_topic import piece
from kernel.assignors.subscription import java_order

if TYPE_CHECKING:
    from collections.abc import Sequence


def thread_range(partitions: Sequence[int], threads: Sequence[str]) -> dict[str, list[int]]:
    """{thread id: its partitions} for every thread, possibly [].

    `threads` are all threads of the group for this topic, in any order; partitions sort as numbers.
    """
    ordered = sorted(partitions)
    pieces = {}
    for position, thread in enumerate(sorted(threads, key=java_order)):
        start, length = piece(len(ordered), len(threads), position)
        pieces[thread] = ordered[start : start + length]
    return pieces
