"""What had several holders, or none although it should have one: overlaps and gaps of intervals. Pure.

An *overlap* is a maximal stretch in which a partition has two or more holders, which may change; it counts only if all
of it is longer than what clocks can tell. A *gap* is a stretch in which nobody has a partition that its group should
have: one that its members or its authority named, that has acknowledged records, or that the runner announced; while
the group is measured as running and has a member, and as long as the topic exists and the group wants it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from comparison.ownership.fold import DELIVERY_PAUSE_NS_MAX, Key, Ownership
from comparison.ownership.groups import Memberships
from comparison.results.keys import BELIEVED, DELIVERING, FORMING, LEADER_DURING_DELETE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from comparison.ownership.fold import Interval

    Event = Mapping[str, Any]
    #: From a moment until another one, which is not part of it.
    Stretch = tuple[int, int]

#: Before every event.
_ALWAYS = -1 << 61
#: Below this no two moments of one machine are called apart: the transaction log has milliseconds.
TOLERANCE_NS = 1_000_000
#: The same between machines, or boots, that only wall clocks tie together.
TOLERANCE_ACROSS_BOOTS_NS = 50_000_000


def begins(event: Event) -> bool:
    """Whether the group is measured as running from this event of the runner on, at the latest."""
    return (
        (event["kind"] == "change_started" and event["change"] != FORMING)
        or event["kind"] == "fault_started"
        or (event["kind"] == "stage_entered" and event["stage"] in ("steady", "fault"))
    )


def stops(event: Event) -> bool:
    """Whether it is not measured any more: its members are about to be stopped."""
    return event["kind"] == "run_ended" or (event["kind"] == "stage_entered" and event["stage"] in ("final", "stop"))


class Wanted:
    """Which partitions each group should have, and when, from a run's events so far."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships
        self._known: set[Key] = set()
        self._counts: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  #: since when, how many of a topic
        self._present: defaultdict[str, Presence] = defaultdict(Presence)  #: by group
        self._ended: dict[str, int] = {}  #: when each process ended
        self._existing: defaultdict[tuple[str, int], Existence] = defaultdict(Existence)  #: by topic and partition
        self._first: dict[str, int] = {}  #: when what begins or ends the measured time was first seen

    def take(self, event: Event, t_ns: int) -> None:
        """The event happened at that time."""
        self._first.setdefault("event", t_ns)
        match event["kind"]:
            case "authority_named" | "final_offset":
                self._known.add(Key(event["group"], event["topic"], event["partition"]))
            case "partitions_assigned":
                group = self._memberships.group(event["process"], event["member"])
                self._known |= {Key(group, each["topic"], each["partition"]) for each in event["partitions"]}
            case "records_acked":
                readers = self._memberships.readers(event["topic"])
                self._known |= {Key(group, event["topic"], event["partition"]) for group in readers}
            case "topic_wanted":
                self._counts[event["topic"]].append((t_ns, event["wanted"]))
                readers = self._memberships.readers(event["topic"])
                self._known |= {Key(group, event["topic"], n) for group in readers for n in range(event["wanted"])}
            case "member_started" | "member_closed" | "process_ended":
                self._take_of_members(event, t_ns)
            case "leader_changed":
                self._existing[event["topic"], event["partition"]].take(event, t_ns)
            case "change_started" | "fault_started" | "stage_entered" | "run_ended":
                if begins(event):
                    self._first.setdefault("begin", t_ns)
                if stops(event):
                    self._first.setdefault("stop", t_ns)

    def _take_of_members(self, event: Event, t_ns: int) -> None:
        if event["kind"] == "process_ended":
            self._ended[event["target"]] = t_ns
            for present in self._present.values():
                present.end(event["target"], t_ns)
            return
        process, member = event["process"], event["member"]
        present = self._present[self._memberships.group(process, member)]
        if event["kind"] == "member_closed":
            present.go((process, member), t_ns)
        else:
            self._first.setdefault("member", t_ns)
            if member:
                present.come((process, member), t_ns)
                if self._ended.get(process) == t_ns:  # it ended behind all that it did then
                    present.end(process, t_ns)

    def span(self, now_ns: int) -> Stretch:
        """When the group is measured as running: from its first member on, if no runner says more; until now."""
        start_ns = next((self._first[what] for what in ("begin", "member", "event") if what in self._first), now_ns)
        return start_ns, self._first.get("stop", now_ns)

    def stretches(self, now_ns: int) -> dict[Key, list[Stretch]]:
        """When its group should have each partition, until now."""
        found, until_ns = self.asked(now_ns), self.span(now_ns)[1]
        for key, asked in found.items():
            if (present := self._present[key.group]).is_known:
                stretches = present.stretches(until_ns)
                found[key] = [part for each in asked for part in cut(stretches, *each)]
        return found

    def asked(self, now_ns: int) -> dict[Key, list[Stretch]]:
        """When a group should have each partition if it has a member, until now."""
        span, found = self.span(now_ns), {}
        for key in sorted(self._known):
            counts = self._counts.get(key.topic, [(span[0], key.partition + 1)])
            ends = [t_ns for t_ns, _ in counts[1:]] + [span[1]]
            pairs = zip(counts, ends, strict=True)
            wanted = ((from_ns, until_ns) for (from_ns, count), until_ns in pairs if key.partition < count)
            exists = self._existing[key.topic, key.partition].stretches(span[1])
            found[key] = [part for each in united(cut(wanted, *span)) for part in cut(exists, *each)]
        return found


