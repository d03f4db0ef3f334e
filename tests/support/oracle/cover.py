"""What had one holder, none, or several, the slow way: by checking every piece between two boundaries.

Over time an *overlap* is a maximal stretch in which a partition has two or more holders, which may change. It counts
only if all of it, even outside a window, is longer than the tolerance. Records are checked one by one, as sets of
numbers.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import astuple

from comparison.ownership.fold import Interval
from comparison.ownership.groups import Memberships
from comparison.pipeline.measured import Coverage, FirstOverlap, RunSpan
from tests.support.oracle.intervals import Event, Key, key_of, of, owner_of
from tests.support.oracle.skips import skips_of

SERIALS, OFFSETS = "serials", "offsets"
WHOLE_RUN = -1
_FOREVER_NS = 1 << 61
#: A window of time: number, start, end.
Window = tuple[int, int, int]


@dataclass(frozen=True)
class Piece:
    """A stretch between two boundaries of one partition's timeline, in which nothing changes."""

    low: int
    high: int
    holders: tuple[str, ...]
    is_wanted: bool


@dataclass(frozen=True)
class Overlap:
    """A maximal stretch with two or more holders; `holders` are those of its first piece."""

    key: Key
    low: int
    high: int
    holders: tuple[str, ...]

    def as_first(self) -> FirstOverlap:
        names = sorted(set(self.holders))
        _, topic, partition = self.key
        return FirstOverlap(
            low=self.low, high=self.high, topic=topic, partition=partition, owner=names[0], other=names[-1]
        )


def whole_run(span: RunSpan) -> Window:
    return WHOLE_RUN, -_FOREVER_NS, span.end_ns


def pieces_of(held: Iterable[tuple[int, int, str]], wanted: Iterable[tuple[int, int]]) -> list[Piece]:
    """Determine the holders between every two adjacent boundaries."""
    held = [each for each in held if each[0] < each[1]]
    wanted = [each for each in wanted if each[0] < each[1]]
    bounds = (*((low, high) for low, high, _ in held), *wanted)
    boundaries = sorted({moment for each in bounds for moment in each})
    return [
        Piece(
            low,
            high,
            tuple(sorted(owner for begin, end, owner in held if begin <= low and high <= end)),
            any(begin <= low and high <= end for begin, end in wanted),
        )
        for low, high in itertools.pairwise(boundaries)
    ]


def overlaps_of(key: Key, pieces: Sequence[Piece]) -> list[Overlap]:
    """The maximal stretches of adjacent pieces with two or more holders."""
    found: list[Overlap] = []
    for piece in pieces:
        if len(piece.holders) > 1:
            if found and found[-1].high == piece.low:
                found[-1] = Overlap(key, found[-1].low, piece.high, found[-1].holders)
            else:
                found.append(Overlap(key, piece.low, piece.high, piece.holders))
    return found


def lines_over_time(intervals: Iterable[Interval], wanted: dict[Key, list[tuple[int, int]]], span: RunSpan) -> dict:
    """The pieces of each partition. Open intervals end with the span, and all others are cut there."""
    held: defaultdict[Key, list[tuple[int, int, str]]] = defaultdict(list)
    for each in intervals:
        until_ns = span.end_ns if each.until_ns is None else min(each.until_ns, span.end_ns)
        held[each.key].append((each.from_ns, until_ns, each.owner))
    return {key: pieces_of(held[key], wanted.get(key, [])) for key in sorted({*held, *wanted})}


