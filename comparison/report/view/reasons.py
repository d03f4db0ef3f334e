"""Why stretches of the lanes are hatched, red or idle, in sentences, from the chains of `history.causes`.

A pause in the deliveries of a partition is one stretch, whether or not it had an owner meanwhile: that is what a reader
asks about. Partitions to which the same happened are told together.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from comparison.report.history.causes import IT, ROLES
from comparison.report.view.model import About, Moment, Reason, Stretch
from comparison.report.view.naming import listed
from comparison.results.causes import WORDS, Cause
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.ownership.fold import Key
    from comparison.report.history.causes import Causes, Link
    from comparison.report.view.model import PartitionView, RunView
    from comparison.results.run import Run

#: Shorter stretches than this are not told.
TOLD_MS_MIN = 50.0
#: So many links of a chain, and stretches of a run, are told at most: the longest ones.
LINKS_MAX, STRETCHES_MAX = 6, 400
#: What follows sooner than this follows at once.
_AT_ONCE_MS = 50.0
#: The least share of a standstill of which a cause is named.
_MAIN_SHARE = 0.2
_NS_PER_MS = 1_000_000
#: The analysis names the longest standstills of so many partitions.
_LISTED_MAX = 50
_TOO_MANY = "The events of a run up to then are so many that the report reads no later ones"
_NOTHING_WAITED = "For most of it, no record of it waited"


class _Found(NamedTuple):
    """A stretch of one partition with its chain."""

    about: About
    what: str
    partition: str
    stretch: Stretch
    links: Sequence[Link]
    fallback: str  #: what the analysis says, if the chain has no cause


def reasons_of(
    view: RunView, lanes: Mapping[Key, PartitionView], causes: Causes, run: Run, read_until_ms: float
) -> tuple[Reason, ...]:
    """Those of a run, in the order of time; of what came after `read_until_ms` there are no events."""
    found = [each for key, lane in lanes.items() for each in _of_lane(view, key, lane, causes, run, read_until_ms)]
    longest = sorted(found, key=lambda each: -each.stretch.length_ms)[:STRETCHES_MAX]
    together: defaultdict[tuple[str, str], list[_Found]] = defaultdict(list)
    for each in longest:
        together[each.what, _chain(view, each)].append(each)
    told = (
        _reason(what, chain, each) for (what, chain), alike in together.items() for each in _at_the_same_time(alike)
    )
    return tuple(sorted(told, key=lambda reason: (reason.from_ms, reason.until_ms, reason.partitions)))


def _at_the_same_time(found: Iterable[_Found]) -> list[list[_Found]]:
    """Those whose stretches have a moment in common with another one's."""
    together: list[list[_Found]] = []
    until_ms = 0.0
    for each in sorted(found, key=lambda each: each.stretch.from_ms):
        if not together or each.stretch.from_ms > until_ms:
            together.append([])
        together[-1].append(each)
        until_ms = max(until_ms, each.stretch.until_ms) if len(together[-1]) > 1 else each.stretch.until_ms
    return together


def _of_lane(
    view: RunView, key: Key, lane: PartitionView, causes: Causes, run: Run, read_until_ms: float
) -> Iterator[_Found]:
    pauses = list(_pauses(lane))
    for each in pauses:
        links = causes.standstill(key, _ns(each.from_ms), _ns(each.until_ms))
        fallback = _TOO_MANY if each.from_ms > read_until_ms else _of_analysis(key, each, view, run)
        yield _Found(About.PAUSE, f"Nobody delivered {IT}", lane.name, each, links, fallback)
    for each in lane.overlaps:
        if each.length_ms >= TOLD_MS_MIN:
            links = causes.overlap(key, _ns(each.from_ms), _ns(each.until_ms))
            yield _Found(About.OVERLAP, f"{' and '.join(each.members)} both delivered {IT}", lane.name, each, links, "")
    for each in lane.unnamed:
        within = any(one.from_ms <= each.until_ms and each.from_ms <= one.until_ms for one in pauses)
        if each.length_ms >= TOLD_MS_MIN and not within:
            links = causes.unnamed(key, _ns(each.from_ms), _ns(each.until_ms))
            yield _Found(About.UNNAMED, f"{_capital(view.authority)} named nobody for {IT}", lane.name, each, links, "")


def _pauses(lane: PartitionView) -> Iterator[Stretch]:
    """Between two deliveries; before the first and after the last, where it should have had an owner and had none."""
    free, gaps = None, [*lane.unclaimed, *lane.unnamed]
    for each in sorted(lane.delivering, key=lambda each: each.from_ms):
        if free is not None and each.from_ms - free >= TOLD_MS_MIN:
            yield Stretch(free, each.from_ms)
        free = max(free or each.until_ms, each.until_ms)
    first = min((each.from_ms for each in lane.delivering), default=None)
    outside = [gap for gap in gaps if first is None or gap.until_ms <= first or gap.from_ms >= (free or 0.0)]
    yield from (each for each in _united(outside) if each.length_ms >= TOLD_MS_MIN)


