"""The records that a group delivers over time, as a line of letters for the terminal; at zero, the whole group has
stopped. The page draws them with `comparison.report.drawing.records`.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from comparison.report.summaries.figures import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.results.run import Run

SLOW = "slow-member"
_FAULT = "slow"
#: From few to many; an empty bin has its own letter.
_LETTERS = "▁▂▃▄▅▆▇█"
_NOTHING = "_"
#: The top of the scale, as a multiple of the median.
_USUAL = 2
#: A wait shorter than this is an ordinary round.
_WAIT_MS_MIN = 1_000.0


def sparkline(run: Run, letters: int) -> tuple[str, float] | None:
    """The group's records since a member slowed down, in at most `letters` letters, and the ms per letter."""
    delivery = run.delivery
    slow = next((change for change in run.changes if change.change == _FAULT), None)
    if delivery is None or slow is None:
        return None
    first = max(0, int((slow.from_ms - delivery.from_ms) // delivery.bin_ms))
    records = delivery.records[first:]
    if not records:
        return None
    together = -(-len(records) // letters)
    sums = [sum(records[start : start + together]) for start in range(0, len(records), together)]
    most = _top([sums])
    line = "".join(
        _NOTHING if not each else _LETTERS[min(len(_LETTERS) - 1, each * len(_LETTERS) // (most + 1))] for each in sums
    )
    return line, together * delivery.bin_ms


def _top(lines: Sequence[Sequence[int]]) -> int:
    """The top of the scale; the rush after a stall may exceed it, because otherwise the rest would be invisible."""
    delivered = [count for line in lines for count in line if count]
    return max(1, round(_USUAL * median(delivered))) if delivered else 1


def describe_waits(run: Run) -> str:
    """Say who waited for whom, and how long nothing was delivered."""
    slow = next((change for change in run.changes if change.change == _FAULT), None)
    stalled = f"nothing delivered for {number(run.metrics['stalled_s'])} s"
    if slow is None:
        return f"no member was slowed down; {stalled}"
    waits = [
        f"{each.waiting} members waited {each.longest_ms / 1000:.1f} s for {each.waited_for}"
        f"{' (which never joined)' if each.gone else ''}"
        for each in run.waits
        if each.from_ms >= slow.from_ms and each.longest_ms >= _WAIT_MS_MIN
    ]
    return f"{slow.target} is slow; {', '.join(waits) or 'no member waited'}; {stalled}"
