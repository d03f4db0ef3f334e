"""A state machine on one screen, circles and arrows: `picture(machine)`, for `state-machines.md`.

The states have their places in `machine_places`, the ordinary path in a row or as a ring; `machine_layout` finds the
courses of the arrows. An arrow bears its main reason and how many more there are; all are in the cards and in the
table. To a state that many others lead to (`Places.once`), and for the reason that leads everywhere to the same one
(`Machine.bus`), there is one arrow from nowhere. A state that stays as it is has no arrow.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.markup import Shape, drawing, path, rect, text
from docs.generators.figure_text import style, width_of, wrapped
from docs.generators.machine_layout import Arrow, Box, Node, conflicts, laid_out
from docs.generators.machine_places import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from docs.generators.machine_layout import Course
    from docs.generators.machines import Machine, Move, State

WIDTH = 860
_STYLE = """
.label { font-size: 11.5px; } .state { font-size: 12px; font-weight: 700; }
.thick { stroke-width: 2.6px; } .many { stroke-dasharray: 5 4; }
"""
#: The sizes of a state's name and of a label, as in the style, and between two lines.
_SIZE, _LABEL, _LINE = 12.0, 11.5, 13.5
#: Letters of the reasons of an arrow that stands for many.
_FROM_MAX = 30
_FROM_WRAP, _WRAP = 150.0, 100.0
#: Half the height of a circle, and what is beside its name.
_RY, _PAD = 25.0, 9.0


class Drawn(NamedTuple):
    """An arrow with what it says, the moves that it stands for, and whether it is of the ordinary path."""

    arrow: Arrow
    lines: tuple[str, ...]
    #: (from, to, reason)
    moves: tuple[tuple[str, str, str], ...]
    is_path: bool


class Laid(NamedTuple):
    """A machine whose picture is ready: what the check reads."""

    nodes: Mapping[str, Node]
    drawn: tuple[Drawn, ...]
    courses: tuple[Course, ...]
    size: Box

    def conflicts(self) -> list[str]:
        return conflicts(self.nodes, [each.arrow for each in self.drawn], self.courses, self.size)


def laid(machine: Machine) -> Laid:
    nodes, height = _nodes(machine)
    size = Box(6, 6, WIDTH - 6, height - 6)
    drawn = tuple(_drawn(machine))
    return Laid(nodes, drawn, tuple(laid_out(nodes, [each.arrow for each in drawn], size)), size)


def picture(machine: Machine) -> str:
    """The SVG text."""
    found = laid(machine)
    shapes: list[Shape] = []
    labels: list[Shape] = []
    for each, course in zip(found.drawn, found.courses, strict=True):
        shapes += _arrow(each, course)
        labels += _label(each, course)
    for state in machine.states:
        shapes += _circle(state, found.nodes[state.name])
    size = (WIDTH, round(found.size.bottom + 6))
    paper = rect(0, 0, *size, class_="paper")
    shown = {"width": size[0], "height": size[1]}
    title = f"{machine.title}: states and moves"
    says = "The table below says the same."
    return str(drawing(title, [paper, *shapes, *labels], size, says=says, style=style() + _STYLE, **shown))


def pictures(machines: Iterable[Machine]) -> Mapping[str, str]:
    """{file name: SVG text}"""
    return {f"map-{machine.name}.svg": picture(machine) for machine in machines}


# -- what is drawn -----------------------------------------------------------------------------------------------------


def _drawn(machine: Machine) -> Iterable[Drawn]:
    """The arrows from one state to another, and those from nowhere, which stand for all the other moves there."""
    places = PLACES[machine.name]
    for target in machine.states:
        moves = [(state, move) for state in machine.states for move in state.moves if move.target == target.name]
        moves = [(state, move) for state, move in moves if state is not target]
        own = [(state.name, target.name) for state, _ in moves if _is_own(machine, state.name, target.name)]
        once = {reason for state, move in moves if (state.name, target.name) not in own for reason in move.reasons}
        once |= {machine.bus[0]} if target.name == machine.bus[1] else set()
        left: list[tuple[str, str]] = []
        for state, move in moves:
            pair = (state.name, target.name)
            reasons = move.reasons if pair in places.path else tuple(each for each in move.reasons if each not in once)
            if pair in own and (reasons or not move.reasons):
                yield _one(machine, state, move._replace(reasons=reasons))
            else:
                reasons = ()
            left += [(state.name, reason) for reason in move.reasons if reason not in reasons]
        if left:
            yield _many(target.name, left)


def _is_own(machine: Machine, start: str, end: str) -> bool:
    places, pair = PLACES[machine.name], (start, end)
    return end not in places.once or pair in places.path or pair in places.own


def _one(machine: Machine, state: State, move: Move) -> Drawn:
    says = _few_words(machine, state, move) if move.reasons else ""
    stands_for = tuple((state.name, move.target, reason) for reason in move.reasons or ("",))
    return _said(
        state.name, move.target, says, stands_for, is_path=(state.name, move.target) in PLACES[machine.name].path
    )


def _few_words(machine: Machine, state: State, move: Move) -> str:
    """The main reason, and how many more there are; with what tells the move from others for the same event."""
    places = PLACES[machine.name]
    main = places.main.get((state.name, move.target), "")
    reason = next(each for each in move.reasons if each.startswith(main))
    event, _, condition = reason.partition(": ")
    elsewhere = [
        each.partition(": ")[2].split(", ")
        for other in state.moves
        if other.target not in (move.target, state.name) and _is_own(machine, state.name, other.target)
        for each in other.reasons
        if each.partition(": ")[0] == event
    ]
    told = (part for part in condition.split(", ") if elsewhere and all(part not in other for other in elsewhere))
    says = ": ".join(filter(None, (places.brief.get(event, event), next(told, ""))))
    return f"{says} (+{len(move.reasons) - 1})" if len(move.reasons) > 1 else says


def _many(target: str, moves: Sequence[tuple[str, str]]) -> Drawn:
    sources: dict[str, set[str]] = {}
    for state, reason in moves:
        sources.setdefault(reason.partition(": ")[0], set()).add(state)
    reasons = sorted(sources, key=lambda reason: -len(sources[reason]))
    states = {state for state, _ in moves}
    shown = reasons[: 2 if len(", ".join(reasons[:2])) < _FROM_MAX else 1]
    more = f" (+{len(reasons) - len(shown)})" if len(reasons) > len(shown) else ""
    says = f"from {len(states)} state{'s'[: len(states) - 1]}: {', '.join(shown)}{more}"
    return _said("", target, says, tuple((state, target, reason) for state, reason in moves))


def _said(
    start: str, end: str, says: str, stands_for: tuple[tuple[str, str, str], ...], *, is_path: bool = False
) -> Drawn:
    lines = tuple(wrapped(says, _WRAP if start else _FROM_WRAP, size=_LABEL)) if says else ()
    width = max((width_of(line, _LABEL) for line in lines), default=-4.0) + 4
    arrow = Arrow(start, end, width, len(lines) * _LINE + 2 if lines else 0.0, 3 if is_path else 1)
    return Drawn(arrow, lines, stands_for, is_path)


def _nodes(machine: Machine) -> tuple[dict[str, Node], float]:
    places = PLACES[machine.name]
    nodes = {}
    for state in machine.states:
        x, y = places.states[state.name]
        names = _named(state.name)
        half = max(width_of(name, _SIZE, bold=True) for name in names) / 2
        nodes[state.name] = Node(x, y, half * (1.13 if len(names) > 1 else 1.02) + _PAD, _RY)
    return nodes, places.height


def _named(name: str) -> list[str]:
    """A long name on two lines."""
    parts = (
        re.findall(r"[A-Z]+_?|[A-Z][a-z]+", name) if name.isupper() or "_" in name else re.findall(r"[A-Z][a-z]+", name)
    )
    if len(name) < 10 or len(parts) < 2:
        return [name]
    cuts = (("".join(parts[:n]), "".join(parts[n:])) for n in range(1, len(parts)))
    return list(min(cuts, key=lambda pair: max(map(len, pair))))


# -- shapes ------------------------------------------------------------------------------------------------------------


def _circle(state: State, node: Node) -> Iterable[Shape]:
    yield Shape(
        "ellipse",
        {
            "cx": f"{node.x:.1f}",
            "cy": f"{node.y:.1f}",
            "rx": f"{node.rx:.1f}",
            "ry": f"{node.ry:.1f}",
            "class": f"{state.kind} ink",
        },
    )
    names = _named(state.name)
    for number, name in enumerate(names):
        y = node.y + 4 + (number - (len(names) - 1) / 2) * 14
        yield text(name, node.x, y, class_="state on", text_anchor="middle")


def _arrow(each: Drawn, course: Course) -> Iterable[Shape]:
    start, control, end = course.start, course.control, course.end
    dx, dy = end.x - control.x, end.y - control.y
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    ux, uy = dx / length, dy / length
    bx, by = end.x - 8 * ux, end.y - 8 * uy
    kind = "thick " if each.is_path else "" if each.arrow.start else "many "
    yield path(
        f"M{start.x:.1f} {start.y:.1f}Q{control.x:.1f} {control.y:.1f} {bx:.1f} {by:.1f}",
        class_=f"line ink {kind}".strip(),
        data_move=f"{each.arrow.start} {each.arrow.end}".strip(),
    )
    yield path(
        f"M{bx - 4 * uy:.1f} {by + 4 * ux:.1f}L{bx + 4 * uy:.1f} {by - 4 * ux:.1f}L{end.x:.1f} {end.y:.1f}z",
        class_="h-ink",
    )


def _label(each: Drawn, course: Course) -> Iterable[Shape]:
    box = course.label
    if box is None:
        return
    yield rect(box.left, box.top, box.right - box.left, box.bottom - box.top, class_="paper")
    for number, line in enumerate(each.lines):
        y = box.top + 11.5 + number * _LINE
        yield text(
            line,
            (box.left + box.right) / 2,
            y,
            class_="label" if each.arrow.start else "label faint",
            text_anchor="middle",
        )
