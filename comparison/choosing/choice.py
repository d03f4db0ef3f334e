"""What the events of a week cost each design, by the costs of single events: sums with ranges, or why nobody can say.

The rule of the ranges: an input lies between values of members, partitions and, for a slow record, its length that were
run. The range of an event reaches from the lowest to the highest run at those values; figures of partitions are taken
for each partition, and repeats for each record a second. Between them the medians are interpolated, with the logarithms
of members and partitions.

Runs with one seed come at one moment of the timers' intervals, whatever their size, and few seeds show few moments. So
both bounds of each event move out by what an interval of heartbeats or commits makes of one member's share (`Margin`).
Events add up, bound by bound; of the longest standstill the longest event counts. Nothing is extrapolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import ceil, log
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from comparison.choosing.costs import (
    CRASH,
    JOIN,
    LEAVE,
    MEASURES,
    PAUSE,
    REPEATS,
    ROLLING_RESTART,
    STANDSTILL,
    STANDSTILL_IN_ALL,
    Bounds,
    Margin,
    slow_record_s,
)
from comparison.screen.brief_number import brief

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.choosing.costs import CostCell, Costs, Measure

_N = TypeVar("_N", int, float)


class Event(NamedTuple):
    """Something that happens to a group now and then, and the scenarios that it is the sum of."""

    name: str  #: as the option names it
    noun: str  #: of one
    meaning: str
    scenarios: tuple[str, ...]  #: none: the scenarios of slow records


EVENTS = (
    Event("deploys", "deploy", "all members are restarted, one after the other", (ROLLING_RESTART,)),
    Event("crashes", "crash", "a member is killed, and a new one joins in its place", (CRASH, JOIN)),
    Event("joins", "join", "one more member joins", (JOIN,)),
    Event("leaves", "leave", "a member leaves cleanly", (LEAVE,)),
    Event("freezes", "freeze", "a member is frozen for its session and two seconds more", (PAUSE,)),
    Event("slow-joins", "slow join", "a member joins while another one is in its slowest record", ()),
)
#: So many a week unless something else is asked for.
DEFAULT_EVENTS: Mapping[str, float] = MappingProxyType({"deploys": 7, "crashes": 1, "slow-joins": 1})


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """The group that is chosen for."""

    members: int
    partitions: int
    rate: float  #: records a second, over all partitions
    slowest_record_s: float


class Tolerated(msgspec.Struct, frozen=True, kw_only=True):
    """What is tolerated in a week; None: anything."""

    repeats: float | None = None  #: records
    standstill_s: float | None = None  #: the longest of a partition


class Cell(msgspec.Struct, frozen=True):
    """Runs of a scenario with so many members and partitions."""

    scenario: str
    members: int
    partitions: int


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A week's figure of one design."""

    bounds: Bounds | None  #: None: nobody can say
    runs: int  #: behind the bounds, those of events that are several times in a week once
    cells: list[Cell]  #: whose runs they are
    why: str = ""  #: nobody can say


class DesignCosts(msgspec.Struct, frozen=True, kw_only=True):
    """A design's week by metric, and how it stands to what is tolerated."""

    design: str
    figures: dict[str, Figure]
    meets: bool | None  #: what is tolerated; None: perhaps, or nobody can say
    because: str  #: of the figures that do not meet it, or may not

    @property
    def is_known(self) -> bool:
        """Whether runs say how long partitions stand still."""
        return self.figures[STANDSTILL_IN_ALL].bounds is not None


@dataclass(frozen=True, slots=True)
class _Part:
    """One event's figure, or a part of it."""

    bounds: Bounds
    cells: list[Cell]


class OutsideError(Exception):
    """No run covers what was asked for."""


