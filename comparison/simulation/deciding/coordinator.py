"""The coordinator: its machine, with timers on the heap and a log that stores at once.

As `coordinator.service.led_partition` performs effects, in the same order, but for what needs frames or files.
"""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from coordinator.groups.effects import Moment, SetTimer, TimerKind, Write
from coordinator.groups.server.rounds import next_generation
from kernel.clock import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from comparison.simulation.deciding.heap import EventHeap
    from comparison.simulation.deciding.ledger import Ledger
    from comparison.simulation.deciding.member_ids import MemberIds
    from coordinator.groups.effects import Decide, Effects, TimerKey, Turn
    from coordinator.groups.machine import Machine
    from coordinator.groups.server.group import AssignmentSettings

_BEGINNING_MS = 1_700_000_000_000
#: Timers that say that a member has been silent for too long.
_SESSIONS = frozenset({TimerKind.SESSION, TimerKind.CONSUMER_SESSION})


class CountedCoordinator:
    """Answers requests by the machine."""

    def __init__(
        self, heap: EventHeap, machine: Machine, settings: AssignmentSettings, ledger: Ledger, ids: MemberIds
    ) -> None:
        self.machine = machine
        self.deciding_ns = 0  #: that deciding has taken by a clock of this machine, what else runs there included
        self._heap = heap
        self._settings = settings
        self._ledger = ledger
        self._ids = ids
        self._tokens = itertools.count(1)
        self._waiting: dict[int, Callable[[Any], None]] = {}
        self._due: dict[TimerKey, int] = {}

    @property
    def generation(self) -> int:
        """The group's: its epoch, in the `consumer` design; 0 as long as there is no group."""
        classic, server, consumer = self.machine.classic, self.machine.server, self.machine.consumer
        return (
            sum(group.generation for group in classic.groups.values())
            + sum(group.generation for group in server.groups.values())
            + sum(group.epoch for group in consumer.groups.values())
        )

    def ask(self, request: Callable[[int], Any], answered: Callable[[Any], None]) -> None:
        """A request has arrived; `answered` is called with its answer, now or later."""
        token = next(self._tokens)
        self._waiting[token] = answered
        self._perform(lambda now: self.machine.handle(request(token), now))

    def notify(self, event: Callable[[Machine, Turn], None]) -> None:
        """Put an observation to the machine."""
        self._perform(lambda now: self.machine.step(partial(event, self.machine), now))

    def _perform(self, event: Callable[[Moment], Effects]) -> None:
        now_ms = self._heap.now_ns // NS_PER_MS
        began_ns = time.perf_counter_ns()
        effects = event(Moment(now_ms, _BEGINNING_MS + now_ms))
        self.deciding_ns += time.perf_counter_ns() - began_ns
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                self._due[timer.key] = timer.at_ms
                self._heap.at(timer.at_ms * NS_PER_MS, self._timer_due, timer.key, timer.at_ms)
            else:
                self._due.pop(timer.key, None)
        for reply in effects.replies:
            self._waiting.pop(reply.token)(reply.answer)
        for token in effects.abandoned:
            self._waiting.pop(token, None)
        for write in effects.writes:
            if type(write) is not Write:
                self._heap.at(self._heap.now_ns, self._stored, write)
        for watch in effects.watches:
            self._ids.watch(watch, self.notify)
        for asked in effects.decisions:
            self._heap.at(self._heap.now_ns, self._decided, asked)
        assert not effects.searches, "nobody subscribes by a pattern"
        assert not effects.markers, "there are no transactions"

    def _stored(self, write: Write) -> None:
        self._perform(lambda now: self.machine.step(write.stored, now))

    def _timer_due(self, key: TimerKey, at_ms: int) -> None:
        if self._due.get(key) != at_ms:
            return  # moved or cancelled
        del self._due[key]
        self._perform(lambda now: self.machine.timer_fired(key, now))
        # A session that has been extended meanwhile has set its timer again.
        if key.kind in _SESSIONS and key not in self._due and key.member_id in self._ids.lost:
            self._ledger.detected_ns = self._heap.now_ns

    def _decided(self, asked: Decide) -> None:
        began_ns = time.perf_counter_ns()
        record = next_generation(asked, self._settings)
        self.deciding_ns += time.perf_counter_ns() - began_ns
        self.notify(lambda machine, turn: machine.server.decided(asked, record, turn))
