"""The stream as tracks: slices, instants and counters under a tree of names, as a trace viewer shows them.

Four trees: the run (stages, changes, faults), each group (states, generation, members), each partition (whom the
authority names, who delivers, commits, offsets), and each process with its members (rebalances, attempts, phases, what
it owns, notifications, requests, records). Every event is in one of them: as a slice from it to the one that ends it,
as a value of a counter, or as an instant. Slices of one track may overlap: `laned` takes them apart.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.screen.printable import printable, printable_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.report.export.stream import Recorded

    #: What a slice is about: its kind, and whose it is.
    Key = tuple[object, ...]


class Slice(NamedTuple):
    """Something that lasts; `facts` are the fields of the event that began it."""

    from_ns: int
    until_ns: int
    name: str
    facts: Mapping[str, Any]


class Instant(NamedTuple):
    """Something that happens."""

    at_ns: int
    name: str
    facts: Mapping[str, Any]


class Value(NamedTuple):
    """A counter's value from a moment on."""

    at_ns: int
    value: int


@dataclass(slots=True)
class Track:
    """A row of the picture, with the rows below it. `process` is its number if it is an operating-system process."""

    name: str
    process: int = 0
    slices: list[Slice] = field(default_factory=list)
    instants: list[Instant] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    below: dict[str, Track] = field(default_factory=dict)

    def track(self, *names: str) -> Track:
        """The track of this name below this one, and below that one, made if need be."""
        found = self
        for name in map(printable, names):
            found = found.below.setdefault(name, Track(name))
        return found

    def count(self, at_ns: int, by: int) -> None:
        """Let the counter grow."""
        self.values.append(Value(at_ns, by + (self.values[-1].value if self.values else 0)))


class Open:
    """Slices that have begun, by a key; each ends with the next one of its key, or when it is closed."""

    def __init__(self) -> None:
        self._open: dict[Key, tuple[Track, Recorded, str]] = {}

    def begin(self, key: Key, track: Track, recorded: Recorded, name: str) -> None:
        self.end(key, recorded.t_ns)
        self._open[key] = track, recorded, name

    def open_keys(self) -> list[Key]:
        return list(self._open)

    def end(self, key: Key, at_ns: int, how: str = "") -> None:
        """End the slice, if there is one; `how` is added to its name."""
        if key in self._open:
            track, recorded, name = self._open.pop(key)
            ended = f"{name}: {how}" if how else name
            until_ns = max(at_ns, recorded.t_ns)
            track.slices.append(Slice(recorded.t_ns, until_ns, printable(ended), facts_of(recorded)))

    def end_all(self, at_ns: int) -> None:
        for key in self.open_keys():
            self.end(key, at_ns)


#: What an event's place in the picture says already.
_PLACED = frozenset({"kind", "process", "ns"})


def facts_of(recorded: Recorded) -> dict[str, Any]:
    """The fields of an event, without those that are empty."""
    fields = {name: value for name, value in recorded.event.items() if name not in _PLACED and value not in (None, "")}
    found: dict[str, Any] = printable_all(fields)
    return found


def instant(track: Track, recorded: Recorded, name: str) -> None:
    track.instants.append(Instant(recorded.t_ns, printable(name), facts_of(recorded)))


def laned(slices: Iterable[Slice]) -> list[list[Slice]]:
    """The slices in as few lanes as possible, in the order of time: in none of them do two overlap."""
    lanes: list[list[Slice]] = []
    busy: list[tuple[int, int]] = []
    for each in sorted(slices, key=lambda each: (each.from_ns, each.until_ns)):
        if busy and busy[0][0] <= each.from_ns:
            _, lane = heappop(busy)
        else:
            lane = len(lanes)
            lanes.append([])
        lanes[lane].append(each)
        heappush(busy, (each.until_ns, lane))
    return lanes


def partition_of(fields: Mapping[str, Any]) -> str:
    return f"{fields['topic']}-{fields['partition']}"


def partitions_in_words(partitions: Sequence[Mapping[str, Any]]) -> str:
    """`orders-0, orders-1, orders-2 and 5 more`."""
    by_topic: defaultdict[str, list[int]] = defaultdict(list)
    for each in partitions:
        by_topic[str(each["topic"])].append(int(each["partition"]))
    names = [f"{topic}-{number}" for topic in sorted(by_topic) for number in sorted(by_topic[topic])]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") or "nothing"
