"""Who owns what over time in `rolling`, and what a change of the group has cost."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.rolling_designs import Counts

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Cost:
    """Counts of one change."""

    counts: Counts
    unowned_s: float
    doubly_owned_s: float


@dataclass(frozen=True)
class Entry:
    """A member gained or lost a partition. `leaving`: the member itself was stopped."""

    at: float
    member: str
    partition: int
    gained: bool
    leaving: bool = False


class Ledger:
    """What members own over time. Thread-safe."""

    def __init__(self, partitions: int) -> None:
        self.entries: list[Entry] = []
        self._owners: dict[int, set[str]] = {n: set() for n in range(partitions)}
        self._changed_at = time.monotonic()
        self._lock = threading.Lock()

    def gains(self, member: str, partitions: Iterable[int]) -> None:
        self._enter(member, partitions, gained=True)

    def loses(self, member: str, partitions: Iterable[int]) -> None:
        """Ignores partitions that the member no longer owns because it was stopped."""
        self._enter(member, [n for n in partitions if member in self._owners[n]], gained=False)

    def leaves(self, member: str) -> None:
        """The member was stopped and delivers nothing any more."""
        owned = [n for n, owners in self._owners.items() if member in owners]
        self._enter(member, owned, gained=False, leaving=True)

    def _enter(self, member: str, partitions: Iterable[int], *, gained: bool, leaving: bool = False) -> None:
        with self._lock:
            self._changed_at = at = time.monotonic()
            for n in partitions:
                (self._owners[n].add if gained else self._owners[n].discard)(member)
                self.entries.append(Entry(at, member, n, gained, leaving))

    def settled_since(self, members: Iterable[str], quiet_s: float) -> float | None:
        """Time of the last event, if every partition has one owner, every member owns some, and it is `quiet_s` ago."""
        with self._lock:
            one_each = all(len(owners) == 1 for owners in self._owners.values())
            everybody = {member for owners in self._owners.values() for member in owners} == set(members)
            is_quiet = time.monotonic() - self._changed_at > quiet_s
            return self._changed_at if one_each and everybody and is_quiet else None

    def cost(self, begin: float, end: float, generations: int) -> Cost:
        """Counts of what happened between two moments."""
        owners: dict[int, set[str]] = {n: set() for n in self._owners}
        last: dict[int, str] = {}
        stopped = moved = 0
        unowned_s = doubly_owned_s = 0.0
        now = begin
        for entry in [*(e for e in self.entries if e.at <= end), Entry(end, "", -1, gained=False)]:
            if entry.at > now:
                unowned_s += (entry.at - now) * sum(not who for who in owners.values())
                doubly_owned_s += (entry.at - now) * sum(len(who) - 1 for who in owners.values() if who)
                now = entry.at
            if entry.partition < 0:
                continue
            if entry.gained:
                moved += entry.at > begin and last.get(entry.partition, entry.member) != entry.member
                last[entry.partition] = entry.member
                owners[entry.partition].add(entry.member)
            else:
                stopped += entry.at > begin and not entry.leaving
                owners[entry.partition].discard(entry.member)
        return Cost(Counts(generations, stopped, moved), unowned_s, doubly_owned_s)