def _united(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Those that touch as one."""
    found: list[Stretch] = []
    for each in sorted(stretches, key=lambda each: each.from_ms):
        if found and each.from_ms <= found[-1].until_ms:
            found[-1] = Stretch(found[-1].from_ms, max(found[-1].until_ms, each.until_ms))
        else:
            found.append(Stretch(each.from_ms, each.until_ms))
    return found


def _of_analysis(key: Key, pause: Stretch, view: RunView, run: Run) -> str:
    """What the analysis says of a pause: `No broker led it`, or that no record waited; ''."""
    mine = [each for each in run.standstills if (each.group, each.topic, each.partition) == tuple(key)]
    for each in mine:
        if pause.from_ms - 1 <= each.from_ms < pause.until_ms:
            least_s = _MAIN_SHARE * sum(each.causes.values())
            main = [name for name, s in each.causes.items() if s >= least_s and name != Cause.UNKNOWN]
            return _capital(" and ".join(WORDS[Cause(name)] for name in main))
    inside = [each for each in view.course if each.from_ms < pause.until_ms and each.until_ms > pause.from_ms]
    if inside and all(each.undelivered == 0 for each in inside):
        return "No record waited: everything that had been produced was delivered"
    # The longest of each partition is listed: whatever waited in another pause waited no longer.
    longest_ms = max((each.until_ms - each.from_ms for each in mine), default=0.0)
    are_all_listed = run.metrics.get("standstill_s") is not None and len(run.standstills) < _LISTED_MAX
    return _NOTHING_WAITED if are_all_listed and longest_ms < pause.length_ms / 2 else ""


# -- words -----------------------------------------------------------------------------------------------------------


def _chain(view: RunView, found: _Found) -> str:
    """`: m3 was killed at 5.0 s; the coordinator ended the session of m3 3.0 s later; ...`

    Members in a role and the partition have names of their own for each partition: they are placeholders here.
    """
    links = _shortened(found.links)
    has_cause = any(link.is_cause for link in links)
    unsaid = "" if has_cause else f". {found.fallback or _capital(WORDS[Cause.UNKNOWN])}"
    said, before_ms = [], None
    for link in links:
        at_ms = link.at_ns / _NS_PER_MS
        if not link.is_timed:
            said.append(_text(link))
            continue
        if before_ms is None:
            when = f"at {(at_ms - view.zero_ms) / 1000:.1f} s"
        else:
            later_ms = at_ms - before_ms
            when = "at once" if later_ms < _AT_ONCE_MS else f"{_length(later_ms)} later"
        said.append(f"{_text(link)} {when}")
        before_ms = at_ms
    joined = "; ".join(said)
    return f"{unsaid}{(': ' if has_cause else '; ') + joined if joined else ''}."


def _text(link: Link) -> str:
    who = f"{{{link.role}}}" if link.role else link.who
    return f"{who} {link.what}" if who else link.what


def _filled(text: str, found: Sequence[_Found]) -> str:
    """The text with the names of the members in their roles, or `the new owners` if they are several."""
    for role in ROLES:
        members = dict.fromkeys(link.who for each in found for link in each.links if link.role == role)
        if len(members) > 1:
            text = text.replace(f"{{{role}}} was ", f"the {role}s were ").replace(f"{{{role}}}", f"the {role}s")
        text = text.replace(f"{{{role}}}", "".join(members))
    return text.replace(IT, "them" if len({each.partition for each in found}) > 1 else "it")


def _shortened(links: Sequence[Link]) -> Sequence[Link]:
    """The first and the last ones."""
    return links if len(links) <= LINKS_MAX else [*links[: LINKS_MAX - 2], *links[-2:]]


def _reason(what: str, chain: str, found: Sequence[_Found]) -> Reason:
    partitions = sorted((each.partition for each in found), key=natural)
    lengths = sorted(each.stretch.length_ms for each in found)
    shortest, length = _length(lengths[0]), _length(lengths[-1])
    if shortest != length:
        same = shortest.split()[1] == length.split()[1]
        length = f"{shortest.split()[0] if same else shortest} to {length}"
    return Reason(
        min(each.stretch.from_ms for each in found),
        max(each.stretch.until_ms for each in found),
        about=found[0].about,
        partitions=tuple(dict.fromkeys(partitions)),
        text=f"{what.replace(IT, listed(partitions))} for {length}{_filled(chain, found)}",
        moments=tuple(
            Moment(link.at_ns / _NS_PER_MS, _filled(_text(link), found)) for link in _shortened(found[0].links)
        ),
    )


def _length(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if round(ms) >= 200 else f"{ms:.0f} ms"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _ns(ms: float) -> int:
    return round(ms * _NS_PER_MS)
