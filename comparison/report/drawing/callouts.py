"""What a picture of a run says in words, at the moment and the lane where it happens: `callouts(view)`, `placed(...)`.

Everything comes from the lanes themselves: who joins and who leaves, who hears of it first and last, what stops and
what waits, who delivers beside the new owner. A picture has six at most, the most telling ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comparison.report.view.model import RunView, Stretch

#: About the width of a letter of a callout, which is bold.
_LETTER = 7.8
#: So many at most, in so many rows.
MOST, _ROWS = 6, 6
#: Shares of the picture: what waits longer is told; who hears so much later is told; so long before the next change
#: its effects may be seen, as the last poll was before; who stops later stops with the run.
_LONG, _LATER, _BEFORE, _MOST = 0.1, 0.04, 0.03, 0.8


class Callout(NamedTuple):
    """Something that happens in a lane: that of a partition or of a member. A lower `rank` tells more."""

    at_ms: float
    lane: str
    says: str
    rank: int


class Placed(NamedTuple):
    """A callout in a picture: where its line is, its row (0 is next to the lanes), and whether it ends at the line."""

    callout: Callout
    x: float
    row: int
    ends_there: bool

    @property
    def span(self) -> tuple[float, float]:
        """From where to where its text reaches."""
        width = _LETTER * len(self.callout.says) + 6
        return (self.x - width, self.x) if self.ends_there else (self.x, self.x + width)


def callouts(view: RunView) -> list[Callout]:
    """The most telling ones, in order."""
    found = [each for part in (_two, _dropped, _come, _gone, _stops, _waits, _hear) for each in part(view)]
    return sorted(sorted(found, key=lambda each: each.rank)[:MOST])


def placed(shown: Sequence[tuple[Callout, float]], left: float, right: float) -> list[Placed]:
    """Callouts with their places in rows, so that no text covers another or the line of another; none without room."""
    in_order = sorted(shown, key=lambda each: each[1])
    at_right = [each for each in in_order if Placed(*each, 0, ends_there=False).span[1] > right]
    others = [each for each in reversed(in_order) if each not in at_right]
    attempts = [_placed(each, left, right) for each in (in_order[::-1], in_order, others + at_right)]
    return min(attempts, key=lambda found: (-len(found), sum(each.row for each in found)))


def _placed(shown: Sequence[tuple[Callout, float]], left: float, right: float) -> list[Placed]:
    found: list[Placed] = []
    for callout, x in shown:
        choices = (Placed(callout, x, row, ends_there) for row in range(_ROWS) for ends_there in (False, True))
        for choice in choices:
            low, high = choice.span
            if left <= low and high <= right and not any(_in_the_way(choice, other) for other in found):
                found.append(choice)
                break
    return found


def _in_the_way(one: Placed, two: Placed) -> bool:
    if one.row == two.row:
        return one.span[0] < two.span[1] + 6 and two.span[0] < one.span[1] + 6
    outer, inner = (one, two) if one.row > two.row else (two, one)
    return inner.span[0] - 4 < outer.x < inner.span[1] + 4


# -- what is told ------------------------------------------------------------------------------------------------------


def _two(view: RunView) -> Iterator[Callout]:
    """Several deliver a partition: who does not know, and when it hears."""
    overlaps = [(overlap, partition) for partition in view.partitions for overlap in partition.overlaps]
    if not overlaps:
        return
    first, partition = min(overlaps, key=lambda each: each[0].from_ms)
    named = {each.member for each in partition.named if each.from_ms < first.until_ms and each.until_ms > first.from_ms}
    for who in [member for member in first.members if member not in named][:1]:
        yield Callout(first.from_ms, partition.name, f"{who} does not know yet: two deliver", 0)
        ends = max(each.until_ms for each, _ in overlaps if who in each.members)
        if ends < view.ended_ms:
            yield Callout(ends, view.places.get(who, who), f"{who} hears of it", 2)


def _dropped(view: RunView) -> Iterator[Callout]:
    """A member to which something was done is named no more."""
    for fault in view.faults:
        ends = [
            (holding.until_ms, partition.name)
            for partition in view.partitions
            for holding in partition.named
            if holding.member == fault.target
            and fault.from_ms < holding.until_ms < (view.ended_ms if fault.healed_ms is None else fault.healed_ms)
        ]
        if ends:
            yield Callout(*min(ends), f"{view.authority} drops {fault.target}", 1)


def _come(view: RunView) -> Iterator[Callout]:
    """Who joins, and when it begins to deliver."""
    there, known, gone = _there(view), _first_phases(view), any(_gone(view))
    first = min(known.values(), default=0.0)
    begins: dict[str, tuple[float, str]] = {}
    for partition in view.partitions:
        for each in partition.delivering:
            begin = each.from_ms, partition.name
            begins[each.member] = min(begins.get(each.member, begin), begin)
    for member, at_ms in known.items():
        if member not in there:
            says = f"{member} joins" if gone or at_ms == first else f"{member} rebalances, too"
            yield Callout(at_ms, view.places.get(member, member), says, 0)
            if member in begins:
                yield Callout(*begins[member], f"{member} delivers", 3)


def _gone(view: RunView) -> Iterator[Callout]:
    """Who stops delivering for good, while others go on."""
    latest = min(_story(view), view.began_ms + _MOST * (view.ended_ms - view.began_ms))
    ends: dict[str, tuple[float, str]] = {}
    for partition in view.partitions:
        for each in partition.delivering:
            end = each.until_ms, partition.name
            ends[each.member] = max(ends.get(each.member, end), end)
    for phase in view.phases:
        if phase.member in ends and phase.until_ms >= ends[phase.member][0]:
            del ends[phase.member]
    for member in sorted(ends.keys() & _there(view)):
        at_ms, lane = ends[member]
        if at_ms < latest:
            yield Callout(at_ms, lane, f"{member} stops", 1)


def _stops(view: RunView) -> Iterator[Callout]:
    """What nobody may deliver for a while: everything at once, or one after another, or a part."""
    gaps = {
        partition.name: [each for each in partition.unclaimed if each.from_ms < _story(view)]
        for partition in view.partitions
        if not partition.overlaps
    }
    stopped = [name for name, each in gaps.items() if each]
    if not stopped or len(gaps) < len(view.partitions):
        return
    begins, ends = ([pick(gaps[name]) for name in stopped] for pick in (_begin, _end))
    if len(stopped) < len(gaps):
        first = stopped[begins.index(min(begins))]
        yield Callout(min(begins), first, f"{len(stopped)} of {len(gaps)} stop, the rest goes on", 1)
        return
    if max(begins) < min(ends):
        yield Callout(max(begins), stopped[0], "everything has stopped", 1)
    else:
        yield Callout(min(begins), stopped[begins.index(min(begins))], "everything stops, one after another", 1)
    yield Callout(max(ends), stopped[ends.index(max(ends))], "everything may run again", 4)


def _begin(gaps: Sequence[Stretch]) -> float:
    return gaps[0].from_ms


def _end(gaps: Sequence[Stretch]) -> float:
    return gaps[0].until_ms


def _waits(view: RunView) -> Iterator[Callout]:
    """What a member that has gone leaves is kept for it, or waits for nobody."""
    long_ms = _LONG * (view.ended_ms - view.began_ms)
    waits = [(each, lane) for lane in view.partitions for each in lane.unclaimed if each.length_ms >= long_ms]
    if not waits or not any(_gone(view)):
        return
    wait, lane = min(waits, key=lambda each: each[0].from_ms)
    most = wait.from_ms + 0.8 * wait.length_ms
    kept = [each.member for each in lane.named if each.from_ms <= wait.from_ms and most <= each.until_ms]
    unnamed = [each for each in lane.unnamed if each.length_ms >= long_ms]
    if kept:
        yield Callout((wait.from_ms + wait.until_ms) / 2, lane.name, f"kept for {kept[0]}", 2)
    elif unnamed:
        yield Callout(unnamed[0].from_ms, lane.name, "given to nobody yet", 2)


def _hear(view: RunView) -> Iterator[Callout]:
    """The first and the last of those who were there."""
    there, known = _there(view), _first_phases(view)
    come = [member for member in known if member not in there]
    heard = sorted((at_ms, member) for member, at_ms in known.items() if member in there)
    if not heard:
        return
    of = come[0] if len(come) == 1 and not view.faults and not any(_gone(view)) else "it"
    at_ms, member = heard[0]
    yield Callout(at_ms, view.places.get(member, member), f"{member} hears of {of}", 2)
    last_ms, last = heard[-1]
    is_told = any(partition.overlaps for partition in view.partitions)
    if last_ms - at_ms > _LATER * (view.ended_ms - view.began_ms) and not is_told:
        yield Callout(last_ms, view.places.get(last, last), f"{last} hears of it, too", 5)


# -- when and who ------------------------------------------------------------------------------------------------------


def _done(view: RunView) -> list[float]:
    """When something was done to the group."""
    return sorted([*(each.at_ms for each in view.changes), *(each.from_ms for each in view.faults)])


def _story(view: RunView) -> float:
    """What comes after belongs to the next change."""
    changes = sorted(each.at_ms for each in view.changes)
    return view.ended_ms if len(changes) < 2 else changes[1] - _BEFORE * (view.ended_ms - view.began_ms)


def _first_phases(view: RunView) -> dict[str, float]:
    """When each member begins its first phase of the story, in order."""
    began = min(_done(view), default=view.began_ms)
    first: dict[str, float] = {}
    for phase in sorted(view.phases, key=lambda each: each.from_ms):
        if began <= phase.from_ms < _story(view):
            first.setdefault(phase.member, phase.from_ms)
    return first


def _there(view: RunView) -> set[str]:
    """The members that are named when the story begins."""
    began = min(_done(view), default=view.began_ms)
    return {each.member for partition in view.partitions for each in partition.named if each.from_ms <= began}