def coverage_over_time(
    lines: dict[Key, list[Piece]], window: Window, tolerance_ns: int
) -> tuple[Coverage, FirstOverlap | None] | None:
    """The coverage of one view in one window, and its first overlap; None if no timeline overlaps the window."""
    _, begin, end = window
    held = doubled = 0
    gaps: list[int] = []
    longest, unsettled, firsts = [], [], []
    is_there = False
    for key, pieces in lines.items():
        gap_ended: int | None = None  # where the last gap of this partition did
        counting = [each for each in overlaps_of(key, pieces) if each.high - each.low > tolerance_ns]
        for piece in pieces:
            length = min(piece.high, end) - max(piece.low, begin)
            if length <= 0:
                continue
            is_there = True
            is_gap = piece.is_wanted and not piece.holders
            counts = any(each.low <= piece.low and piece.high <= each.high for each in counting)
            held += length if piece.holders else 0
            if is_gap and gap_ended == piece.low:  # it goes on, whatever the runner announced at this moment
                gaps[-1] += length
            elif is_gap:
                gaps.append(length)
            gap_ended = piece.high if is_gap else gap_ended
            doubled += (len(piece.holders) - 1) * length if counts else 0
            unsettled += [min(piece.high, end)] if piece.is_wanted and (is_gap or counts) else []
        for each in counting:
            if each.low < end and each.high > begin:
                longest.append(min(each.high, end) - max(each.low, begin))
                firsts.append(each)
    if not is_there:
        return None
    coverage = Coverage(
        held=held,
        gap=sum(gaps),
        gap_longest=max(gaps, default=None),
        doubled=doubled,
        doubled_longest=max(longest, default=None),
        unsettled_until=max(unsettled, default=None),
    )
    return coverage, min((each.as_first() for each in firsts), key=astuple, default=None)


def delivered_numbers(events: list[Event], view: str) -> dict[Key, dict[int, list[str]]]:
    """Who delivered each record, with repetitions."""
    groups = Memberships.of_events(events)
    first, last = ("first", "last") if view == OFFSETS else ("serial_first", "serial_last")
    found: defaultdict[Key, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for event in of(events, "records_delivered"):
        if event.get(first) is not None:
            key, owner = key_of(event, groups), owner_of(event)
            for number in range(event[first], event[last] + 1):
                found[key][number].append(owner)
    return {key: dict(numbers) for key, numbers in found.items()}


def acked_numbers(events: list[Event]) -> dict[Key, set[int]]:
    """The serial numbers acknowledged to a producer that every group which reads the topic should receive."""
    not_due = skips_of(events)[1]
    groups = Memberships.of_events(events)
    found: defaultdict[Key, set[int]] = defaultdict(set)
    for event in of(events, "records_acked"):
        for group in groups.readers(event["topic"]):
            key = group, event["topic"], event["partition"]
            pairs = zip(
                range(event["first"], event["last"] + 1),
                range(event["serial_first"], event["serial_last"] + 1),
                strict=False,
            )
            found[key] |= {serial for offset, serial in pairs if offset not in not_due.get(key, ())}
    return {key: serials for key, serials in found.items() if serials}


def coverage_by_number(events: list[Event], view: str) -> tuple[Coverage, FirstOverlap | None] | None:
    """The coverage of one view of records in the whole run, and its first overlap; None without records."""
    delivered = delivered_numbers(events, view)
    acked = acked_numbers(events) if view == SERIALS else {}
    if not any(delivered.values()) and not any(acked.values()):
        return None
    held = doubled = 0
    gaps: set[tuple[Key, int]] = set()
    twice: set[tuple[Key, int]] = set()
    unsettled = []
    for key in sorted({*delivered, *acked}):
        numbers, wanted = delivered.get(key, {}), acked.get(key, set())
        for number in sorted({*numbers, *wanted}):
            times = len(numbers.get(number, ()))
            held += 1 if times else 0
            doubled += max(0, times - 1)
            if times == 0:
                gaps.add((key, number))
            if times > 1:
                twice.add((key, number))
            if times != 1 and number in wanted:
                unsettled.append(number + 1)
    firsts = [Overlap(key, run[0], run[-1] + 1, tuple(delivered[key][run[0]])) for key, run in _runs_of(twice)]
    coverage = Coverage(
        held=held,
        gap=len(gaps),
        gap_longest=max((len(run) for _, run in _runs_of(gaps)), default=None),
        doubled=doubled,
        doubled_longest=max((len(run) for _, run in _runs_of(twice)), default=None),
        unsettled_until=max(unsettled, default=None),
    )
    return coverage, min((each.as_first() for each in firsts), key=astuple, default=None)


def _runs_of(places: set[tuple[Key, int]]) -> list[tuple[Key, list[int]]]:
    """Consecutive numbers of one partition."""
    found: list[tuple[Key, list[int]]] = []
    for key, number in sorted(places):
        if found and found[-1][0] == key and found[-1][1][-1] == number - 1:
            found[-1][1].append(number)
        else:
            found.append((key, [number]))
    return found
