"""Heartbeats per second and per CPU second of the server, at several numbers of connections.

Each connection is a group of one member (librdkafka's mock cluster settles no larger group at once) and sends its next
heartbeat when the last one is answered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench import closed_loop, lean, lean_groups, machine
from bench.closed_loop import Exchange, Load
from bench.figures import Row, at_least
from bench.lean import Member
from bench.sides import MOCK, OURS, mock_side

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.bench import Bench
    from bench.lean_sockets import Sockets
    from bench.sides import Side

CONNECTIONS = (1, 100, 1000)
#: The mock needs minutes to settle 1000 groups.
MOCK_MAX = 100
#: Kafka is warm after about 60,000.
WARM_UP_BEATS, WARM_UP_CONNECTIONS = 100_000, 50
#: Target: heartbeats per CPU second, as a multiple of Kafka's.
TARGET = 1.6


class HeartbeatLoad(Load):
    """Members that heartbeat, of either protocol."""

    def exchanges(self) -> Mapping[int, Exchange]:
        return {
            each.fileno: Exchange(
                each.socket.recv,
                partial(each.socket.send, each.data.heartbeat()),
                each.data.heartbeat_answer(lean.NONE),
            )
            for each in self._connections
        }

    def end(self) -> None:
        """Leave, except on the mock, which does not support LeaveGroup 3 properly and ends with this measure."""
        if self._side.name == MOCK:
            self._sockets.drop(self._connections)
        else:
            super().end()


def groups_of_one(sockets: Sockets, side: Side, connections: int) -> HeartbeatLoad:
    """Stable groups with one member each."""
    members = [Member(f"c{n}", f"beat-{connections}-{n}", n) for n in range(connections)]
    lean_groups.find_coordinator(sockets, side.port, members[0].group)
    connected = lean_groups.connect(sockets, side.port, members)
    lean_groups.settle(sockets, connected)
    return HeartbeatLoad(sockets, side, connected)


def run(bench: Bench) -> None:
    """Run the part `heartbeats`."""
    connections = bench.sizes or ((1, 100) if bench.smoke else CONNECTIONS)
    with bench.sides("heartbeats") as sides:
        beats = 5_000 if bench.smoke else WARM_UP_BEATS
        closed_loop.warm_up(sides, beats, partial(groups_of_one, connections=WARM_UP_CONNECTIONS))
        for count in connections:
            _measure(bench, sides, count)
    # --ours-only skips the mock as well: its groups need 3 s each to settle.
    few = () if bench.asks_ours_only else tuple(count for count in connections if count <= MOCK_MAX)
    if few:
        with machine.pinned(bench.cores.driver), mock_side(bench.cores) as side:
            for count in few:
                _measure(bench, [side], count)
    report(bench, connections, few)


def _measure(bench: Bench, sides: Sequence[Side], count: int) -> None:
    machine.allow_connections(count * len(sides))
    load_of = partial(groups_of_one, connections=count)
    closed_loop.measure(bench, "heartbeats", {"connections": count}, sides, load_of)


def report(bench: Bench, connections: tuple[int, ...], few: tuple[int, ...]) -> None:
    rows = []
    for count in connections:
        about = {"connections": count}
        rows += [
            Row(f"{count} connections, /CPU-s", about, "per_cpu_s", target=f">= {TARGET}", met=at_least(TARGET)),
            Row(f"{count} connections, /s", about, "per_s"),
        ]
    bench.print_rows("heartbeats", "Heartbeats, closed loop", rows)
    floor = [replace(row, target="", met=None) for row in rows if row.about["connections"] in few]
    if floor:
        bench.print_rows("heartbeats", "Heartbeats beside librdkafka's mock", floor, (OURS, MOCK))
