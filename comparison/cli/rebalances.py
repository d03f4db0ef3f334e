"""A consumer's rebalances, from the events that it traces: how long each took, and its phases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel.clock import SystemClock
from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel.trace.writer import Tracer

_NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalanced:
    """One rebalance that has ended. Times are in milliseconds."""

    stream: int
    trigger: str
    outcome: str  #: ok, failed or superseded
    attempts: int
    took_ms: float
    phases_ms: Mapping[str, float]  #: in order; those of all attempts together


@dataclass(slots=True)
class _Open:
    trigger: str
    began_ns: int
    attempts: int = 0
    phase: str = ""
    phase_began_ns: int = 0
    phases_ns: dict[str, int] = field(default_factory=dict)

    def enter(self, phase: str, now_ns: int) -> None:
        if self.phase:
            self.phases_ns[self.phase] = self.phases_ns.get(self.phase, 0) + now_ns - self.phase_began_ns
        self.phase, self.phase_began_ns = phase, now_ns


class Rebalances:
    """Follows the rebalances of one consumer's streams. A member of `zookeeper` rebalances as a whole: stream 0."""

    def __init__(self, ended: Callable[[Rebalanced], None]) -> None:
        self._ended = ended
        self._open: dict[int, _Open] = {}

    def see(self, kind: str, stream: int | None, now_ns: int, fields: Mapping[str, object]) -> None:
        """Take one event of the consumer."""
        number = stream or 0
        if kind == "rebalance_started":
            self._open[number] = _Open(str(fields["trigger"]), now_ns)
            return
        running = self._open.get(number)
        if running is None:
            return
        if kind == "attempt_started":
            running.attempts += 1
        elif kind == "phase_entered":
            running.enter(str(fields["phase"]), now_ns)
        elif kind == "attempt_ended":
            running.enter("", now_ns)
        elif kind == "rebalance_ended":
            running.enter("", now_ns)
            del self._open[number]
            self._ended(
                Rebalanced(
                    stream=number,
                    trigger=running.trigger,
                    outcome=str(fields["outcome"]),
                    attempts=max(running.attempts, 1),
                    took_ms=(now_ns - running.began_ns) / _NS_PER_MS,
                    phases_ms={phase: ns / _NS_PER_MS for phase, ns in running.phases_ns.items()},
                )
            )


class SeenTracer:
    """Passes every event on to a tracer, then to the rebalances, and every reset of a position to `reset`."""

    def __init__(
        self,
        tracer: Tracer,
        rebalances: Rebalances,
        reset: Callable[[TopicPartition, int, str], None],
    ) -> None:
        self._tracer = tracer
        self._rebalances = rebalances
        self._reset = reset
        self._clock = SystemClock()

    def emit(
        self, kind: str, *, member: str | None = None, stream: int | None = None, cause: str = "", **fields: object
    ) -> None:
        self._tracer.emit(kind, member=member, stream=stream, cause=cause, **fields)
        self._rebalances.see(kind, stream, self._clock.monotonic_ns(), fields)
        if kind == "position_reset":
            partition = TopicPartition(str(fields["topic"]), int(str(fields["partition"])))
            self._reset(partition, int(str(fields["offset"])), str(fields["reset"]))