class Existence:
    """When a partition existed, by what its leaders traced: from the first one until its topic was deleted, and so on.

    It has existed before if the first one traced does not lead it in its first epoch.
    """

    def __init__(self) -> None:
        self._since: int | None = _ALWAYS
        self._over: list[Stretch] = []
        self._is_known = False

    def take(self, event: Event, t_ns: int) -> None:
        """A `leader_changed` about it."""
        if event["leader"] == LEADER_DURING_DELETE and self._since is not None:
            self._over.append((self._since, t_ns))
            self._since = None
        elif event["leader"] >= 0 and (self._since is None or (not self._is_known and event["leader_epoch"] == 0)):
            self._since = t_ns
        self._is_known = True

    def stretches(self, until_ns: int) -> list[Stretch]:
        """Until that moment; none is empty."""
        now = [(self._since, until_ns)] if self._since is not None and self._since < until_ns else []
        return [(low, high) for low, high in self._over if low < high] + now


class Presence:
    """When a group had a member: from the start of each until it closed, or its process ended."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str | None], int] = {}
        self._over: list[Stretch] = []

    @property
    def is_known(self) -> bool:
        return bool(self._since or self._over)

    def come(self, member: tuple[str, str | None], t_ns: int) -> None:
        self._since.setdefault(member, t_ns)

    def go(self, member: tuple[str, str | None], t_ns: int) -> None:
        if member in self._since:
            self._over.append((self._since.pop(member), t_ns))

    def end(self, process: str, t_ns: int) -> None:
        for member in [each for each in self._since if each[0] == process]:
            self.go(member, t_ns)

    def stretches(self, now_ns: int) -> list[Stretch]:
        return united([*self._over, *((since_ns, now_ns) for since_ns in self._since.values())])


def wanted_of(events: Sequence[tuple[int, Event]]) -> Wanted:
    """Of a whole run."""
    found = Wanted(Memberships.of_events(event for _, event in events))
    for t_ns, event in events:
        found.take(event, t_ns)
    return found


def united(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Those that touch or overlap as one, in order; none is empty."""
    found: list[Stretch] = []
    for low, high in sorted(stretches):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        elif low < high:
            found.append((low, high))
    return found


def gaps_of(held: Iterable[Stretch], wanted: Iterable[Stretch]) -> list[Stretch]:
    """The parts of the wanted stretches in which nobody holds."""
    found, holding = [], united(held)
    for low, high in wanted:
        reach = low
        for from_ns, until_ns in holding:
            if from_ns > reach and reach < high:
                found.append((reach, min(from_ns, high)))
            reach = max(reach, until_ns)
        if reach < high:
            found.append((reach, high))
    return found


def overlaps_of(held: Iterable[Stretch], tolerance_ns: int) -> list[Stretch]:
    """The stretches with two or more holders that are longer than the tolerance."""
    moves = sorted(move for low, high in held if low < high for move in ((low, 1), (high, -1)))
    found: list[Stretch] = []
    count, since_ns = 0, 0
    for t_ns, step in moves:
        if (count, step) == (1, 1):
            since_ns = t_ns
        elif (count, step) == (2, -1):
            found.append((since_ns, t_ns))
        count += step
    return [(low, high) for low, high in united(found) if high - low > tolerance_ns]


def doubled_ns(held: Sequence[Stretch], tolerance_ns: int) -> int:
    """How long each holder but one holds, in those overlaps."""
    return sum(
        sum(max(0, min(high, until_ns) - max(low, from_ns)) for from_ns, until_ns in held) - (high - low)
        for low, high in overlaps_of(held, tolerance_ns)
    )


def held_until(intervals: Iterable[Interval], end_ns: int) -> list[Stretch]:
    """Intervals as stretches: open ones reach to the end, and nothing goes beyond it."""
    ends = ((each.from_ns, end_ns if each.until_ns is None else min(each.until_ns, end_ns)) for each in intervals)
    return [(low, high) for low, high in ends if low < high]


