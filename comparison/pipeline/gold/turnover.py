"""Who owned partitions around each change, and what was kept through each round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.pipeline.gold.ownership import NEVER_NS
from comparison.pipeline.measured import KeptThrough, PartitionOwners
from comparison.pipeline.silver.arrays import integers
from comparison.pipeline.silver.deliveries import KEPT_SCHEMA
from comparison.pipeline.silver.naming import keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.measured import Round
    from comparison.pipeline.silver.context import Window


def owners_around(authority: pa.Table, windows: Sequence[Window]) -> dict[int, list[PartitionOwners]]:
    """By window: the owners before and after of each partition that had one; None: nobody."""
    from_ns, until_ns = integers(authority["from_ns"]), integers(authority["until_ns"], null=NEVER_NS)
    keys, meanings = keys_of(authority)
    owners = authority["owner"].to_pylist()
    found = {}
    for window in windows:
        was = (from_ns <= window.from_ns) & (until_ns > window.from_ns)
        then_is = (from_ns < window.until_ns) & (until_ns >= window.until_ns)
        before, after = (_largest(mask, keys, owners) for mask in (was, then_is))
        if before or after:
            found[window.number] = [
                PartitionOwners(
                    topic=meanings[key][1],
                    partition=meanings[key][2],
                    before=before.get(key),
                    after=after.get(key),
                )
                for key in sorted({**before, **after}, key=lambda key: meanings[key])
            ]
    return found


def _largest(mask: NDArray[np.bool_], keys: NDArray[np.int64], owners: Sequence[str]) -> dict[int, str]:
    """One owner of each partition; of several, the largest name."""
    found: dict[int, str] = {}
    for row in np.flatnonzero(mask).tolist():
        key = int(keys[row])
        found[key] = max(owners[row], found.get(key, ""))
    return found


def kept_through(believed: pa.Table, in_rounds: pa.Table, rounds: Sequence[Round]) -> dict[int, KeptThrough]:
    """By round: partitions of its group that one stream had from before it until after it, and how many of them it
    delivered from in the middle of it. `in_rounds`: KEPT_SCHEMA.
    """
    delivered = set(zip(*(in_rounds[name].to_pylist() for name in KEPT_SCHEMA.names), strict=True))
    from_ns, until_ns = integers(believed["from_ns"]), integers(believed["until_ns"], null=NEVER_NS)
    found = {}
    for number, each in enumerate(rounds):
        if each.until_ns is None:
            continue
        through = believed.filter(pa.array((from_ns <= each.from_ns) & (until_ns > each.until_ns)))
        through = through.filter(pa.compute.equal(through["group"], each.group))
        kept = list(zip(*(through[name].to_pylist() for name in KEPT_SCHEMA.names[1:]), strict=True))
        if kept:
            shown = sum(1 for place in kept if (number, *place) in delivered)
            found[number] = KeptThrough(kept=len(kept), delivered=shown)
    return found


def added_kept(parts: Iterable[Mapping[int, KeptThrough]]) -> dict[int, KeptThrough]:
    """What was kept of several sets of partitions of one run together."""
    found: dict[int, KeptThrough] = {}
    for part in parts:
        for number, each in part.items():
            one = found.get(number, KeptThrough(kept=0, delivered=0))
            found[number] = KeptThrough(kept=one.kept + each.kept, delivered=one.delivered + each.delivered)
    return found
