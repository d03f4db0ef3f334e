"""The intervals of a group's lanes, as they open and close. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.playground import messages

if TYPE_CHECKING:
    from collections.abc import Iterator

_Key = tuple[messages.IntervalKind, str, str]


class Lanes:
    """Open intervals by kind, member, and partition or label; `drained` gives those that changed."""

    def __init__(self) -> None:
        self._open: dict[_Key, messages.Interval] = {}
        self._changed: dict[int, messages.Interval] = {}
        self._ids = 0

    def open(
        self, kind: messages.IntervalKind, member: str, at_ms: float, *, partition: str = "", label: str = ""
    ) -> None:
        """Open an interval, unless it is open."""
        key = (kind, member, partition or label)
        if key in self._open:
            return
        made = messages.Interval(
            id=self._ids, kind=kind, member=member, from_ms=int(at_ms), partition=partition, label=label
        )
        self._ids += 1
        self._open[key] = self._changed[made.id] = made

    def close(
        self, kind: messages.IntervalKind, member: str, at_ms: float, *, partition: str = "", label: str = ""
    ) -> None:
        """Close an interval, if it is open."""
        known = self._open.pop((kind, member, partition or label), None)
        if known is not None:
            self._changed[known.id] = replace(known, to_ms=max(int(at_ms), known.from_ms))

    def rename(self, kind: messages.IntervalKind, member: str, now: str, *, partition: str) -> None:
        """An open interval is another member's."""
        known = self._open.pop((kind, member, partition), None)
        if known is not None:
            self._open[kind, now, partition] = self._changed[known.id] = replace(known, member=now)

    def close_all(self, kind: messages.IntervalKind, member: str, at_ms: float) -> None:
        """Close all intervals of this kind that a member has open."""
        for of_kind, of_member, what in [key for key in self._open if key[:2] == (kind, member)]:
            self.close(of_kind, of_member, at_ms, partition=what)

    def drained(self) -> Iterator[messages.Interval]:
        """The intervals that opened or closed since the last call; one that did both comes once, closed."""
        changed, self._changed = self._changed, {}
        yield from changed.values()