def cut(stretches: Iterable[Stretch], from_ns: int, until_ns: int) -> list[Stretch]:
    """What of the stretches is between two moments."""
    ends = ((max(low, from_ns), min(high, until_ns)) for low, high in stretches)
    return [(low, high) for low, high in ends if low < high]


class Cover:
    """One group as long as it runs: who has what, and for how long two delivered a partition or nobody claimed it.

    What later events cannot change any more is summed once.
    """

    def __init__(self) -> None:
        self.ownership = Ownership(_ONLY.group)
        self._wanted = Wanted(_ONLY)
        self._reached_ns = 0
        self._sorted = 0  #: so many intervals are in their lines
        self._lines: defaultdict[tuple[str, Key], _Settled] = defaultdict(_Settled)

    def take(self, event: Event, t_ns: int) -> None:
        """The event happened at that time. What an authority says is not needed to know what is wanted."""
        self._reached_ns = t_ns
        self.ownership.take(event, t_ns)
        if event["kind"] not in _AUTHORITYS:
            self._wanted.take(event, t_ns)

    def figures(self, now_ns: int) -> tuple[int, int]:
        """The nanoseconds until now, over all partitions, as the analysis counts them."""
        for each in self.ownership.intervals[self._sorted :]:
            self._lines[each.view, each.key].add(each)
        self._sorted = len(self.ownership.intervals)
        end_ns = self._wanted.span(now_ns)[1]
        fixed_ns = min(end_ns, self._reached_ns)
        two = [line for (view, _), line in self._lines.items() if view == DELIVERING]
        two_ns = sum(line.sum(lambda held, _: doubled_ns(held, TOLERANCE_NS), fixed_ns, end_ns) for line in two)
        unowned_ns = sum(
            self._lines[BELIEVED, key].sum(_unowned_ns, fixed_ns, end_ns, wanted)
            for key, wanted in self._wanted.stretches(now_ns).items()
        )
        return two_ns, unowned_ns


class _Settled:
    """The intervals of one partition in one view, and what they add up to before a moment that is behind us."""

    def __init__(self) -> None:
        self._all: list[Interval] = []
        self._left: list[Interval] = []  #: those that reach beyond the moment
        self._until_ns = 0
        self._sum_ns = 0
        self._wanted: list[Stretch] = []  #: before the moment

    def add(self, interval: Interval) -> None:
        self._all.append(interval)
        self._left.append(interval)

    def sum(
        self,
        measured: Callable[[Sequence[Stretch], Sequence[Stretch]], int],
        fixed_ns: int,
        end_ns: int,
        wanted: Sequence[Stretch] = (),
    ) -> int:
        """What is `measured` until the end, of what is held and wanted; events until `fixed_ns` are known."""
        if cut(wanted, 0, self._until_ns) != self._wanted:  # what was wanted then is only known now
            self._left, self._until_ns, self._sum_ns = list(self._all), 0, 0
        held, settled_ns = held_until(self._left, end_ns), self._settles(fixed_ns)
        if settled_ns > self._until_ns:
            before = cut(held, self._until_ns, settled_ns), cut(wanted, self._until_ns, settled_ns)
            self._sum_ns += measured(*before)
            self._left = [each for each in self._left if each.until_ns is None or each.until_ns >= settled_ns]
            self._until_ns = settled_ns
            self._wanted = cut(wanted, 0, settled_ns)
        return self._sum_ns + measured(cut(held, self._until_ns, end_ns), cut(wanted, self._until_ns, end_ns))

    def _settles(self, fixed_ns: int) -> int:
        """Until when nothing changes any more. No overlap is divided there."""
        settled_ns = min([fixed_ns, *(each.from_ns for each in self._left if not _is_over(each, fixed_ns))])
        crossed = (low for low, high in overlaps_of(held_until(self._left, fixed_ns), 0) if low < settled_ns <= high)
        return min([settled_ns, *crossed])


def _is_over(interval: Interval, now_ns: int) -> bool:
    pause_ns = DELIVERY_PAUSE_NS_MAX if interval.view == DELIVERING else 0
    return interval.until_ns is not None and now_ns - interval.until_ns > pause_ns


def _unowned_ns(held: Iterable[Stretch], wanted: Iterable[Stretch]) -> int:
    return sum(high - low for low, high in gaps_of(held, wanted))


#: Whom a group's events are about if it is the only one.
_ONLY = Memberships()
_AUTHORITYS = ("authority_named", "authority_cleared", "final_offset")
