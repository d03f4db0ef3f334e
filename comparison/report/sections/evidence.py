"""Links from what is said to where it is seen: a run's lanes, a partition, a stretch of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from comparison.report.view.model import Commit, PartitionView, RunView, Stretch

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
    return _first_commit(view, lambda commit: commit.moved_back_by > 0)


def first_stale(view: RunView) -> Evidence | None:
    """Accepted from a member that was not the owner."""
    return _first_commit(view, lambda commit: commit.is_accepted and commit.is_stale)


def first_again(view: RunView) -> Evidence | None:
    """Where records were first delivered again; it may be on any partition."""
    again = [each for each in view.course if each.duplicates]
    return of_change(view, "delivered again", again[0].from_ms, again[0].until_ms) if again else None


def _first_commit(view: RunView, is_sought: Callable[[Commit], bool]) -> Evidence | None:
    found = [(each.at_ms, lane) for lane in view.partitions for each in lane.commits if is_sought(each)]
    if not found:
        return None
    at_ms, lane = min(found, key=lambda each: each[0])
    return stretch(view, lane.name, at_ms, at_ms + 1_000)


def longest_unowned(view: RunView) -> Evidence | None:
    found = [(each.length_ms, lane, each) for lane in view.partitions for each in lane.unclaimed]
    if not found:
        return None
    _, lane, longest = max(found, key=lambda each: each[0])
    return stretch(view, lane.name, longest.from_ms, longest.until_ms)


def _first(view: RunView, of: Callable[[PartitionView], Iterable[Stretch]]) -> Evidence | None:
    found = [(each.from_ms, lane, each) for lane in view.partitions for each in of(lane)]
    if not found:
        return None
    _, lane, first = min(found, key=lambda each: each[0])
    return stretch(view, lane.name, first.from_ms, first.until_ms)


def stretch(view: RunView, partition: str, from_ms: float, until_ms: float) -> Evidence:
    """A stretch of one partition's lane, with what is around it."""
    return _place(view, partition, partition, from_ms, until_ms)


def of_change(view: RunView, what: str, from_ms: float, until_ms: float) -> Evidence:
    """A stretch of all lanes, with what is around it."""
    return _place(view, what, "", from_ms, until_ms)


def _place(view: RunView, what: str, partition: str, from_ms: float, until_ms: float) -> Evidence:
    margin = max(200.0, (until_ms - from_ms) * _MARGIN)
    from_s, until_s = ((each - view.zero_ms) / 1000 for each in (from_ms - margin, until_ms + margin))
    at = f"{view.design}: {what} at {(from_ms - view.zero_ms) / 1000:.1f} s"
    return Evidence(view.scenario, view.design, at, partition, round(from_s, 3), round(until_s, 3))
