"""A state machine as an SVG picture: `picture(machine)`.

The states are cards below each other, in the machine's order. A move to the next card is an arrow between the two, any
other move a line in the card that names its target, and also an arrow along the right edge, with one rail for each
target; only states that are set apart are named and not drawn to. What moves every state to the same one is the bus on
the left. Nothing is placed by hand, so nothing overlaps, and a phone shows the whole width.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape, path, rect, text
from docs.generators.figure_text import WIDTH, arrow_down, figure, head, width_of, wrapped
from docs.generators.machines import listed
from docs.generators.requests_by_state import WAITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from docs.generators.machines import Machine, Move, State

LEFT, BUS, MARGIN, RAIL, PAD = 32, 19, 8, 11, 9
HEAD, LINE, TOP = 23, 14.5, 8
#: The room between two cards: without a move from one to the next, and with an arrow but no text.
GAP, SHORT = 12, 20
STAYS = "stays"


class _Said(NamedTuple):
    """A paragraph of a card; `kind` is the colour of what it names."""

    heading: str
    text: str
    heading_classes: str
    classes: str = ""
    kind: str = ""


class _Source(NamedTuple):
    """Where a rail begins."""

    target: str
    y: float


class _Rail(NamedTuple):
    """An arrow to a state along the right edge, from all its sources."""

    target: str
    ends: tuple[float, ...]
    lane: int


def picture(machine: Machine) -> str:
    """The SVG text. How many lanes the rails need is known once the cards are placed, so they are placed twice."""
    first = _Picture(machine, 5)
    first.drawn()
    return _Picture(machine, first.lanes_used()).drawn()


def words(machine: Machine) -> str:
    """The machine in sentences, for those who do not see it."""
    return f"{machine.says} " + " ".join(map(_sentence, machine.states))


def _sentence(state: State) -> str:
    moves = "; ".join(f"to {move.target}{': ' if move.reasons else ''}{listed(move.reasons)}" for move in state.moves)
    facts = "; ".join(f"{heading}: {said}" for heading, said in state.facts)
    return f"{state.name} ({state.says}){f': {moves}' if moves else ''}{f' [{facts}]' if facts else ''}."


class _Picture:
    def __init__(self, machine: Machine, lanes: int) -> None:
        self._machine = machine
        self._kinds = {state.name: state.kind for state in machine.states}
        self._lanes = lanes
        self._tops: dict[str, float] = {}
        self._sources: list[_Source] = []
        self._shapes: list[Shape] = []

    @property
    def _right(self) -> float:
        return WIDTH - MARGIN - RAIL * self._lanes - (6 if self._lanes else 0)

    def lanes_used(self) -> int:
        return 1 + max((rail.lane for rail in self._placed()), default=-1)

    def _pairs(self) -> Iterator[tuple[State, str]]:
        states = self._machine.states
        for number, state in enumerate(states):
            yield state, states[number + 1].name if number + 1 < len(states) else ""

    def _others(self, state: State, follower: str) -> Iterator[Move]:
        """The moves that are lines of the card; those along the bus are not."""
        reason, target = self._machine.bus
        for move in state.moves:
            if move.target == follower and move.target != target:
                continue
            left = tuple(each for each in move.reasons if (each, move.target) != (reason, target))
            if left or not move.reasons:
                yield move._replace(reasons=left)

    def _is_drawn(self, state: State, move: Move) -> bool:
        return move.target not in (state.name, self._machine.bus[1], *self._machine.apart)

    # -- from top to bottom ------------------------------------------------------------------------------------------

    def drawn(self) -> str:
        y: float = TOP
        for line in wrapped(self._machine.says, WIDTH - 2 * MARGIN):
            self._shapes.append(text(line, MARGIN, y + 11, class_="faint"))
            y += LINE
        y += 8
        for state, follower in self._pairs():
            y = self._card(state, follower, y)
            y = self._between(state, follower, y)
        shapes = [*self._rails(), *self._bus(), *self._shapes]
        return figure(self._machine.title, shapes, y + 4, words(self._machine))

    def _card(self, state: State, follower: str, top: float) -> float:
        """One state; returns where it ends."""
        self._tops[state.name] = top
        room = self._right - LEFT - 2 * PAD
        y = top + HEAD
        rows: list[Shape] = []
        for line in wrapped(state.says, room):
            y += LINE
            rows.append(text(line, LEFT + PAD, y - 2, class_="faint"))
        for heading, requests in state.facts:
            classes = "b" if heading in (WAITS, "asks") else "b bad" if "_" in heading else "b good"
            y = self._paragraph(rows, y, _Said(f"{heading}:", requests, classes))
        stays: Sequence[str] = ()
        for move in self._others(state, follower):
            if move.target == state.name:
                stays = move.reasons
                continue
            if self._is_drawn(state, move):
                self._sources.append(_Source(move.target, y + LINE - 6))
            said = _Said(f"→ {move.target}", listed(move.reasons), "b", kind=self._kinds[move.target])
            y = self._paragraph(rows, y, said, data_move=f"{state.name} {move.target}")
        if stays:
            said = _Said(f"{STAYS}:", listed(stays), "faint b", "faint")
            y = self._paragraph(rows, y, said, data_move=f"{state.name} {state.name}")
        bottom = y + 7
        self._shapes += [
            rect(LEFT, top, self._right - LEFT, bottom - top, class_="card", rx=4),
            path(_top_rounded(LEFT, top, self._right - LEFT, HEAD), class_=state.kind),
            text(state.name, LEFT + PAD, top + 16, class_="name on"),
            text(state.note, self._right - PAD, top + 16, class_="on", text_anchor="end"),
            *rows,
        ]
        return bottom

    def _paragraph(self, rows: list[Shape], y: float, said: _Said, **attributes: str) -> float:
        """A heading and what belongs to it, behind it and on the lines below; `attributes` are the heading's."""
        x = LEFT + PAD
        if said.kind:
            rows.append(rect(x, y + LINE - 11, 8, 8, class_=said.kind, rx=1.5))
        begin = x + (13 if said.kind else 0)
        behind = begin + width_of(said.heading, bold=True) + 5
        rows.append(text(said.heading, begin, y + LINE - 3, class_=said.heading_classes, **attributes))
        first, *others = wrapped(said.text, self._right - PAD - x - 13, first=self._right - PAD - behind)
        if first:
            rows.append(text(first, behind, y + LINE - 3, class_=said.classes))
        for number, line in enumerate(others, start=2):
            rows.append(text(line, x + 13, y + number * LINE - 3, class_=said.classes))
        return y + LINE * (1 + len(others))

    def _between(self, state: State, follower: str, top: float) -> float:
        """The arrow to the next card, if there is such a move; returns where that card begins."""
        move = next((m for m in state.moves if m.target == follower and follower != self._machine.bus[1]), None)
        if move is None:
            return top + GAP
        lines = wrapped(listed(move.reasons), self._right - LEFT - 40) if move.reasons else []
        bottom = top + (10 + LINE * len(lines) if lines else SHORT)
        kind = self._kinds[follower]
        x = LEFT + 22
        self._shapes += [
            *arrow_down(x, top, bottom, kind, data_move=f"{state.name} {follower}"),
            *(text(line, x + 12, top + 3 + LINE * (n + 1) - 2, class_="") for n, line in enumerate(lines)),
        ]
        return bottom

    # -- at the edges ------------------------------------------------------------------------------------------------

    def _rails(self) -> Iterable[Shape]:
        for rail in self._placed():
            kind = self._kinds[rail.target]
            x = self._right + 10 + RAIL * rail.lane
            to = self._tops[rail.target] + HEAD / 2
            for y in rail.ends:
                yield path(
                    f"M{self._right:.1f} {y:.1f}H{x:.1f}V{to:.1f}H{self._right + 7:.1f}", class_=f"line s-{kind}"
                )
                yield rect(self._right - 2, y - 2, 4, 4, class_=f"h-{kind}", rx=2)
            yield head(self._right, to, -1, kind)

    def _placed(self) -> Iterator[_Rail]:
        """The rails, short ones first, each in the first lane that is free along its length."""
        ends: dict[str, list[float]] = {}
        for source in self._sources:
            ends.setdefault(source.target, []).append(source.y)
        lengths = {}
        for target, ys in ends.items():
            everything = [*ys, self._tops[target] + HEAD / 2]
            lengths[target] = (min(everything), max(everything))
        taken: list[list[tuple[float, float]]] = []
        for target, (low, high) in sorted(lengths.items(), key=lambda each: each[1][1] - each[1][0]):
            lane = next((n for n, used in enumerate(taken) if all(high + 9 < a or b + 9 < low for a, b in used)), -1)
            if lane < 0:
                lane = len(taken)
                taken.append([])
            taken[lane].append((low, high))
            yield _Rail(target, tuple(ends[target]), lane)

    def _bus(self) -> Iterable[Shape]:
        reason, target = self._machine.bus
        kind = self._kinds[target]
        to = self._tops[target] + HEAD / 2
        froms = {
            state.name: self._tops[state.name] + HEAD / 2
            for state in self._machine.states
            if any(move.target == target and reason in move.reasons for move in state.moves)
        }
        ys = (*froms.values(), to)
        yield path(f"M{BUS} {min(ys):.1f}V{max(ys):.1f}M{BUS} {to:.1f}H{LEFT - 7}", class_=f"line s-{kind}")
        yield head(LEFT, to, 1, kind)
        for name, y in froms.items():
            yield path(f"M{LEFT} {y:.1f}H{BUS}", class_=f"line s-{kind}", data_move=f"{name} {target}")
        for y in _label_places(ys):
            yield text(reason, 13, y, class_="b", text_anchor="middle", transform=f"rotate(-90 13 {y:.1f})")


def _label_places(ys: Sequence[float]) -> Iterator[float]:
    """The middle of the bus; of a long one, every 600."""
    low, high = min(ys), max(ys)
    number = max(1, round((high - low) / 600))
    yield from (low + (high - low) * (n + 0.5) / number for n in range(number))


def _top_rounded(x: float, y: float, width: float, height: float, radius: float = 4) -> str:
    return (
        f"M{x:.1f} {y + height:.1f}V{y + radius:.1f}q0 -{radius} {radius} -{radius}"
        f"H{x + width - radius:.1f}q{radius} 0 {radius} {radius}V{y + height:.1f}z"
    )


def pictures(machines: Iterable[Machine]) -> Mapping[str, str]:
    """{file name: SVG text}"""
    return {f"machine-{machine.name}.svg": picture(machine) for machine in machines}
