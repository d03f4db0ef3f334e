"""Znodes of members' ids, as far as the `server` design needs them: sessions, and one watch of the coordinator's."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.effects import ForgetIds, WatchIds
from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from comparison.simulation.deciding.heap import Connection, EventHeap
    from comparison.simulation.deciding.ledger import Ledger
    from coordinator.groups.effects import Turn, WatchEffect
    from coordinator.groups.machine import Machine

    Notify = Callable[[Callable[[Machine, Turn], None]], None]


class MemberIds:
    """In ZooKeeper. The coordinator reads all ids whenever they have changed, and each new one's data."""

    def __init__(
        self, heap: EventHeap, ledger: Ledger, connect: Callable[[], Connection], random: Random, tick_ms: int
    ) -> None:
        """`connect` is to ZooKeeper, whose sessions expire at a multiple of its tick."""
        self.lost: set[str] = set()  #: the ids of members whose processes have ended
        self._heap = heap
        self._ledger = ledger
        self._connection = connect()
        self._random = random
        self._tick_ns = tick_ms * NS_PER_MS
        self._ids: dict[str, tuple[str, ...]] = {}
        self._timeouts_ns: dict[str, int] = {}
        self._known: Mapping[str, tuple[str, ...]] = {}
        self._watching: tuple[str, Notify] | None = None
        self._is_stale = False
        self._is_reading = False

    # -- members ------------------------------------------------------------------------------------------------------

    def create(self, member_id: str, topics: tuple[str, ...], timeout_ms: int) -> None:
        self._ids[member_id], self._timeouts_ns[member_id] = topics, timeout_ms * NS_PER_MS
        self._changed()

    def lose(self, member_id: str) -> None:
        """The member's process has ended, and so do its pings, the last one at any moment of the last third."""
        self.lost.add(member_id)
        if member_id in self._ids:
            timeout_ns = self._timeouts_ns[member_id]
            heard_ns = self._heap.now_ns - int(self._random.random() * timeout_ns / 3)
            ends_ns = -(-(heard_ns + timeout_ns) // self._tick_ns) * self._tick_ns
            self._heap.at(ends_ns, self._expire, member_id)

    def _expire(self, member_id: str) -> None:
        self._ledger.detected_ns = self._heap.now_ns
        del self._ids[member_id]
        self._changed()

    # -- the coordinator ----------------------------------------------------------------------------------------------

    def watch(self, watch: WatchEffect, notify: Notify) -> None:
        assert not isinstance(watch, ForgetIds), "the group never empties"
        assert isinstance(watch, WatchIds), "nobody changes its subscription"
        self._watching = watch.group_id, notify
        self._is_stale = True
        self._read()

    def _changed(self) -> None:
        """The one-shot watch fires; what changes while it is not set is read with the ids."""
        if self._watching is not None and not self._is_stale:
            self._is_stale = True
            self._connection.answer(self._read)

    def _read(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._connection.send(self._children)

    def _children(self) -> None:
        """At ZooKeeper: read the ids and set the watch again."""
        self._is_stale = False
        self._connection.answer(self._data, dict(self._ids))

    def _data(self, ids: Mapping[str, tuple[str, ...]]) -> None:
        """Read the data of those that are new, all at once."""
        new = ids.keys() - self._known.keys()
        self._connection.round_trips(1 if new else 0, partial(self._report, ids))

    def _report(self, ids: Mapping[str, tuple[str, ...]]) -> None:
        assert self._watching is not None
        group_id, notify = self._watching
        self._known, self._is_reading = ids, False
        if self._is_stale:
            self._read()  # what was read is outdated already
        else:
            notify(lambda machine, turn: machine.server.seen(group_id, ids, turn))
