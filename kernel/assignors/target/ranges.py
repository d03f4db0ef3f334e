"""`range` of the coordinator: each topic in consecutive ranges, to its subscribers in a fixed order.

The arithmetic of the consumer's `range` (`kernel.assignors.per_topic`) over static members by instance id, then the
others by member id. It ignores what members have, so that equal topics are divided equally (org.apache.kafka.
coordinator.group.assignor.RangeAssignor, 4.1.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kernel.assignors.target.group import TargetGroup


def assign_target_ranges(group: TargetGroup) -> NDArray[np.int32]:
    """The next target: rows by partition."""
    grid, rows = group.grid, group.by_name.astype(np.int32)
    topics = len(grid.ids)
    if group.subscribed is None:
        takers, firsts, counts = rows, np.zeros(topics, np.int64), np.full(topics, len(rows))
    else:
        by_topic = group.subscribed[rows].T
        counts = by_topic.sum(axis=1)
        takers = rows[np.nonzero(by_topic)[1]]
        firsts = np.cumsum(counts) - counts
    quotas, extras = np.divmod(grid.sizes, np.maximum(counts, 1))
    longer = extras * (quotas + 1)  # partitions in ranges that are one longer
    numbers = np.arange(grid.partitions) - np.repeat(grid.starts[:-1], grid.sizes)
    quota, before = np.repeat(quotas, grid.sizes), np.repeat(longer, grid.sizes)
    in_longer = numbers // (quota + 1)
    in_others = np.repeat(extras, grid.sizes) + (numbers - before) // np.maximum(quota, 1)
    places = np.where(numbers < before, in_longer, in_others)
    owner: NDArray[np.int32] = takers[np.repeat(firsts, grid.sizes) + places]
    return owner
