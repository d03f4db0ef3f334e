"""Where the arrows of a state machine run, and where their labels stand: `laid_out(nodes, arrows, size)`.

The states have their places; each arrow is a curve between two of them, or a short one from nowhere, with a label on
it. Every arrow tries each of its courses in turn, beside all the others as they are, until none finds a better one;
what that costs in all decides between several attempts. Costs are whole numbers and the order is fixed, so the same
machine gives the same picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, pairwise
from math import atan2, cos, hypot, pi, sin
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: How far the middle of an arrow may be off the straight line, as a share of its length; and where its label may be.
BOWS = (0.0, 0.1, -0.1, 0.2, -0.2, 0.32, -0.32, 0.48, -0.48, 0.68, -0.68, 0.9, -0.9)
SHARES = (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)
#: Directions and lengths of an arrow from nowhere.
_TURNS, _LENGTHS = 24, (28, 44, 66)
_SAMPLES, _ATTEMPTS, _ROUNDS, _HEAD = 24, 8, 12, 9
#: Around a label, and around a state that an arrow passes.
_CLEAR, _PAST = 3, 5
#: What a course costs that cannot be read: a label on a state, on another, or outside; an arrow through a label, or
#: through a state; a label that covers an end of its arrow.
_ON, _THROUGH_LABEL, _THROUGH_STATE, _CRAMPED = 4_000, 1_500, 3_000, 900
#: And what it costs that is not nice: an arrow across another, along another, or that ends where another does; its bow;
#: its label off the middle.
_ACROSS, _ALONG, _SAME_END, _BOWED, _OFF = 60, 25, 120, 160, 60
_NEVER = 1 << 60


class Point(NamedTuple):
    x: float
    y: float


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box, room: float = 0) -> bool:
        return (
            self.left - room < other.right
            and other.left - room < self.right
            and self.top - room < other.bottom
            and other.top - room < self.bottom
        )

    def has(self, point: Point, room: float = 0) -> bool:
        return self.left - room < point.x < self.right + room and self.top - room < point.y < self.bottom + room


class Node(NamedTuple):
    """A state: an ellipse."""

    x: float
    y: float
    rx: float
    ry: float

    def has(self, point: Point, room: float = 0) -> bool:
        return ((point.x - self.x) / (self.rx + room)) ** 2 + ((point.y - self.y) / (self.ry + room)) ** 2 < 1

    def meets(self, box: Box, room: float = 0) -> bool:
        """The nearest point of the box is inside."""
        return self.has(Point(min(max(self.x, box.left), box.right), min(max(self.y, box.top), box.bottom)), room)

    def edge(self, towards: Point) -> Point:
        angle = atan2((towards.y - self.y) / self.ry, (towards.x - self.x) / self.rx)
        return Point(self.x + self.rx * cos(angle), self.y + self.ry * sin(angle))


class Arrow(NamedTuple):
    """An arrow to draw, from a state or, without one, from nowhere; with the size of its label, none without one."""

    start: str
    end: str
    width: float
    height: float
    #: How much it matters that it is straight.
    weight: int = 1


@dataclass(frozen=True, eq=False)
class Course:
    """Where an arrow runs: a quadratic curve, also as points; and its label's place."""

    start: Point
    control: Point
    end: Point
    label: Box | None
    points: tuple[Point, ...]
    own_cost: int

    @cached_property
    def bounds(self) -> Box:
        corners = [*self.points, *((Point(*self.label[:2]), Point(*self.label[2:])) if self.label else ())]
        xs, ys = [at.x for at in corners], [at.y for at in corners]
        return Box(min(xs), min(ys), max(xs), max(ys))


