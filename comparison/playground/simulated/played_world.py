"""A simulated world with one design's group in it, and what the page shows of it: runs in a process of its own.

However the time is divided into stretches, the same happens, and the same is told: sentences are made at fixed moments.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.playground.applying import changed
from comparison.playground.commands import Outcome
from comparison.playground.live.moments import told
from comparison.playground.play.group import PlayedGroup
from comparison.playground.play.lifecycle import Refused, failure_of, played_group
from comparison.playground.play.setting_up import request_of
from comparison.playground.play.watching import WatchedGroup
from comparison.playground.simulated.exchange import Begin, Reply
from comparison.scenarios.plan.links import links_of
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.run.runner import perform
from comparison.simulation.runs import processes_of
from comparison.simulation.world import World
from kernel.clock import NS_PER_MS
from kernel.errors import RebalanceLabError
from kernel.trace.words import TimeSource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comparison.playground import messages
    from comparison.playground.commands import GroupCommand
    from comparison.scenarios.run.runner import RunOutcome

#: Sentences are made at multiples of this.
TELL_NS = 200 * NS_PER_MS
#: So many events are told of one step.
EVENTS_MAX = 3
#: So many changes are sent at once.
_CHANGES_MAX = 500


class PlayedWorld:
    """Nothing happens in it but by these methods."""

    def __init__(self, begin: Begin) -> None:
        parameters = Parameters(**begin.parameters)
        request = request_of(begin.design, parameters, Path(begin.bundle), TimeSource.SIMULATED)
        self._limits = begin.limits
        self._world = world = World(parameters.seed, links_of(parameters.links))
        self._begun_ns = world.loop.now_ns
        processes = processes_of(world)
        self._played = PlayedGroup(request, begin.limits)
        self._shown = played_group(begin.design, parameters.rate)
        self._watched = WatchedGroup(self._played, self._shown, self._begun_ns, processes.runtime)
        self._changes: list[messages.AnyChange] = []
        self._events: list[str] = []  #: of the last step, in words
        self._command: asyncio.Task[str] | None = None
        self._run: asyncio.Task[RunOutcome] = world.spawn(
            world.runner, lambda: perform(request, begin.provenance, processes, asyncio.Event(), play=self._played.play)
        )

    @property
    def now_ns(self) -> int:
        """Since it began."""
        return self._world.loop.now_ns - self._begun_ns

    def go_on(self, until_ns: int, *, to_event: bool = False) -> None:
        """As `GoOn` says; no further than the end of the run."""
        self._events.clear()
        while self.now_ns < until_ns and not (to_event and self._events) and not self._run.done():
            tell_ns = _after(self.now_ns, TELL_NS)
            stop_ns = min(until_ns, tell_ns)
            if to_event:
                next_ns = self.next_ns
                stop_ns = min(stop_ns, _after(self.now_ns if next_ns is None else next_ns, NS_PER_MS))
            events = self._go(stop_ns)
            if to_event:
                self._events += filter(None, map(told, events))
            if self.now_ns == tell_ns:
                self._watched.tell(self.now_ns // NS_PER_MS)
        self._show()

    def _go(self, until_ns: int) -> Sequence[Mapping[str, object]]:
        """Go on; the events."""
        self._world.loop.run_until(self._begun_ns + until_ns)
        return self._watched.take(0)

    def give(self, command: GroupCommand) -> None:
        """As `Give`."""
        self._command = self._world.spawn(self._world.runner, self._played.perform, command)
        self._go(self.now_ns)
        self._show()

    def finish(self) -> None:
        """As `Finish`."""
        self._world.call_soon(self._world.runner, self._played.stop)

    @property
    def next_ns(self) -> int | None:
        next_ns = self._world.loop.next_ns
        return None if next_ns is None else next_ns - self._begun_ns

    def _show(self) -> None:
        at_ms = self.now_ns // NS_PER_MS
        changes = self._watched.drain(at_ms, self._shown)
        self._shown = changed(self._shown, changes, at_ms, self._limits)
        self._changes += changes

    def replies(self) -> Iterator[Reply]:
        """How it is, with what has changed since the last replies."""
        changes, self._changes = self._changes, []
        parts = [changes[start : start + _CHANGES_MAX] for start in range(0, len(changes), _CHANGES_MAX)] or [[]]
        command, run = self._command, self._run
        refusal, remark = _outcome(command) if command is not None and command.done() else Outcome()
        for number, part in enumerate(parts, start=1):
            yield Reply(
                at_ns=self.now_ns,
                next_ns=self.next_ns,
                changes=tuple(part),
                events=tuple(self._events[:EVENTS_MAX]),
                is_answered=command is None or command.done(),
                refusal=refusal,
                remark=remark,
                is_ready=self._played.is_ready,
                is_formed=self._played.is_formed,
                ended=_end(run) if run.done() else None,
                more=number < len(parts),
            )


def _after(ns: int, step_ns: int) -> int:
    """The next multiple of a step after a moment."""
    return (ns // step_ns + 1) * step_ns


def _outcome(command: asyncio.Task[str]) -> Outcome:
    try:
        return Outcome(remark=command.result())
    except Refused as error:
        return Outcome(refusal=str(error))


def _end(run: asyncio.Task[RunOutcome]) -> str:
    try:
        return failure_of(run.result())
    except RebalanceLabError as error:
        return str(error)
