"""Follows the trace files of a run as they grow, and puts their events in one order.

Every process writes a file of its own, each event at once. So an event that is older than a reading by SLACK_NS is in
its file by then, and events up to that time are complete; later ones wait for the next reading. A reading is bounded:
of a file that has more, only events as old as the last one read are given out, until the rest has been read as well.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Event = Mapping[str, object]

#: How old an event must be to be given out: longer than any process takes between the time of an event and its write.
SLACK_NS = 20_000_000
_SUFFIX = ".jsonl"
#: The most that is read of one file at once.
READ_MAX = 256 * 1024
#: A line that is longer is not ours.
_LINE_MAX = 1024 * 1024


class Tail:
    """One trace file as it grows. A line without an end is read again when it has one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._torn = b""
        self.has_more = False  #: the last reading left something
        self.last_ns = 0

    def read(self, bytes_max: int = READ_MAX) -> list[Event]:
        """The events since the last reading. Lines that are none, such as header and end marker, are skipped."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        try:
            data = os.pread(descriptor, bytes_max, self._offset)
        finally:
            os.close(descriptor)
        if not data:
            self.has_more = False
            return []
        self._offset += len(data)
        self.has_more = len(data) == bytes_max
        *lines, self._torn = (self._torn + data).split(b"\n")
        if len(self._torn) > _LINE_MAX:
            self._torn = b""
        events = [event for line in lines if (event := _event(line)) is not None]
        if events:
            self.last_ns = max(self.last_ns, *(_ns(event) for event in events))
        return events


class Follower:
    """All trace files of one run whose names are `wanted`, and events from elsewhere, in the order of their times."""

    def __init__(self, folder: Path, wanted: Callable[[str], bool]) -> None:
        self._folder = folder
        self._wanted = wanted
        self._tails: dict[str, Tail] = {}
        self._held: list[Event] = []

    @property
    def has_more(self) -> bool:
        """Whether the last reading left something in a file."""
        return any(tail.has_more for tail in self._tails.values())

    def add(self, event: Event) -> None:
        """Put an event that is in no file in its place; it has `ns` and `kind` as all do."""
        self._held.append(event)

    def read(self, now_ns: int, slack_ns: int = SLACK_NS) -> list[Event]:
        """The events that are complete at this time, and were not given out before."""
        for name in self._names():
            if name not in self._tails and self._wanted(name.removesuffix(_SUFFIX)):
                self._tails[name] = Tail(self._folder / name)
        until_ns = now_ns - slack_ns
        for tail in self._tails.values():
            self._held += tail.read()
            if tail.has_more:
                until_ns = min(until_ns, tail.last_ns)
        self._held.sort(key=_ns)  # stable: events of one file keep their order
        ready = [event for event in self._held if _ns(event) <= until_ns]
        self._held = self._held[len(ready) :]
        return ready

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if name.endswith(_SUFFIX))
        except FileNotFoundError:
            return []


def _ns(event: Event) -> int:
    ns = event["ns"]
    assert isinstance(ns, int)
    return ns


def _event(line: bytes) -> Event | None:
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) and "kind" in found and isinstance(found.get("ns"), int) else None
