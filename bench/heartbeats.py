"""Heartbeats per second and per CPU second of the server, at several numbers of connections.

Each connection is a group of one member (librdkafka's mock cluster settles no larger group at once) and sends its next
heartbeat when the last one is answered. Every answer is compared with the expected bytes.
"""

from __future__ import annotations

import os
import select
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from bench import lean_groups, machine
from bench.figures import Row, at_least, print_rows
from bench.lean import Member
from bench.lean_sockets import Sockets
from bench.sides import KAFKA, MOCK, OURS, mock_side

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.bench import Bench
    from bench.lean_sockets import Connection
    from bench.sides import Side

CONNECTIONS = (1, 100, 1000)
#: The mock needs minutes to settle 1000 groups.
MOCK_MAX = 100
#: Kafka is warm after about 60,000.
WARM_UP_BEATS, WARM_UP_CONNECTIONS = 100_000, 50
#: Target: heartbeats per CPU second, as a multiple of Kafka's.
TARGET = 1.6


class Load(Protocol):
    """Connected members of one side."""

    def measure(self, seconds: float) -> dict[str, float]:
        """Figures of a stretch of time, the number of `answers` among them."""

    def end(self) -> None: ...


class HeartbeatLoad:
    """Connected members of stable groups, one each."""

    def __init__(self, sockets: Sockets, side: Side, connections: int) -> None:
        self._side = side
        members = [Member(f"c{n}", f"beat-{connections}-{n}", n) for n in range(connections)]
        lean_groups.find_coordinator(sockets, side.port, members[0].group)
        self._connections = lean_groups.connect(sockets, side.port, members)
        lean_groups.settle(sockets, self._connections)
        self._sockets = sockets

    def measure(self, seconds: float) -> dict[str, float]:
        cpu_s, started = self._side.cpu_s(), time.monotonic()
        beats = closed_loop(self._connections, seconds)
        elapsed, cpu_s = time.monotonic() - started, self._side.cpu_s() - cpu_s
        # A short measurement may use less CPU time than the clock resolves.
        cpu_s = max(cpu_s, 1 / os.sysconf("SC_CLK_TCK"))
        return {"per_s": beats / elapsed, "per_cpu_s": beats / cpu_s, "answers": float(beats)}

    def end(self) -> None:
        """Leave, except on the mock, which does not support LeaveGroup 3 properly and ends with this measure."""
        if self._side.name == MOCK:
            self._sockets.drop(self._connections)
        else:
            lean_groups.leave(self._sockets, self._connections)


def closed_loop(connections: list[Connection], seconds: float) -> int:
    """Keep one heartbeat in flight on each connection; return how many were answered. Every answer is checked."""
    epoll = select.epoll()
    # Bound methods by file number: the work done here for a heartbeat limits what can be measured.
    table = {
        c.fileno: (c.socket.recv, c.socket.send, c.data.heartbeat(), c.data.heartbeat_answer(0)) for c in connections
    }
    clock, poll = time.monotonic, epoll.poll
    beats = 0
    with epoll, machine.no_collections():
        for connection in connections:
            epoll.register(connection.fileno, select.EPOLLIN)
        for _, send, frame, _ in table.values():
            send(frame)
        in_flight = len(connections)
        deadline = clock() + seconds
        goes_on = True
        while in_flight:
            ready = poll(30)
            if not ready:
                raise TimeoutError("heartbeats get no answer")
            goes_on = goes_on and clock() < deadline
            for fileno, _ in ready:
                receive, send, frame, good = table[fileno]
                if receive(4096) != good:
                    raise RuntimeError("a heartbeat was not answered with NONE")
                beats += 1
                if goes_on:
                    send(frame)
                else:
                    in_flight -= 1
    return beats


def warm_up(sides: list[Side], beats: int, load_of: Callable[[Sockets, Side], Load]) -> None:
    """Send heartbeats until a JVM has compiled: it compiles what it has done ten thousand times."""
    for side in sides:
        with Sockets() as sockets:
            load = load_of(sockets, side)
            answered = 0.0
            while answered < beats:
                answered += load.measure(1.0)["answers"]
            load.end()


def measured(
    sides: list[Side], connections: int, runs: int, seconds: float, load_of: Callable[[Sockets, Side], Load]
) -> dict[str, list[dict[str, float]]]:
    """{side: one row per run}, sides alternating, after a first run that does not count."""
    rows: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
    machine.allow_connections(connections * len(sides))
    with Sockets() as sockets:
        loads = {side.name: load_of(sockets, side) for side in sides}
        for load in loads.values():
            load.measure(seconds)
        with sides[0].profiling():
            for _ in range(runs):
                for side in sides:
                    rows[side.name].append(loads[side.name].measure(seconds))
        for load in loads.values():
            load.end()
    return rows


def run(bench: Bench) -> None:
    """Run the part `heartbeats`."""
    connections = bench.sizes or ((1, 100) if bench.smoke else CONNECTIONS)
    runs, seconds = (1, 0.3) if bench.smoke else (bench.runs or 5, 3.0)
    with bench.sides("heartbeats") as sides:
        beats = 5_000 if bench.smoke else WARM_UP_BEATS
        warm_up(sides, beats, partial(HeartbeatLoad, connections=WARM_UP_CONNECTIONS))
        for count in connections:
            keep(bench, measured(sides, count, runs, seconds, partial(HeartbeatLoad, connections=count)), count)
    # --ours-only skips the mock as well: its groups need 3 s each to settle.
    few = () if bench.asks_ours_only else tuple(count for count in connections if count <= MOCK_MAX)
    if few:
        with machine.pinned(bench.cores.driver), mock_side(bench.cores) as side:
            for count in few:
                keep(bench, measured([side], count, runs, seconds, partial(HeartbeatLoad, connections=count)), count)
    report(bench, connections, few)


def keep(bench: Bench, rows: dict[str, list[dict[str, float]]], connections: int) -> None:
    for side, its_rows in rows.items():
        for row in its_rows:
            bench.figures.add("heartbeats", side, {"connections": connections}, row)


def report(bench: Bench, connections: tuple[int, ...], few: tuple[int, ...]) -> None:
    rows = []
    for count in connections:
        about = {"connections": count}
        rows.append(
            Row(f"{count} connections, /CPU-s", about, "per_cpu_s", target=f">= {TARGET}", met=at_least(TARGET))
        )
        rows.append(Row(f"{count} connections, /s", about, "per_s"))
    print_rows(bench.console, bench.figures, "heartbeats", "Heartbeats, closed loop", (OURS, KAFKA), rows)
    floor = [replace(row, target="", met=None) for row in rows if row.about["connections"] in few]
    if floor:
        print_rows(
            bench.console, bench.figures, "heartbeats", "Heartbeats beside librdkafka's mock", (OURS, MOCK), floor
        )