def laid_out(nodes: Mapping[str, Node], arrows: Sequence[Arrow], size: Box) -> list[Course]:
    """The courses of the arrows: the best of some attempts, each of which begins with other arrows."""
    choices = [sorted(_courses(nodes, arrow, size), key=lambda course: course.own_cost) for arrow in arrows]
    attempts = (_settled(choices, begin * len(arrows) // _ATTEMPTS) for begin in range(_ATTEMPTS))
    best = min(attempts, key=lambda chosen: sum(course.own_cost for course in chosen) + _beside(chosen))
    _between.cache_clear()
    return best


def _beside(chosen: Sequence[Course]) -> int:
    return sum(_between(one, two) for one, two in combinations(chosen, 2))


def _settled(choices: Sequence[Sequence[Course]], begin: int) -> list[Course]:
    """Until no arrow finds a better course, alone or together with one that is in its way."""
    places = [*range(begin, len(choices)), *range(begin)]
    chosen: dict[int, Course] = {}
    for _ in range(_ROUNDS):
        before = dict(chosen)
        for place in places:
            chosen[place] = _best(choices[place], [course for other, course in chosen.items() if other != place])[0]
        for one, two in combinations(places, 2):
            if _between(chosen[one], chosen[two]) >= _THROUGH_LABEL:
                _give_way(choices, chosen, one, two)
        if chosen == before:
            break
    return [chosen[place] for place in range(len(choices))]


def _give_way(choices: Sequence[Sequence[Course]], chosen: dict[int, Course], one: int, two: int) -> None:
    others = [course for place, course in chosen.items() if place not in (one, two)]
    lowest = _cost(chosen[one], others, _NEVER) + _cost(chosen[two], [*others, chosen[one]], _NEVER)
    for course in choices[one]:
        cost = _cost(course, others, lowest)
        if cost < lowest:
            beside, more = _best(choices[two], [*others, course], lowest - cost)
            if cost + more < lowest:
                lowest, chosen[one], chosen[two] = cost + more, course, beside


def _best(choices: Sequence[Course], others: Sequence[Course], most: int = _NEVER) -> tuple[Course, int]:
    """The cheapest beside the others, and what it costs; `choices` are sorted by what each costs alone."""
    best, lowest = choices[0], most
    for course in choices:
        if course.own_cost >= lowest:
            break
        cost = _cost(course, others, lowest)
        if cost < lowest:
            best, lowest = course, cost
    return best, lowest


def _cost(course: Course, others: Sequence[Course], most: int) -> int:
    cost = course.own_cost
    for other in others:
        cost += _between(course, other)
        if cost >= most:
            break
    return cost


@cache
def _between(one: Course, two: Course) -> int:
    if not one.bounds.meets(two.bounds, 12):
        return 0
    cost = 0
    if one.label and two.label and one.label.meets(two.label, _CLEAR):
        cost += _ON
    for label, points in ((one.label, two.points), (two.label, one.points)):
        if label and any(label.has(point, _CLEAR) for point in points):
            cost += _THROUGH_LABEL
    for here in (one.points[0], one.points[-1]):
        cost += sum(_SAME_END for there in (two.points[0], two.points[-1]) if _near(here, there, 11))
    middle, last = one.points[3:-3], len(two.points) - 3
    cost += sum(_ALONG for here in middle if any(_near(here, there, 7) for there in two.points[3:last]))
    return cost + _ACROSS * _crossings(one.points, two.points)


def _near(one: Point, two: Point, distance: float) -> bool:
    return abs(one.x - two.x) < distance and abs(one.y - two.y) < distance


def _crossings(one: Sequence[Point], two: Sequence[Point]) -> int:
    """Of every fourth stretch."""
    ones, twos = one[::4], two[::4]
    return sum(_cross(*here, *there) for here in pairwise(ones) for there in pairwise(twos))


def _cross(a: Point, b: Point, c: Point, d: Point) -> bool:
    return _side(a, b, c) != _side(a, b, d) and _side(c, d, a) != _side(c, d, b)


def _side(a: Point, b: Point, c: Point) -> bool:
    return (b.x - a.x) * (c.y - a.y) > (b.y - a.y) * (c.x - a.x)


# -- the courses of one arrow ------------------------------------------------------------------------------------------


def _courses(nodes: Mapping[str, Node], arrow: Arrow, size: Box) -> Iterator[Course]:
    if not arrow.start:
        yield from _from_nowhere(nodes, arrow, size)
        return
    a, b = nodes[arrow.start], nodes[arrow.end]
    dx, dy = b.x - a.x, b.y - a.y
    for bow in BOWS:
        control = Point((a.x + b.x) / 2 + 2 * bow * dy, (a.y + b.y) / 2 - 2 * bow * dx)
        start, end = a.edge(control), b.edge(control)
        points = tuple(_at(start, control, end, number / _SAMPLES) for number in range(_SAMPLES + 1))
        others = (node for name, node in nodes.items() if name not in (arrow.start, arrow.end))
        cost = round(_BOWED * arrow.weight * abs(bow) * (1 + hypot(dx, dy) / 300))
        cost += sum(_THROUGH_STATE for node in others if any(node.has(point, _PAST) for point in points))
        cost += sum(_THROUGH_STATE for node in (a, b) if any(node.has(point, -3) for point in points[1:-1]))
        cost += sum(_THROUGH_STATE for point in points if not size.has(point))
        for share in SHARES if arrow.width else SHARES[:1]:
            at = _at(start, control, end, share)
            label = _around(at, arrow) if arrow.width else None
            more = _label_cost(nodes, label, size) + round(_OFF * abs(share - 0.5))
            if label and _is_cramped(label, points):
                more += _CRAMPED
            yield Course(start, control, end, label, points, cost + more)


def _from_nowhere(nodes: Mapping[str, Node], arrow: Arrow, size: Box) -> Iterator[Course]:
    node = nodes[arrow.end]
    for turn in range(_TURNS):
        angle = 2 * pi * turn / _TURNS
        across, down = cos(angle), sin(angle)
        for length in _LENGTHS:
            end = node.edge(Point(node.x + across * node.rx, node.y + down * node.ry))
            start = Point(end.x + across * length, end.y + down * length)
            control = Point((start.x + end.x) / 2, (start.y + end.y) / 2)
            middle = Point(start.x + across * (arrow.width / 2 + 2), start.y + down * (arrow.height / 2 + 2))
            label = _around(middle, arrow)
            points = tuple(_at(start, control, end, number / _SAMPLES) for number in range(_SAMPLES + 1))
            cost = length + sum(
                _THROUGH_STATE
                for other in nodes.values()
                if other != node and any(other.has(point, _PAST) for point in points)
            )
            yield Course(start, control, end, label, points, cost + _label_cost(nodes, label, size))


def _is_cramped(label: Box, points: Sequence[Point]) -> bool:
    """The label leaves too little of its arrow to see where it begins or ends."""
    first, last = points[0], points[-1]
    ends = [p for p in points if _near(p, first, 10)] + [p for p in points if _near(p, last, _HEAD + 8)]
    return any(label.has(point) for point in ends)


def _around(at: Point, arrow: Arrow) -> Box:
    return Box(at.x - arrow.width / 2, at.y - arrow.height / 2, at.x + arrow.width / 2, at.y + arrow.height / 2)


def _label_cost(nodes: Mapping[str, Node], label: Box | None, size: Box) -> int:
    if label is None:
        return 0
    outside = label.left < size.left or label.top < size.top or label.right > size.right or label.bottom > size.bottom
    return _ON * (outside + sum(node.meets(label, _CLEAR) for node in nodes.values()))


def _at(start: Point, control: Point, end: Point, share: float) -> Point:
    rest = 1 - share
    return Point(
        rest * rest * start.x + 2 * rest * share * control.x + share * share * end.x,
        rest * rest * start.y + 2 * rest * share * control.y + share * share * end.y,
    )


def conflicts(nodes: Mapping[str, Node], arrows: Sequence[Arrow], courses: Sequence[Course], size: Box) -> list[str]:
    """What stands on something else, in words; nothing in a picture that can be read."""
    found = []
    named = list(zip(arrows, courses, strict=True))
    for place, (arrow, course) in enumerate(named):
        says = f"{arrow.start} → {arrow.end}"
        if _label_cost(nodes, course.label, size):
            found.append(f"the label of {says} on a state, or outside")
        found += [
            f"{says} through {name}"
            for name, node in nodes.items()
            if name not in (arrow.start, arrow.end) and any(node.has(point) for point in course.points)
        ]
        for other, beside in named[:place] + named[place + 1 :]:
            if course.label and any(course.label.has(point) for point in beside.points):
                found.append(f"{other.start} → {other.end} through the label of {says}")
            if course.label and beside.label and course.label.meets(beside.label):
                found.append(f"the labels of {says} and of {other.start} → {other.end} on each other")
    return found
