"""Links from what is said to where it is seen: a run's lanes, a partition, a stretch of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from comparison.report.view.model import PartitionView, RunView, Stretch

#: On both sides of what is shown, as a share of its length.
_MARGIN = 0.25


class Evidence(NamedTuple):
    """A place in a scenario's lanes; seconds are those of their axis."""

    scenario: str
    design: str
    label: str
    partition: str = ""
    from_s: float | None = None
    until_s: float | None = None

    @property
    def anchor(self) -> str:
        return f"#{anchor_of(self.scenario, self.design)}-lanes"


def anchor_of(*names: str) -> str:
    """A name for links: the words of the names, without what has a meaning in an address."""
    return "-".join("".join(char if char.isalnum() or char in "._-" else "-" for char in name) for name in names)


def first_overlap(view: RunView) -> Evidence | None:
    return _first(view, lambda lane: lane.overlaps)


def first_moved_back(view: RunView) -> Evidence | None:
    found = [(c.at_ms, lane) for lane in view.partitions for c in lane.commits if c.moved_back_by]
    if not found:
        return None
    at_ms, lane = min(found, key=lambda each: each[0])
    return _evidence(view, lane, at_ms, at_ms + 1_000)


def first_refused(view: RunView) -> Evidence | None:
    found = [(c.at_ms, lane) for lane in view.partitions for c in lane.commits if not c.is_accepted]
    if not found:
        return None
    at_ms, lane = min(found, key=lambda each: each[0])
    return _evidence(view, lane, at_ms, at_ms + 1_000)


def longest_unowned(view: RunView) -> Evidence | None:
    found = [(each.length_ms, lane, each) for lane in view.partitions for each in lane.unclaimed]
    if not found:
        return None
    _, lane, stretch = max(found, key=lambda each: each[0])
    return _evidence(view, lane, stretch.from_ms, stretch.until_ms)


def _first(view: RunView, of: Callable[[PartitionView], Iterable[Stretch]]) -> Evidence | None:
    found = [(each.from_ms, lane, each) for lane in view.partitions for each in of(lane)]
    if not found:
        return None
    _, lane, stretch = min(found, key=lambda each: each[0])
    return _evidence(view, lane, stretch.from_ms, stretch.until_ms)


def _evidence(view: RunView, lane: PartitionView, from_ms: float, until_ms: float) -> Evidence:
    margin = max(200.0, (until_ms - from_ms) * _MARGIN)
    from_s, until_s = ((each - view.zero_ms) / 1000 for each in (from_ms - margin, until_ms + margin))
    at = f"{view.design}: {lane.name} at {(from_ms - view.zero_ms) / 1000:.1f} s"
    return Evidence(view.scenario, view.design, at, lane.name, round(from_s, 3), round(until_s, 3))
