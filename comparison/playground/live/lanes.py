"""The layout of a group's live lanes: intervals as they open and close, with their rows and colours. Pure.

Between the intervals of those who are named or deliver lie others, which follow from them: nobody, or several at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from comparison.playground import messages
from comparison.report.drawing.palette import style
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_Key = tuple[messages.IntervalKind, str, str]
_KIND = messages.IntervalKind
#: What of a lane is shown while it has no member.
_NOBODY = {_KIND.NAMED: _KIND.UNNAMED, _KIND.DELIVERING: _KIND.NOBODY}
#: More members than these at once share the last row.
ROWS_MAX = 3


def style_of(member: str) -> str:
    """The classes of a member's bars: m1 has the first colour, in every design and in all its lives."""
    number = re.search(r"\d{1,9}", member, re.ASCII)
    return style(max(0, int(number[0]) - 1 if number else 0))


class Lanes:
    """Open intervals by kind, member, and partition or label; `drained` gives those that changed."""

    def __init__(self) -> None:
        self._open: dict[_Key, messages.Interval] = {}
        self._changed: dict[int, messages.Interval] = {}
        self._ids = 0

    def open(self, kind: _KIND, member: str, at_ms: float, *, partition: str = "", label: str = "") -> None:
        """Open an interval, unless it is open."""
        if (kind, member, partition or label) not in self._open:
            look = style_of(member) if kind is not _KIND.PHASE else "phase p-" + re.sub(r"\W", "", label, flags=re.A)
            row = self._free_row(partition) if kind is _KIND.DELIVERING else 0
            self._add(kind, member, at_ms, partition=partition, label=label, style=look, row=row)
            self._follow(kind, at_ms, partition)

    def mark(self, at_ms: float, label: str, style: str, text: str, members: Iterable[str] = ()) -> None:
        """Mark what was done, or came of it; `style` as in `messages.Interval`."""
        who = "+".join(members)
        self._add(_KIND.ACT, who, at_ms, label=label, style=style, text=text)
        self._end((_KIND.ACT, who, label), at_ms)

    def close(self, kind: _KIND, member: str, at_ms: float, *, partition: str = "", label: str = "") -> None:
        """Close an interval, if it is open."""
        if (kind, member, partition or label) in self._open:
            self._end((kind, member, partition or label), at_ms)
            self._follow(kind, at_ms, partition)

    def rename(self, kind: _KIND, member: str, now: str, *, partition: str) -> None:
        """An open interval is another member's."""
        known = self._open.pop((kind, member, partition), None)
        if known is not None:
            renamed = replace(known, member=now, style=known.style and style_of(now))
            self._open[kind, now, partition] = self._changed[known.id] = renamed

    def leave_to(self, member: str, at_ms: float, partition: str) -> None:
        """Nobody delivers a partition, if so, because this member has it and is frozen; or nobody has it: ''."""
        known = next(iter(self._having(_KIND.NOBODY, partition)), None)
        if known is not None and known.member != member:
            if known.from_ms == int(at_ms):
                self.rename(_KIND.NOBODY, known.member, member, partition=partition)
            else:
                self._end((_KIND.NOBODY, known.member, partition), at_ms)
                self._add(_KIND.NOBODY, member, at_ms, partition=partition)

    def close_all(self, kind: _KIND, member: str, at_ms: float) -> None:
        """Close all intervals of this kind that a member has open."""
        for of_kind, of_member, what in [key for key in self._open if key[:2] == (kind, member)]:
            self.close(of_kind, of_member, at_ms, partition=what)

    def drained(self) -> Iterator[messages.Interval]:
        """The intervals that opened or closed since the last call; one that did both comes once, closed."""
        changed, self._changed = self._changed, {}
        yield from changed.values()

    # -- parts ------------------------------------------------------------------------------------------------

    def _free_row(self, partition: str) -> int:
        taken = {each.row for each in self._having(_KIND.DELIVERING, partition)}
        return min(set(range(ROWS_MAX)) - taken, default=ROWS_MAX - 1)

    def _having(self, kind: _KIND, partition: str) -> list[messages.Interval]:
        return [each for key, each in self._open.items() if key[0] is kind and key[2] == partition]

    def _add(self, kind: _KIND, member: str, at_ms: float, **given: str | int) -> None:
        made = messages.Interval(id=self._ids, kind=kind, member=member, from_ms=int(at_ms), **given)  # type: ignore[arg-type]
        self._ids += 1
        self._open[kind, member, made.partition or made.label] = self._changed[made.id] = made

    def _end(self, key: _Key, at_ms: float) -> None:
        known = self._open.pop(key)
        self._changed[known.id] = replace(known, to_ms=max(int(at_ms), known.from_ms))

    def _follow(self, kind: _KIND, at_ms: float, partition: str) -> None:
        """Whether a partition has nobody now, or several."""
        if kind not in _NOBODY:
            return
        members = [each.member for each in self._having(kind, partition)]
        wanted = (
            (_NOBODY[kind], "")
            if not members
            else (_KIND.BOTH, " + ".join(sorted(members, key=natural)))
            if members[1:]
            else None
        )
        kinds = (_NOBODY[kind], *([_KIND.BOTH] if kind is _KIND.DELIVERING else []))
        there = [key for key in self._open if key[0] in kinds and key[2] == partition]
        for key in there:
            if key[:2] != wanted:
                self._end(key, at_ms)
        if wanted is not None and not any(key[:2] == wanted for key in there):
            self._add(*wanted, at_ms, partition=partition)
