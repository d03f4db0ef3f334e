"""What the running parts take from the machine: time, CPU time, randomness, threads, sockets. Handed in as one value.

Brokers and consumers take a `Runtime` and hand on what each part needs of it; nothing below them reads a clock, rolls
dice or starts a thread by itself. So the same code also runs by a manual clock, from a seed, or in virtual time.
Commands use `REAL`. Waiting (`asyncio.sleep`, `call_later`, `loop.time`) and the sockets of clients belong to the event
loop that a part runs on.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from kernel.clock import Clock, SystemClock
from kernel.platform.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """See the module."""

    clock: Clock = field(default_factory=SystemClock)
    #: Seconds on a stopwatch, by which work on the event loop keeps to its share of a turn (`BUDGET_S` and its like).
    stopwatch: Callable[[], float] = time.perf_counter
    #: Of ids and of the spread of new topics. What a member draws by a seed in its settings is drawn from that.
    random: Random = field(default_factory=SystemRandom)
    threads: Threads = field(default_factory=Threads)
    #: Used instead of classes and functions where the machine begins: `Bridge`, `Listener`, `Readiness`, `end_session`,
    #: `gethostname`; for the runner of scenarios also what starts ZooKeeper servers, reads from them and links them,
    #: and ports.
    instead: Mapping[Callable[..., Any], Callable[..., Any]] = field(default_factory=dict)

    def edge(self, real: Callable[P, T]) -> Callable[P, T]:
        """The class or function itself, or what is used instead."""
        return self.instead.get(real, real)


#: The machine's own.
REAL = Runtime()
