"""Who had which partition, when: the one fold from events to owners. Pure.

A partition of a group has an owner in three views, which differ exactly when something is wrong:

- *authority*: whom the authority names, ZooKeeper or the group's coordinator. Opened by `authority_named`, closed by
  the authority's next word about the partition. It has one owner or none.
- *believed*: what a stream of a member believes to own. Opened by `partitions_assigned`; closed by the stream's next
  word about the partition, by the member's own end, or by the end of its process. A member that is stopped with SIGSTOP
  goes on believing, and so does one that is cut off: that is the point.
- *delivering*: what a stream really hands out: from the first to the last of its polls that follow each other without
  a pause longer than DELIVERY_PAUSE_NS_MAX, and without a word about its claim in between. One poll has no length.

Every surface that shows a group folds its events here: the diagram, `describe`, the Perfetto export, the playground,
and the runner's own view of its group. The pipeline has the same definitions over arrays (`pipeline.gold.ownership`),
for speed; a property over random traces holds the two against each other.

An interval is [from_ns, until_ns). The events come in the order of `kernel.trace.run_clock.in_order`: by time, those of
a process by their numbers. A process may be started again under its name, and a member come back under its id.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from comparison.ownership.groups import Memberships
from comparison.results.keys import AUTHORITY, BELIEVED, DELIVERING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Event = Mapping[str, Any]

#: Two polls further apart are two stretches of delivery: between them the stream may have had nothing to deliver.
DELIVERY_PAUSE_NS_MAX = 1_000_000_000
#: How a stream is told about its claims, and what closes one.
CLAIMS = {"partitions_assigned": "reassigned", "partitions_revoked": "revoked", "partitions_lost": "lost"}


class Key(NamedTuple):
    """A partition of a group: two groups on one topic have nothing to do with each other."""

    group: str
    topic: str
    partition: int


class Unit(NamedTuple):
    """What owns a partition: a stream of a member of a process."""

    process: str
    member: str
    stream: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


@dataclass(slots=True)
class Interval:
    """An owner had a partition. The fold alone closes it."""

    view: str
    key: Key
    owner: str  #: the authority's own name for it if it is named; else the unit as text
    from_ns: int
    unit: Unit | None  #: of those whom the authority names nobody knows the stream
    until_ns: int | None = None  #: None while it is open; of a delivery its last poll so far
    closed_by: str = "end"
    gone_ns: int | None = None  #: when the owner itself ended, if it did; only of what is believed


class Ownership:
    """All intervals of a run's events so far, in the order in which they began."""

    def __init__(self, group_of: Callable[[str, str | None], str]) -> None:
        """`group_of` says which group a member of a process is in."""
        self.intervals: list[Interval] = []
        self.named: dict[Key, Interval] = {}  #: open ones
        self.believed: defaultdict[Key, dict[Unit, Interval]] = defaultdict(dict)  #: open ones
        self.polling: defaultdict[Key, dict[Unit, Interval]] = defaultdict(dict)  #: those that may go on
        self._group_of = group_of
        #: What each member has believed since it began: it ends with the member, even what was closed before.
        self._since_start: defaultdict[tuple[str, str | None], list[Interval]] = defaultdict(list)

    def take(self, event: Event, t_ns: int) -> None:
        """The event happened at that time: open, close or lengthen intervals."""
        match event["kind"]:
            case "partitions_assigned" | "partitions_revoked" | "partitions_lost":
                self._claim(event, t_ns)
            case "records_delivered":
                self._poll(event, t_ns)
            case "authority_named" | "authority_cleared":
                self._name(event, t_ns)
            case "member_closed":
                self._end([(event["process"], event["member"])], t_ns, "member")
            case "process_ended":
                members = [member for member in self._since_start if member[0] == event["target"]]
                self._end(members, t_ns, "process")

    # -- parts -------------------------------------------------------------------------------------------------------

    def _open(self, view: str, key: Key, owner: Unit | str, t_ns: int) -> Interval:
        made = Interval(view, key, str(owner), t_ns, owner if isinstance(owner, Unit) else None)
        self.intervals.append(made)
        return made

    def _claim(self, event: Event, t_ns: int) -> None:
        group, unit = self._group_of(event["process"], event["member"]), unit_of(event)
        for each in event["partitions"]:
            key = Key(group, each["topic"], each["partition"])
            self.polling[key].pop(unit, None)
            if (known := self.believed[key].pop(unit, None)) is not None:
                known.until_ns, known.closed_by = t_ns, CLAIMS[event["kind"]]
            if event["kind"] == "partitions_assigned":
                made = self.believed[key][unit] = self._open(BELIEVED, key, unit, t_ns)
                self._since_start[event["process"], event["member"]].append(made)

    def _poll(self, event: Event, t_ns: int) -> None:
        key = Key(self._group_of(event["process"], event["member"]), event["topic"], event["partition"])
        polling, unit = self.polling[key], unit_of(event)
        known = polling.get(unit)
        if known is None or t_ns - (known.until_ns or known.from_ns) > DELIVERY_PAUSE_NS_MAX:
            known = polling[unit] = self._open(DELIVERING, key, unit, t_ns)
            known.closed_by = "pause"
        known.until_ns = t_ns

    def _name(self, event: Event, t_ns: int) -> None:
        key = Key(event["group"], event["topic"], event["partition"])
        is_named = event["kind"] == "authority_named"
        if (known := self.named.pop(key, None)) is not None:
            known.until_ns, known.closed_by = t_ns, "renamed" if is_named else event["reason"]
        if is_named:
            self.named[key] = self._open(AUTHORITY, key, event["owner"], t_ns)

    def _end(self, members: Iterable[tuple[str, str | None]], t_ns: int, closed_by: str) -> None:
        for member in members:
            for each in self._since_start.pop(member, ()):
                each.gone_ns = t_ns
                if each.until_ns is None:
                    each.until_ns, each.closed_by = t_ns, closed_by
                    assert each.unit is not None, "a unit believes"
                    del self.believed[each.key][each.unit]


def unit_of(event: Event) -> Unit:
    """Who a member's event is about."""
    return Unit(event["process"], event["member"] or "", event["stream"] or 0)


def ownership_of(events: Iterable[tuple[int, Event]]) -> Ownership:
    """The fold of a whole run; each event comes with its time."""
    kept = list(events)
    found = Ownership(Memberships.of_events(event for _, event in kept).group)
    for t_ns, event in kept:
        found.take(event, t_ns)
    return found
