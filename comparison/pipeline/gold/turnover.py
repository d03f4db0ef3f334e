"""What each change did to the ownership of partitions: what moved, what stopped, what was kept."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from comparison.pipeline.gold.ownership import NEVER_NS
from comparison.pipeline.measured import KeptThrough, PartitionOwners, Turnover
from comparison.pipeline.silver.arrays import NOWHERE, following, integers, previous, starts, taken
from comparison.pipeline.silver.deliveries import KEPT_SCHEMA
from comparison.pipeline.silver.naming import Names, keys_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from comparison.pipeline.measured import Round
    from comparison.pipeline.silver.context import Window

#: The suffix of a restarted process: m3, m3.2, m3.3.
_LATER_LIFE = re.compile(r"\.\d+$")


def turnover_of(believed: pa.Table, windows: Sequence[Window]) -> dict[int, Turnover]:
    """By window: how often a partition moved to another member; was taken from one that stayed; and, of these, was
    given back to the same one. Windows in which nothing moved or stopped are left out.

    A member that was restarted, also after its removal, is the same member.
    """
    keys, _ = keys_of(believed)
    names = Names()
    owners = believed["owner"].to_pylist()
    by_name = np.argsort(np.array(owners, dtype=object), kind="stable") if owners else np.zeros(0, dtype=np.int64)
    rank = np.empty(len(owners), dtype=np.int64)
    rank[by_name] = np.arange(len(owners))
    order = np.lexsort((rank, integers(believed["from_ns"]), keys))
    believed, first = believed.take(order), starts(keys[order])
    owners = believed["owner"].to_pylist()
    owner = names.numbers(owners)
    base = names.numbers([_LATER_LIFE.sub("", name.partition("/")[0]) for name in names.texts])[owner]
    from_ns, until_ns = integers(believed["from_ns"]), integers(believed["until_ns"], null=NEVER_NS)
    gone_ns = integers(believed["gone_ns"], null=NEVER_NS)
    closed_by = np.array(believed["closed_by"].to_pylist(), dtype=object)
    before, behind = previous(first), following(first)
    was_lost = taken(closed_by == "lost", before, otherwise=False)
    same_again = (taken(base, before, NOWHERE) == base) & (was_lost | (taken(gone_ns, before, NEVER_NS) <= from_ns))
    moves = (before != NOWHERE) & (taken(owner, before, NOWHERE) != owner) & ~same_again
    stops = (closed_by == "revoked") | (closed_by == "lost")
    given_back = taken(owner, behind, NOWHERE) == owner
    found = {}
    for window in windows:
        moved = moves & (from_ns >= window.from_ns) & (from_ns < window.until_ns)
        stopped = stops & (gone_ns >= window.until_ns) & (until_ns >= window.from_ns) & (until_ns < window.until_ns)
        if moved.any() or stopped.any():
            found[window.number] = Turnover(
                moved=int(moved.sum()), stopped=int(stopped.sum()), stopped_kept=int((stopped & given_back).sum())
            )
    return found


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


def added_turnover(parts: Iterable[Mapping[int, Turnover]]) -> dict[int, Turnover]:
    """The turnover of several sets of partitions of one run together."""
    found: dict[int, Turnover] = {}
    for part in parts:
        for window, each in part.items():
            one = found.get(window, Turnover(moved=0, stopped=0, stopped_kept=0))
            found[window] = Turnover(
                moved=one.moved + each.moved,
                stopped=one.stopped + each.stopped,
                stopped_kept=one.stopped_kept + each.stopped_kept,
            )
    return found


def added_kept(parts: Iterable[Mapping[int, KeptThrough]]) -> dict[int, KeptThrough]:
    """What was kept of several sets of partitions of one run together."""
    found: dict[int, KeptThrough] = {}
    for part in parts:
        for number, each in part.items():
            one = found.get(number, KeptThrough(kept=0, delivered=0))
            found[number] = KeptThrough(kept=one.kept + each.kept, delivered=one.delivered + each.delivered)
    return found
