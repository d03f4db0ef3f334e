"""The two truths about each partition: whom the authority names, and who delivers. Pure.

A member delivers what it believes to own while its process runs: one that is frozen delivers nothing, and one that is
cut off from its authority goes on. Times are milliseconds of the game.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.playground import messages
from comparison.playground.live.feed import RELEASED, Fact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from comparison.ownership.fold import Unit
    from comparison.playground.live.feed import Feed
    from comparison.playground.live.lanes import Lanes

#: Two deliverers, or none, are told while it lasts once it has lasted so long; otherwise when it is over.
TWO_TOLD_MS, NOBODY_TOLD_MS = 250, 1000


def place_of(process: str) -> str:
    """m2 of m2.3, the third process there."""
    return process.partition(".")[0]


@dataclass(slots=True)
class _Since:
    """Since when a partition has two deliverers, or none."""

    at_ms: float
    members: tuple[str, ...]
    why: str
    told: bool = False


class Ownership:
    """Who delivers which partition, and whom the authority names."""

    def __init__(self, lanes: Lanes, feed: Feed) -> None:
        self.named: dict[str, str] = {}  #: partition -> member
        self.cut: set[str] = set()  #: members that are cut off
        self.changed: set[str] = set()  #: partitions whose truths changed; the reader clears it
        self._lanes = lanes
        self._feed = feed
        self._beliefs: dict[Unit, frozenset[str]] = {}
        self._frozen: set[str] = set()  #: processes
        self._delivering: dict[str, tuple[str, ...]] = {}
        self._two: dict[str, _Since] = {}
        self._nobody: dict[str, _Since] = {}

    # -- what is asked ----------------------------------------------------------------------------------------

    def deliverers(self, partition: str) -> tuple[str, ...]:
        return self._delivering.get(partition, ())

    def believed_by(self, process: str) -> frozenset[str]:
        """What a process believes to own, frozen or not."""
        return frozenset(tp for unit, owned in self._beliefs.items() if unit.process == process for tp in owned)

    # -- what happens -----------------------------------------------------------------------------------------

    def believe(self, at_ms: float, unit: Unit, owned: frozenset[str], why: str = RELEASED) -> None:
        """A stream owns these partitions now, as it believes; `why` it no longer owns others."""
        before = self._beliefs.get(unit, frozenset())
        self._beliefs[unit] = owned
        self._deliver(at_ms, before ^ owned, why)

    def close_member(self, at_ms: float, process: str, member: str) -> None:
        self._drop(at_ms, [unit for unit in self._beliefs if unit[:2] == (process, member)], RELEASED)

    def end_process(self, at_ms: float, process: str, how: str) -> None:
        self._frozen.discard(process)
        self._drop(at_ms, [unit for unit in self._beliefs if unit.process == process], how)

    def freeze(self, at_ms: float, process: str) -> None:
        self._frozen.add(process)
        self._deliver(at_ms, self.believed_by(process), "was frozen")

    def thaw(self, at_ms: float, process: str) -> None:
        self._frozen.discard(process)
        self._deliver(at_ms, self.believed_by(process), RELEASED)

    def name(self, at_ms: float, partition: str, member: str) -> None:
        """The authority names a member, or nobody."""
        before = self.named.get(partition, "")
        if before == member:
            return
        self.named[partition] = member
        self.changed.add(partition)
        if before:
            self._lanes.close(messages.IntervalKind.NAMED, before, at_ms, partition=partition)
        if member:
            self._lanes.open(messages.IntervalKind.NAMED, member, at_ms, partition=partition)

    def rename(self, known_as: Callable[[str], str]) -> None:
        """Some of those whom the authority names are known under another name now."""
        for partition, owner in self.named.items():
            if (member := known_as(owner)) != owner:
                self.named[partition] = member
                self.changed.add(partition)
                self._lanes.rename(messages.IntervalKind.NAMED, owner, member, partition=partition)

    def advance(self, at_ms: float) -> None:
        """Time has passed."""
        for kind, open_, told_ms in (("two", self._two, TWO_TOLD_MS), ("nobody", self._nobody, NOBODY_TOLD_MS)):
            for partition, since in open_.items():
                if not since.told and at_ms - since.at_ms >= told_ms:
                    since.told = True
                    self._feed.add(int(since.at_ms), Fact(kind, since.members, since.why, partition))

    # -- parts ------------------------------------------------------------------------------------------------

    def _drop(self, at_ms: float, units: Iterable[Unit], why: str) -> None:
        gone = [self._beliefs.pop(unit) for unit in units]
        self._deliver(at_ms, frozenset[str]().union(*gone), why)

    def _deliver(self, at_ms: float, partitions: Iterable[str], why: str) -> None:
        self.advance(at_ms)
        for partition in sorted(partitions):
            before = self.deliverers(partition)
            units = (unit for unit, owned in self._beliefs.items() if partition in owned)
            now = tuple(sorted({place_of(unit.process) for unit in units if unit.process not in self._frozen}))
            if now == before:
                continue
            self._delivering[partition] = now
            self.changed.add(partition)
            for member in set(before).difference(now):
                self._lanes.close(messages.IntervalKind.DELIVERING, member, at_ms, partition=partition)
            for member in sorted(set(now).difference(before)):
                self._lanes.open(messages.IntervalKind.DELIVERING, member, at_ms, partition=partition)
            self._nobody_or_two(at_ms, partition, before, now, why)

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
