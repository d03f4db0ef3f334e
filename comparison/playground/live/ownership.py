"""Who has each partition, as the page shows it: whom the authority names, and who believes to own it. Pure.

Both are those of `comparison.ownership`, under the names of places. Who believes to own a partition is said to deliver
it while its process runs: a frozen one delivers nothing, and one that is cut off goes on. The fold's own view
`delivering` is made of polls, and would show a group with few records as one without owners; it is what the counters
count. Times are milliseconds of the game.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.playground import messages
from comparison.playground.live.feed import RELEASED, Fact
from comparison.screen.natural_order import natural

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.ownership.fold import Key, Ownership
    from comparison.playground.live.feed import Feed
    from comparison.playground.live.lanes import Lanes

#: Two deliverers, or none, are told while it lasts once it has lasted so long; otherwise when it is over.
TWO_TOLD_MS, NOBODY_TOLD_MS = 250, 1000


def place_of(process: str) -> str:
    """m2 of m2.3, the third process there."""
    return process.partition(".")[0]


def _text(key: Key) -> str:
    return f"{key.topic}-{key.partition}"


@dataclass(slots=True)
class _Since:
    """Since when a partition has two deliverers, or none."""

    at_ms: float
    members: tuple[str, ...]
    why: str
    told: bool = False


class LiveOwnership:
    """What a page shows of a group's ownership, and what the feed says when it changes."""

    def __init__(self, ownership: Ownership, lanes: Lanes, feed: Feed) -> None:
        self.named: dict[str, str] = {}  #: partition -> member
        self.cut: set[str] = set()  #: members that are cut off
        self.changed: set[str] = set()  #: partitions whose owners changed; the reader clears it
        self._ownership = ownership
        self._lanes = lanes
        self._feed = feed
        self._silent: dict[str, bool] = {}  #: processes that are frozen or have ended -> whether they are frozen
        self._by_process: dict[str, tuple[str, ...]] = {}  #: what each believes; until the next look
        self._owners: dict[str, str] = {}  #: partition -> owner, by the authority's own name for it
        self._delivering: dict[str, tuple[str, ...]] = {}
        self._frozen: dict[str, str] = {}  #: partition -> who has it and is frozen, while nobody delivers it
        self._two: dict[str, _Since] = {}
        self._nobody: dict[str, _Since] = {}

    # -- what is asked ----------------------------------------------------------------------------------------

    def deliverers(self, partition: str) -> tuple[str, ...]:
        return self._delivering.get(partition, ())

    def frozen(self, partition: str) -> str:
        return self._frozen.get(partition, "")

    def believed_by(self, process: str) -> tuple[str, ...]:
        """What a process believes to own, frozen or not, in order."""
        if process not in self._by_process:
            believed = self._ownership.believed.items()
            owned = {_text(key) for key, units in believed if any(unit.process == process for unit in units)}
            self._by_process[process] = tuple(sorted(owned, key=natural))
        return self._by_process[process]

    # -- what happens -----------------------------------------------------------------------------------------

    def silence(self, at_ms: float, process: str, why: str, *, is_frozen: bool = False) -> None:
        """A process is frozen, or has ended."""
        self._silent[process] = is_frozen
        self.look(at_ms, why)

    def hear(self, at_ms: float, process: str) -> None:
        """A process has started, or goes on."""
        self._silent.pop(process, None)
        self.look(at_ms)

    def look(self, at_ms: float, why: str = RELEASED) -> None:
        """Some may believe to own other partitions now; `why` they no longer own some."""
        self.advance(at_ms)
        self._by_process.clear()
        for key, units in sorted(self._ownership.believed.items()):
            partition, before = _text(key), self.deliverers(_text(key))
            now = tuple(sorted({place_of(unit.process) for unit in units if unit.process not in self._silent}))
            still = [place_of(unit.process) for unit in units if self._silent.get(unit.process)]
            frozen = min(still, key=natural) if still and not now else ""
            if (now, frozen) == (before, self.frozen(partition)):
                continue
            self._delivering[partition], self._frozen[partition] = now, frozen
            self.changed.add(partition)
            for member in set(before).difference(now):
                self._lanes.close(messages.IntervalKind.DELIVERING, member, at_ms, partition=partition)
            for member in sorted(set(now).difference(before)):
                self._lanes.open(messages.IntervalKind.DELIVERING, member, at_ms, partition=partition)
            self._lanes.leave_to(frozen, at_ms, partition)
            self._nobody_or_two(at_ms, partition, before, now, why)

    def look_named(self, at_ms: float, key: Key, known_as: Callable[[str], str]) -> None:
        """The authority may name somebody else for a partition now."""
        partition, named = _text(key), self._ownership.named.get(key)
        owner = self._owners[partition] = named.owner if named else ""
        before, now = self.named.get(partition, ""), known_as(owner) if owner else ""
        if now != before:
            self._lanes.close(messages.IntervalKind.NAMED, before, at_ms, partition=partition)
            if now:
                self._lanes.open(messages.IntervalKind.NAMED, now, at_ms, partition=partition)
            self._name(partition, now)

    def know(self, known_as: Callable[[str], str]) -> None:
        """Some of those whom the authority names may be known under another name now."""
        for partition, owner in self._owners.items():
            before, now = self.named.get(partition, ""), known_as(owner) if owner else ""
            if now != before:
                self._lanes.rename(messages.IntervalKind.NAMED, before, now, partition=partition)
                self._name(partition, now)

    def advance(self, at_ms: float) -> None:
        """Time has passed."""
        for kind, open_, told_ms in (("two", self._two, TWO_TOLD_MS), ("nobody", self._nobody, NOBODY_TOLD_MS)):
            for partition, since in open_.items():
                if not since.told and at_ms - since.at_ms >= told_ms:
                    since.told = True
                    self._feed.add(int(since.at_ms), Fact(kind, since.members, since.why, partition))

    # -- parts ------------------------------------------------------------------------------------------------

    def _name(self, partition: str, member: str) -> None:
        self.named[partition] = member
        self.changed.add(partition)

    def _nobody_or_two(
        self, at_ms: float, partition: str, before: tuple[str, ...], now: tuple[str, ...], why: str
    ) -> None:
        if before and not now:
            self._nobody[partition] = _Since(at_ms, before[-1:], why)
        elif now and (since := self._nobody.pop(partition, None)) is not None and at_ms - since.at_ms >= 1:
            kind, members = "handed over", (*since.members, now[0])
            if since.members == now and since.why == RELEASED:
                kind, members = "stopped", now
            self._feed.add(int(since.at_ms), Fact(kind, members, since.why, partition, at_ms - since.at_ms))
        if len(now) > 1 and partition not in self._two:
            cut = next((member for member in now if member in self.cut), "")
            self._two[partition] = _Since(at_ms, now, cut)
        elif len(now) < 2 and (since := self._two.pop(partition, None)) is not None and at_ms - since.at_ms >= 1:
            kind = "one again" if since.told else "two"
            self._feed.add(int(at_ms), Fact(kind, since.members, since.why, partition, at_ms - since.at_ms))
