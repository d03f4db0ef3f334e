"""Closed loops: each connection sends its next request when the last one is answered, and every answer is compared with
the expected bytes."""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, NamedTuple

from bench import lean_groups, machine
from bench.lean_sockets import Sockets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.bench import Bench
    from bench.lean_sockets import Connection
    from bench.sides import Side

RUNS, SECONDS = 5, 3.0
SECONDS_SMOKE = 0.3
SILENCE_S = 30.0


class Exchange(NamedTuple):
    """What is done on one connection, again and again. Bound methods, because the driver's work limits the measure."""

    receive: Callable[[int], bytes]
    send_next: Callable[[], object]
    good: bytes  #: the only answer that is allowed


def closed_loop(exchanges: Mapping[int, Exchange], seconds: float) -> int:
    """Keep one request in flight on each connection, by file number; return how many were answered."""
    clock, answers = time.monotonic, 0
    with select.epoll() as epoll, machine.no_collections():
        for fileno, exchange in exchanges.items():
            epoll.register(fileno, select.EPOLLIN)
            exchange.send_next()
        in_flight, deadline, goes_on = len(exchanges), clock() + seconds, True
        while in_flight:
            ready = epoll.poll(SILENCE_S)
            if not ready:
                raise TimeoutError(f"no answers for {SILENCE_S:g} s")
            goes_on = goes_on and clock() < deadline
            for fileno, _ in ready:
                receive, send_next, good = exchanges[fileno]
                answer = receive(4096)
                if answer != good:
                    raise RuntimeError(f"an answer was {answer.hex()}, not {good.hex()}")
                answers += 1
                if goes_on:
                    send_next()
                else:
                    in_flight -= 1
    return answers


class Load:
    """Connected members of one side."""

    def __init__(self, sockets: Sockets, side: Side, connections: list[Connection]) -> None:
        self._sockets, self._side, self._connections = sockets, side, connections

    def exchanges(self) -> Mapping[int, Exchange]:
        """By file number."""
        raise NotImplementedError

    def measure(self, seconds: float) -> dict[str, float]:
        cpu_s, started = self._side.cpu_s(), time.monotonic()
        answers = closed_loop(self.exchanges(), seconds)
        elapsed, cpu_s = time.monotonic() - started, self._side.cpu_s() - cpu_s
        # A short measurement may use less CPU time than the clock resolves.
        cpu_s = max(cpu_s, 1 / os.sysconf("SC_CLK_TCK"))
        return {"per_s": answers / elapsed, "per_cpu_s": answers / cpu_s, "answers": float(answers)}

    def warm_up(self, answers: int) -> None:
        """Until a JVM has compiled: it compiles what it has done ten thousand times."""
        answered = 0.0
        while answered < answers:
            answered += self.measure(1.0)["answers"]

    def end(self) -> None:
        lean_groups.leave(self._sockets, self._connections)


def warm_up(sides: Sequence[Side], answers: int, load_of: Callable[[Sockets, Side], Load]) -> None:
    """Warm up each side with connections that end afterwards."""
    for side in sides:
        with Sockets() as sockets:
            load = load_of(sockets, side)
            load.warm_up(answers)
            load.end()


def measure(
    bench: Bench,
    part: str,
    about: Mapping[str, int],
    sides: Sequence[Side],
    load_of: Callable[[Sockets, Side], Load],
    warm_up_answers: int = 1,
) -> None:
    """Measure the sides alternately, and keep the figures of every run; what warms up does not count."""
    runs, seconds = (1, SECONDS_SMOKE) if bench.smoke else (bench.runs or RUNS, SECONDS)
    with Sockets() as sockets:
        loads = [load_of(sockets, side) for side in sides]
        for load in loads:
            load.warm_up(warm_up_answers)
        with sides[0].profiling():
            for _ in range(runs):
                for side, load in zip(sides, loads, strict=True):
                    bench.figures.add(part, side.name, about, load.measure(seconds))
        for load in loads:
            load.end()
