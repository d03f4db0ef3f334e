"""ConsumerGroupHeartbeats (KIP-848) per CPU second of the server, while nothing changes.

One group of some size that has settled; each member sends its next heartbeat when the last one is answered. Every
answer is compared with the expected bytes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench import lean_consumers, lean_groups
from bench.figures import Row, at_least, print_rows
from bench.heartbeats import WARM_UP_BEATS, closed_loop, measured, warm_up
from bench.lean_consumers import ConsumerMember
from bench.lean_sockets import Sockets
from bench.sides import KAFKA, OURS

if TYPE_CHECKING:
    from bench.bench import Bench
    from bench.sides import Side

SIZES = (1, 100, 1000)
TOPIC, PARTITIONS = "beating", 1000
#: Interval of the heartbeats that settle a group, shorter than what the coordinator names.
SETTLING_S = 0.2
#: Target: heartbeats per CPU second, as a multiple of Kafka's.
TARGET = 1.0


class ConsumerLoad:
    """A group whose members all have their target, and what its heartbeats cost."""

    def __init__(self, sockets: Sockets, side: Side, size: int, group: str) -> None:
        members = [ConsumerMember(f"c{number}", group, number, TOPIC) for number in range(size)]
        lean_groups.find_coordinator(sockets, side.port, group)
        self._sockets, self._side = sockets, side
        self._connections = lean_consumers.connect(sockets, side.port, members)
        lean_consumers.settle(sockets, self._connections, PARTITIONS, interval_s=SETTLING_S)

    def measure(self, seconds: float) -> dict[str, float]:
        cpu_s = self._side.cpu_s()
        beats = closed_loop(self._connections, seconds)
        return {"per_cpu_s": beats / (self._side.cpu_s() - cpu_s), "answers": float(beats)}

    def end(self) -> None:
        lean_groups.leave(self._sockets, self._connections)


def run(bench: Bench) -> None:
    """Run the part `consumer-heartbeats`."""
    sizes = bench.sizes or ((1, 100) if bench.smoke else SIZES)
    runs, seconds = (1, 0.3) if bench.smoke else (bench.runs or 5, 3.0)
    with bench.sides("consumer-heartbeats", lean_consumers.SETTINGS) as sides:
        for side in sides:
            with Sockets() as sockets:
                lean_consumers.create_topic(sockets, side, TOPIC, PARTITIONS)
        beats = 2_000 if bench.smoke else WARM_UP_BEATS
        warm_up(sides, beats, partial(ConsumerLoad, size=50, group="warm-up"))
        for size in sizes:
            load_of = partial(ConsumerLoad, size=size, group=f"beat-{size}")
            for name, rows in measured(sides, size, runs, seconds, load_of).items():
                for row in rows:
                    bench.figures.add("consumer-heartbeats", name, {"members": size}, row)
    table = [
        Row(f"{size:,} members, /CPU-s", {"members": size}, "per_cpu_s", target=f">= {TARGET}", met=at_least(TARGET))
        for size in sizes
    ]
    title = "ConsumerGroupHeartbeats that change nothing, closed loop"
    print_rows(bench.console, bench.figures, "consumer-heartbeats", title, (OURS, KAFKA), table)
