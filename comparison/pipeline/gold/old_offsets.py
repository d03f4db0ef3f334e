"""Where a group began to read a recreated topic at an offset that it had committed of the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.gold.skips import of_kind
from comparison.pipeline.silver.lives import LIFE, life_of, recreated
from comparison.pipeline.silver.offsets import STARTED, WRITTEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.silver.context import Context
    from comparison.pipeline.silver.reduce import Bundle


def old_offsets_used(bundle: Bundle, context: Context) -> int | None:
    """In how many partitions the first start of deliveries from a new topic was there; None: nothing was started."""
    several = recreated(context)
    if not several:
        return None
    started, written = (of_kind(bundle, kind, ("t_ns", "seq", "offset")) for kind in (STARTED, WRITTEN))
    used: list[bool] = []
    for key, rows in started.items():
        first = {life_of(offset): (t_ns, offset) for t_ns, _, offset in reversed(rows)}
        for life, (t_ns, offset) in first.items() if key[1:] in several else ():
            commits = [committed for at_ns, _, committed in written.get(key, ()) if at_ns < t_ns]
            used += [_is_old(offset, commits)] if life else []
    return sum(used) if used else None


def _is_old(offset: int, commits: Sequence[int]) -> bool:
    """Whether the last of the commits is this offset, of an earlier life."""
    lives = life_of(offset) - life_of(commits[-1]) if commits else 0
    return lives > 0 and offset == commits[-1] + lives * LIFE and offset > life_of(offset) * LIFE