class Chooser:
    """Adds up what events cost, by one table of costs."""

    def __init__(self, costs: Costs) -> None:
        self._rate, self._heartbeat_s, self._commit_s = costs.rate, costs.heartbeat_s, costs.commit_s
        self._cells: dict[tuple[str, str, int, int], CostCell] = {
            (cell.design, cell.scenario, cell.members, cell.partitions): cell for cell in costs.cells
        }
        self.designs = tuple(dict.fromkeys(cell.design for cell in costs.cells))

    def week(self, design: str, group: Group, events: Mapping[str, float], tolerated: Tolerated) -> DesignCosts:
        """The design's week; `events` are so many a week, by their names."""
        figures = {measure.metric: self._figure(design, group, events, measure) for measure in MEASURES}
        meets, because = _judged(figures, tolerated)
        return DesignCosts(design=design, figures=figures, meets=meets, because=because)

    def _figure(self, design: str, group: Group, events: Mapping[str, float], measure: Measure) -> Figure:
        low = middle = high = 0.0
        cells: dict[Cell, None] = {}
        for event in EVENTS:
            count = events.get(event.name, 0)
            if not count:
                continue
            try:
                parts = self._parts(design, group, event, measure)
            except OutsideError as error:
                return Figure(bounds=None, runs=0, cells=[], why=f"{event.name}: {error}")
            for part in parts:
                cells |= dict.fromkeys(part.cells)
                if measure.is_longest:
                    low, middle = max(low, part.bounds.low), max(middle, part.bounds.middle)
                    high = max(high, part.bounds.high)
                else:
                    low, middle = low + count * part.bounds.low, middle + count * part.bounds.middle
                    high += count * part.bounds.high
        runs = sum(self._cells[design, each.scenario, each.members, each.partitions].runs for each in cells)
        return Figure(bounds=Bounds(low, middle, high), runs=runs, cells=list(cells))

    def _parts(self, design: str, group: Group, event: Event, measure: Measure) -> list[_Part]:
        if event.scenarios:
            return [self._between(design, ((scenario, 1.0),), group, measure) for scenario in event.scenarios]
        found = {
            s: scenario
            for name, scenario, *_ in self._cells
            if name == design and (s := slow_record_s(scenario)) is not None
        }
        around = _around(group.slowest_record_s, found, "slowest record, s:")
        return [self._between(design, [(found[s], weight) for s, weight in around], group, measure)]

    def _between(self, design: str, scenarios: Sequence[tuple[str, float]], group: Group, measure: Measure) -> _Part:
        """The figure between cells, of scenarios with weights. Raises `OutsideError`."""
        low, middle, high = [], 0.0, []
        places = []
        for scenario, weight in scenarios:
            of_scenario = [key[2:] for key in self._cells if key[:2] == (design, scenario)]
            if not of_scenario:
                raise OutsideError(f"no run of {scenario}")
            members = _around(group.members, (each for each, _ in of_scenario), "members")
            partitions = _around(group.partitions, (each for _, each in of_scenario), "partitions")
            for (m, of_m), (p, of_p) in product(members, partitions):
                bounds = self._bounds(design, (scenario, m, p), measure)
                factor = self._factor(group, p, measure)
                low.append(factor * bounds.low)
                high.append(factor * bounds.high)
                middle += weight * of_m * of_p * factor * bounds.middle
                places.append(Cell(scenario, m, p))
        # A sum of weights may round beyond the runs.
        middle = min(max(middle, min(low)), max(high))
        margin = self._margin(group, measure.margin, max(high), one_by_one=scenarios[0][0] == ROLLING_RESTART)
        return _Part(Bounds(max(0.0, min(low) - margin), middle, max(high) + margin), places)

    def _margin(self, group: Group, margin: Margin, highest: float, *, one_by_one: bool) -> float:
        """How far a range of one event reaches beyond its runs. What none of them repeated or stopped stays.

        `one_by_one`: the members change in turn, so that every partition has its moment.
        """
        partitions = ceil(group.partitions / group.members)
        # A standstill begins with a record that waits.
        moment_s = self._heartbeat_s + (group.partitions / self._rate if self._rate else 0.0)
        match margin:
            case Margin.INTERVAL:
                return moment_s
            case Margin.PARTITIONS:
                in_turn = min(self._heartbeat_s / 2 * group.partitions, highest) if one_by_one else 0.0
                return moment_s * partitions + in_turn
            case Margin.RECORDS:
                return self._commit_s * group.rate / group.members if highest else 0.0
            case Margin.STOPS:
                left_over = group.partitions % group.members if one_by_one else 0
                return float(partitions + left_over) if highest else 0.0
            case Margin.REQUESTS:
                return float(group.members)

    def _bounds(self, design: str, place: tuple[str, int, int], measure: Measure) -> Bounds:
        cell = self._cells.get((design, *place))
        where = "{} with {} members and {} partitions".format(*place)
        if cell is None or not cell.runs:
            raise OutsideError(f"no complete run of {where}")
        if cell.failed:
            raise OutsideError(f"{cell.failed} of {cell.runs + cell.failed} runs of {where} failed")
        if measure.metric not in cell.figures:
            raise OutsideError(f"not known of every run of {where}")
        return cell.figures[measure.metric]

    def _factor(self, group: Group, partitions: int, measure: Measure) -> float:
        """From a cell's figure to the group's."""
        if measure.per_partition:
            return group.partitions / partitions
        if measure.per_record:
            if self._rate is None:
                raise OutsideError("the rates of the runs differ")
            return group.rate / self._rate
        return 1.0


def _around(value: float, known: Iterable[_N], what: str) -> list[tuple[_N, float]]:
    """The known values next to a value, with weights; only itself if it is known. Raises `OutsideError`."""
    values = sorted(set(known))
    if not values:
        raise OutsideError("no run of it")
    if not values[0] <= value <= values[-1]:
        raise OutsideError(f"{what} {value:g} is not within {values[0]:g} to {values[-1]:g}")
    low, high = max(each for each in values if each <= value), min(each for each in values if each >= value)
    if low == high:
        return [(low, 1.0)]
    share = (value - low) / (high - low) if low <= 0 else log(value / low) / log(high / low)
    return [(low, 1 - share), (high, share)]


def limits(tolerated: Tolerated) -> dict[str, float]:
    """The most that is tolerated of each metric that is limited."""
    found = {STANDSTILL: tolerated.standstill_s, REPEATS: tolerated.repeats}
    return {metric: limit for metric, limit in found.items() if limit is not None}


def _judged(figures: Mapping[str, Figure], tolerated: Tolerated) -> tuple[bool | None, str]:
    """Whether a week meets what is tolerated, and the figures that do not, or may not."""
    misses, doubts = [], []
    headings = {each.metric: each.heading for each in MEASURES}
    for metric, limit in limits(tolerated).items():
        found, what = figures[metric], headings[metric]
        if found.bounds is None:
            doubts.append(f"{what}: cannot say")
        elif found.bounds.low > limit:
            misses.append(f"{what}: {brief(found.bounds.low)} at least, {brief(limit)} tolerated")
        elif found.bounds.high > limit:
            doubts.append(f"{what}: up to {brief(found.bounds.high)}, {brief(limit)} tolerated")
    if misses:
        return False, "; ".join(misses)
    return (None, "; ".join(doubts)) if doubts else (True, "")
