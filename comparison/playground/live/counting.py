"""The counters of a group, and what is known of each partition's records. Pure.

What counts is what the pipeline counts: numbers of events (`comparison.results.counts`) until the members are stopped,
records and commits to the end of the traces. Commits are those that the authority has stored or refused. A coordinator
traces them at once; ZooKeeper's own log is read after the game, and until then stand for it those that members know of.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from comparison.ownership.cover import stops
from comparison.playground import messages
from comparison.playground.live.feed import Fact
from comparison.results.counts import COUNTS, MEMBER, what_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.playground.live.feed import Feed
    from comparison.results.counts import Counted

    Event = Mapping[str, object]

NS_PER_S = 1_000_000_000
#: Numbers of events, and of records and commits.
_OF_EVENTS = [name for name in messages.Counters.__struct_fields__ if name in COUNTS]
_OF_RECORDS = ("delivered", "duplicates", "moved_back", "refused")


def _by_kind() -> Mapping[tuple[str, str], list[tuple[str, Callable[[Counted], bool]]]]:
    """The counters that are numbers of events, by the role and kind of these."""
    found: defaultdict[tuple[str, str], list[tuple[str, Callable[[Counted], bool]]]] = defaultdict(list)
    for name in _OF_EVENTS:
        for kind, where, role in COUNTS[name]:
            found[role, kind].append((name, where))
    return found


_COUNTED = _by_kind()


class Counting:
    """Counts events; those of the playground's own observer are none of a group's."""

    def __init__(self, feed: Feed, *, is_told: bool) -> None:
        """`is_told`: the authority says in time what it has stored."""
        self._feed = feed
        self._is_in_time = is_told
        self._counts = dict.fromkeys([*_OF_EVENTS, *_OF_RECORDS], 0)
        self._is_stopped = False
        self._is_told = is_told
        self.ends: dict[str, int] = {}
        self.delivered: dict[str, int] = {}  #: the offset after the furthest one that was delivered
        self._skipped: dict[str, list[tuple[int, int]]] = {}  #: below it: from where to where nobody delivered yet
        self.committed: dict[str, int] = {}
        self.changed: set[str] = set()  #: partitions; the reader clears it

    def counters(self, *, two_ns: int, unowned_ns: int) -> messages.Counters:
        two_s, unowned_s = round(two_ns / NS_PER_S, 3), round(unowned_ns / NS_PER_S, 3)
        return messages.Counters(**self._counts, two_delivering_partition_s=two_s, unowned_partition_s=unowned_s)

    def count(self, at_ms: int, role: str, who: str, event: Event) -> None:
        """Count an event; `role` is that of the process that traced it, `who` the member that it is about."""
        if stops(event):
            self._is_stopped = True
        if not self._is_stopped and (counted := _COUNTED.get((role, str(event["kind"])))) is not None:
            what = what_of(role, event)
            for name, where in counted:
                self._counts[name] += where(what)
        match event["kind"]:
            case "zk_notified" if role == MEMBER:
                self._feed.add(at_ms, Fact("woken", (who,)))
            case "records_delivered":
                self._deliver(at_ms, who, event)
            case "commit_answered" if event["outcome"] == "accepted" and not self._is_told:
                self._store(at_ms, who, event)
            case "offset_written":
                self._hear()
                self._store(at_ms, who, event)
            case "offset_refused":
                self._counts["refused"] += 1
                self._feed.add(at_ms, Fact("refused", (who,), str(event.get("error") or ""), _partition(event)))
            case "records_acked":
                self._acknowledge(event)

    def _hear(self) -> None:
        """The authority's own word comes: it counts, and not what members knew of it."""
        if not self._is_told:
            self._is_told = True
            self._counts["moved_back"] = 0
            self.committed.clear()

    def _store(self, at_ms: int, member: str, event: Event) -> None:
        partition, offset = _partition(event), _number(event["offset"])
        before = self.committed.get(partition, offset)
        if offset < before:
            self._counts["moved_back"] += 1
            if self._is_in_time or not self._is_told:  # otherwise the feed has said it when a member knew of it
                self._feed.add(at_ms, Fact("moved back", (member,), "", partition, before - offset))
        self.committed[partition] = offset
        self.changed.add(partition)

    def _acknowledge(self, event: Event) -> None:
        partition = _partition(event)
        self.ends[partition] = max(self.ends.get(partition, 0), _number(event["last"]) + 1)
        self.changed.add(partition)

    def _deliver(self, at_ms: int, member: str, event: Event) -> None:
        partition, first, after = _partition(event), _number(event["first"]), _number(event["last"]) + 1
        self._counts["delivered"] += after - first
        if again := (after - first) - self._first_time(partition, first, after):
            self._counts["duplicates"] += again
            self._feed.add(at_ms, Fact("again", (member,), "", partition, again))
        self.changed.add(partition)

    def _first_time(self, partition: str, first: int, after: int) -> int:
        """How many of these nobody delivered before, in whatever order members' events come on a busy machine."""
        known = self.delivered.get(partition, 0)
        fresh = max(0, after - max(first, known))
        left: list[tuple[int, int]] = []
        for start, end in self._skipped.get(partition, ()):
            inside = max(start, first), min(end, after)
            if inside[0] >= inside[1]:
                left.append((start, end))
                continue
            fresh += inside[1] - inside[0]
            left += [gap for gap in ((start, inside[0]), (inside[1], end)) if gap[0] < gap[1]]
        if first > known:
            left.append((known, first))
        self._skipped[partition] = left
        self.delivered[partition] = max(after, known)
        return fresh


def _partition(event: Event) -> str:
    return f"{event['topic']}-{event['partition']}"


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
