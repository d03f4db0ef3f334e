"""ConsumerGroupHeartbeats (KIP-848) per CPU second of the server, while nothing changes.

One group of some size that has settled; each member sends its next heartbeat when the last one is answered.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bench import closed_loop, lean_consumers, lean_groups, machine
from bench.figures import Row, at_least
from bench.heartbeats import WARM_UP_BEATS, HeartbeatLoad
from bench.lean_consumers import ConsumerMember
from bench.lean_sockets import Sockets

if TYPE_CHECKING:
    from bench.bench import Bench
    from bench.sides import Side

SIZES = (1, 100, 1000)
TOPIC, PARTITIONS = "beating", 1000
#: Interval of the heartbeats that settle a group, shorter than what the coordinator names.
SETTLING_S = 0.2
#: Target: heartbeats per CPU second, as a multiple of Kafka's.
TARGET = 1.0


def settled(sockets: Sockets, side: Side, size: int, group: str) -> HeartbeatLoad:
    """A group whose members all have their target."""
    members = [ConsumerMember(f"c{number}", group, number, TOPIC) for number in range(size)]
    lean_groups.find_coordinator(sockets, side.port, group)
    connections = lean_consumers.connect(sockets, side.port, members)
    lean_consumers.settle(sockets, connections, PARTITIONS, interval_s=SETTLING_S)
    return HeartbeatLoad(sockets, side, connections)


def run(bench: Bench) -> None:
    """Run the part `consumer-heartbeats`."""
    sizes = bench.sizes or ((1, 100) if bench.smoke else SIZES)
    with bench.sides("consumer-heartbeats", lean_consumers.SETTINGS) as sides:
        for side in sides:
            with Sockets() as sockets:
                lean_consumers.create_topic(sockets, side, TOPIC, PARTITIONS)
        beats = 2_000 if bench.smoke else WARM_UP_BEATS
        closed_loop.warm_up(sides, beats, partial(settled, size=50, group="warm-up"))
        for size in sizes:
            machine.allow_connections(size * len(sides))
            load_of = partial(settled, size=size, group=f"beat-{size}")
            closed_loop.measure(bench, "consumer-heartbeats", {"members": size}, sides, load_of)
    rows = [
        Row(f"{size:,} members, /CPU-s", {"members": size}, "per_cpu_s", target=f">= {TARGET}", met=at_least(TARGET))
        for size in sizes
    ]
    bench.print_rows("consumer-heartbeats", "ConsumerGroupHeartbeats that change nothing, closed loop", rows)
