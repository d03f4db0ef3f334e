"""A recorded conversation as a sequence figure, with the phases of each member beside its line.

The member that joins is on the left, the coordinator (or ZooKeeper) in the middle, on the right the group's leader (in
`server` ZooKeeper, in `consumer` another member). A trace has the answers only: a request that waits is placed where it
can first have been sent.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape, path, rect, text
from docs.generators.figure_text import WIDTH, figure, head, width_of
from docs.generators.machines import GROUP_KINDS
from docs.generators.phases import COORDINATOR, HEARTBEAT, LEADER, NEW, OTHER, PHASES, WAITS
from kernel.designs import SERVER, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from docs.generators.phases import Happened

#: The colours of the phases; those of joining, syncing and working are those of the group's states meanwhile.
KINDS: Mapping[int, str] = {1: "k6", 2: "k1", 3: "k0", 4: "k2"}
_LEFT, _MIDDLE, _RIGHT = 22, 205, 388
_WAITING = frozenset({"JoinGroup", "SyncGroup", "AwaitCommand"})
ANSWERED = " is answered"
_NAMES: Mapping[str, str] = {NEW: "the new member", LEADER: "the leader", OTHER: "another member"}
_TITLE = "The four phases of a member that joins a group, recorded in the design {}"


class Row(NamedTuple):
    """A row of the figure; `below` is what was answered."""

    ms: float
    who: str
    kind: str  #: call, ask, answer, state or note
    said: str
    below: str = ""
    phase: int = 0


def rows_of(conversation: Sequence[Happened]) -> tuple[Row, ...]:
    """What is drawn of a conversation, from top to bottom."""
    found: list[Row] = []
    last_ms: dict[str, float] = {}
    moved_ms: float | None = None
    for each in _merged(conversation):
        if each.kind in ("state", "note"):
            found.append(Row(each.ms, each.who, each.kind, each.what, each.detail, each.phase))
        elif each.kind == "operation":
            found.append(Row(each.ms, each.who, "call", f"{each.what} {each.detail}", "", each.phase))
        elif each.what in _WAITING and not each.detail:
            found.append(Row(last_ms.get(each.who, each.ms) + 0.01, each.who, "ask", each.what, "", each.phase))
            found.append(Row(each.ms, each.who, "answer", f"{each.what}{ANSWERED}", "", each.phase))
        else:
            kind = "ask" if each.detail == WAITS else "call"
            # The heartbeat that moves a group is answered after the move.
            at = moved_ms - 0.01 if each.what == HEARTBEAT and moved_ms is not None else each.ms
            found.append(Row(at, each.who, kind, each.what, each.detail, each.phase))
        last_ms[each.who] = each.ms
        moved_ms = None if each.kind != "state" else each.ms if moved_ms is None else moved_ms
    return tuple(sorted(found, key=lambda row: row.ms))


def _merged(conversation: Sequence[Happened]) -> Iterator[Happened]:
    """Operations of one kind in one folder, one after the other, as one."""
    run: list[Happened] = []
    for each in (*conversation, None):
        if run and (each is None or each.kind != "operation" or _folder(each) != _folder(run[0])):
            yield _as_one(run)
            run = []
        if each is not None and each.kind == "operation":
            run.append(each)
        elif each is not None:
            yield each


def _folder(operation: Happened) -> tuple[str, str, int]:
    return operation.what, re.sub(r"/[^/]+$", "", operation.detail), operation.phase


def _as_one(run: Sequence[Happened]) -> Happened:
    names = list(dict.fromkeys(each.detail for each in run))
    if len(names) > 1:
        folder = _folder(run[0])[1]
        joined = f"{folder}/{', '.join(name.removeprefix(f'{folder}/') for name in names)}"
        return run[-1]._replace(detail=joined)
    many = f" x {len(run)}" if len(run) > 1 else ""
    return run[-1]._replace(detail=f"{names[0]}{many}")


def picture(design: str, conversation: Sequence[Happened]) -> str:
    return _Picture(design, rows_of(conversation)).drawn()


class _Picture:
    def __init__(self, design: str, rows: Sequence[Row]) -> None:
        self._design = design
        self._rows = rows
        self._shapes: list[Shape] = []
        self._asked: dict[tuple[str, str], float] = {}
        self._bars: dict[str, list[tuple[int, float]]] = {NEW: [], LEADER: [], OTHER: []}
        self._middle = "ZooKeeper" if design == ZOOKEEPER else "the coordinator"
        self._middle_x = _RIGHT if design == ZOOKEEPER else _MIDDLE
        named = next((_NAMES[row.who] for row in rows if row.who in (LEADER, OTHER)), "")
        self._right = named or ("ZooKeeper" if design == SERVER else "")

    def drawn(self) -> str:
        y = self._legend(8)
        top = y + 26
        y = top + 8
        for row in self._rows:
            y = self._row(row, y)
        bottom = y + 10
        middle = "end" if self._middle_x == _RIGHT else "middle"
        lines = [
            (_LEFT, "the new member", "start"),
            (self._middle_x, self._middle, middle),
            (_RIGHT, self._right, "end"),
        ]
        back: list[Shape] = []
        for x, name, anchor in lines:
            if name:
                back.append(path(f"M{x} {top}V{bottom}", class_="line edge"))
                edge = {"start": 6, "middle": x, "end": WIDTH - 6}[anchor]
                back.append(text(name, edge, top - 6, class_="b", text_anchor=anchor))
        back += self._phase_bars(bottom)
        return figure(_TITLE.format(self._design), [*back, *self._shapes], bottom + 6, self._words())

    def _words(self) -> str:
        names = {**_NAMES, COORDINATOR: self._middle}
        said = (
            f"{row.ms:.0f} ms, {names[row.who]}: {row.kind} {row.said}{f' ({row.below})' if row.below else ''}."
            for row in self._rows
        )
        return " ".join(said)

    def _legend(self, y: float) -> float:
        x = 6.0
        for phase, name in PHASES.items():
            width = width_of(f"{phase} {name}") + 26
            if x + width > WIDTH:
                x, y = 6, y + 18
            self._shapes.append(rect(x, y, 11, 11, class_=KINDS[phase], rx=2))
            self._shapes.append(text(f"{phase} {name}", x + 15, y + 10, class_=""))
            x += width
        return y + 22

    def _row(self, row: Row, y: float) -> float:
        if row.kind == "state":
            return self._state(row, y)
        x = _LEFT if row.who == NEW else _RIGHT
        side = 1 if row.who == NEW else -1
        anchor = {} if side > 0 else {"text_anchor": "end"}
        self._phase(row, y)
        if row.kind == "note":
            self._shapes.append(rect(x - 3, y + 5, 6, 6, class_="h-ink"))
            self._shapes.append(text(row.said, x + 9 * side, y + 12, class_="faint", **anchor))
            return y + 20
        # Behind the head of the arrow, if there is one.
        gap, classes = (15, "") if row.kind == "answer" else (9, "b")
        self._shapes.append(text(row.said, x + gap * side, y + 11, class_=classes, **anchor))
        line = y + 17
        self._arrow(row, x, side, line)
        if row.kind == "answer":
            asked = self._asked.pop((row.who, row.said.removesuffix(ANSWERED)), line)
            self._shapes.append(rect(x - 2, asked, 4, line - asked, class_="h-ink", rx=1))
        if row.kind == "ask":
            self._asked[row.who, row.said] = line
        if not row.below:
            return line + 8
        classes = "bad" if row.below.isupper() else "faint"
        self._shapes.append(text(row.below, x + 9 * side, line + 12, class_=classes, **anchor))
        return line + 20

    def _arrow(self, row: Row, x: float, side: int, y: float) -> None:
        """To the coordinator, or from it. A search ends at any broker, an operation at ZooKeeper's line."""
        to: float = self._middle_x
        if row.said == "FindCoordinator":
            to = x + 104 * side
            self._shapes.append(text("any broker", to + 8 * side, y + 4, class_="faint"))
        elif self._design == SERVER and " ids" in row.said:
            to = _RIGHT
        if row.kind == "answer":
            x, to, side = to, x, -side
        dash = {"stroke_dasharray": "5 3"} if row.kind == "answer" else {}
        self._shapes.append(path(f"M{x} {y}H{to - 7 * side}", class_="line ink", **dash))
        self._shapes.append(head(to, y, side))

    def _state(self, row: Row, y: float) -> float:
        """The group's state, across the coordinator's line."""
        width = max(width_of(row.said, bold=True), width_of(row.below)) + 18
        self._shapes.append(rect(_MIDDLE - width / 2, y + 3, width, 34, class_=f"box {GROUP_KINDS[row.said]}", rx=4))
        self._shapes.append(text(row.said, _MIDDLE, y + 17, class_="b on", text_anchor="middle"))
        self._shapes.append(text(row.below, _MIDDLE, y + 31, class_="on", text_anchor="middle"))
        return y + 43

    def _phase(self, row: Row, y: float) -> None:
        """A member's phase lasts until it does something of another one."""
        bars = self._bars[row.who]
        if row.kind != "note" and (not bars or bars[-1][0] != row.phase):
            bars.append((row.phase, y))

    def _phase_bars(self, bottom: float) -> Iterator[Shape]:
        for who, x in ((NEW, _LEFT - 16), (LEADER, _RIGHT + 10), (OTHER, _RIGHT + 10)):
            bars = self._bars[who]
            if not bars:
                continue
            ends = [*(y for _, y in bars[1:]), bottom]
            for (phase, y), end in zip(bars, ends, strict=True):
                yield rect(x, y + 1, 11, end - y - 2, class_=KINDS[phase], rx=2)
                yield text(str(phase), x + 5.5, y + 12, class_="b on", text_anchor="middle")
