"""The counters of a group, and what is known of each partition's records. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.playground import messages
from comparison.playground.live.feed import Fact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.playground.live.feed import Feed

_READS = frozenset({"exists", "getData", "getChildren", "sync"})


class Counting:
    """Counts events of members; events of other processes are ignored, except those about stored records."""

    def __init__(self, feed: Feed, *, coordinated: bool) -> None:
        self._feed = feed
        self._coordinated = coordinated
        self._counts = dict.fromkeys(
            ("notifications", "reads", "writes", "requests", "moved_back", "refused", "duplicates", "delivered"), 0
        )
        self._counts["rebalances"] = 0
        self.ends: dict[str, int] = {}
        self.delivered: dict[str, int] = {}  #: the offset after the furthest one that was delivered
        self._skipped: dict[str, list[tuple[int, int]]] = {}  #: below it: from where to where nobody delivered yet
        self.committed: dict[str, int] = {}
        self.changed: set[str] = set()  #: partitions; the reader clears it

    def counters(self, *, two_ms: float, unowned_ms: float) -> messages.Counters:
        return messages.Counters(**self._counts, two_delivering_ms=int(two_ms), unowned_ms=int(unowned_ms))

    def count(self, at_ms: int, member: str, event: Mapping[str, object]) -> None:
        """Count an event of a member's process."""
        match event["kind"]:
            case "zk_notified":
                self._counts["notifications"] += 1
                self._feed.add(at_ms, Fact("woken", (member,)))
            case "zk_op":
                self._counts["reads" if event["op"] in _READS else "writes"] += 1
            case "request_answered" if event["api"] != "Fetch":
                self._counts["requests"] += 1
            case "rebalance_ended" if event["outcome"] == "ok":
                self._counts["rebalances"] += 1
            case "records_delivered":
                self._deliver(at_ms, member, event)
            case "commit_answered" if event["outcome"] == "refused" and not self._coordinated:
                self.refuse(at_ms, member, event)
            case "commit_answered" if event["outcome"] == "accepted" and not self._coordinated:
                # ZooKeeper's own log is read after the game; a coordinator traces what it stores and refuses.
                self.store(at_ms, member, event)

    def store(self, at_ms: int, member: str, event: Mapping[str, object]) -> None:
        """Count an offset that was stored."""
        partition, offset = _partition(event), _number(event["offset"])
        before = self.committed.get(partition, 0)
        if offset < before:
            self._counts["moved_back"] += 1
            self._feed.add(at_ms, Fact("moved back", (member,), "", partition, before - offset))
        self.committed[partition] = offset
        self.changed.add(partition)

    def refuse(self, at_ms: int, member: str, event: Mapping[str, object]) -> None:
        """A commit is refused."""
        self._counts["refused"] += 1
        self._feed.add(at_ms, Fact("refused", (member,), str(event.get("error") or ""), _partition(event)))

    def acknowledge(self, event: Mapping[str, object]) -> None:
        """Records are in the log."""
        partition = _partition(event)
        self.ends[partition] = max(self.ends.get(partition, 0), _number(event["last"]) + 1)
        self.changed.add(partition)

    def _deliver(self, at_ms: int, member: str, event: Mapping[str, object]) -> None:
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


def _partition(event: Mapping[str, object]) -> str:
    return f"{event['topic']}-{event['partition']}"


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
