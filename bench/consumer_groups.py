"""Groups of the `consumer` design (KIP-848) that settle: all join at once, and share as many partitions as members.

From the first join until every member has reported that it owns its share. Members heartbeat at the interval that the
coordinator names, five seconds on both sides, and at once when they have something to report. Members connect before
the first join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import lean_consumers, lean_groups, machine
from bench.figures import Row, at_most
from bench.lean_consumers import ConsumerMember
from bench.lean_sockets import Sockets

if TYPE_CHECKING:
    from bench.bench import Bench
    from bench.sides import Side

SIZES = (1_000, 5_000)
#: Default runs; with thousands of members a run takes a minute.
RUNS, RUNS_LARGEST = 5, 3
#: Groups of 1,000 that warm up the JVM.
WARM_UPS, WARM_UP_SIZE = 3, 1_000
#: Target: CPU seconds, as a multiple of Kafka's.
TARGET = 0.6


def settle_once(side: Side, size: int, group: str, topic: str, partitions: int) -> dict[str, float]:
    """Measure one group of one side once."""
    members = [ConsumerMember(f"c{number}", group, number, topic) for number in range(size)]
    side.wait_for_quiet()
    with Sockets() as sockets, machine.no_collections():
        lean_groups.find_coordinator(sockets, side.port, group)
        connections = lean_consumers.connect(sockets, side.port, members)
        with side.profiling():
            cpu_s = side.cpu_s()
            settled = lean_consumers.settle(sockets, connections, partitions)
            cpu_s = side.cpu_s() - cpu_s
        lean_groups.leave(sockets, connections)
    return {
        "cpu_s": cpu_s,
        "seconds": settled.seconds,
        "heartbeats": float(settled.heartbeats),
        "epochs": float(settled.epoch),
    }


def run(bench: Bench) -> None:
    """Run the part `consumer-groups`."""
    sizes = bench.sizes or ((50,) if bench.smoke else SIZES)
    for size in sizes:
        machine.allow_connections(size + 1)
        runs = bench.runs or (1 if bench.smoke else RUNS_LARGEST if size > WARM_UP_SIZE else RUNS)
        with bench.sides(f"consumer-groups-{size}", lean_consumers.SETTINGS) as sides:
            topic, warm_up = f"settling-{size}", min(size, WARM_UP_SIZE)
            for side in sides:
                with Sockets() as sockets:
                    lean_consumers.create_topic(sockets, side, topic, size)
            for number in range(1 if bench.smoke else WARM_UPS):
                for side in sides:
                    found = settle_once(side, warm_up, f"warm-up-{number}", topic, size)
                    if number == 0:
                        bench.figures.add("consumer-groups-first", side.name, {"members": warm_up}, found)
            for number in range(runs):
                for side in sides:
                    found = settle_once(side, size, f"settling-{number}", topic, size)
                    bench.figures.add("consumer-groups", side.name, {"members": size}, found)
    for size in sizes:
        about = {"members": size}
        rows = [
            Row("CPU s", about, "cpu_s", ".2f", f"<= {TARGET}", at_most(TARGET)),
            Row("s", about, "seconds", ".1f"),
            Row("heartbeats", about, "heartbeats"),
            Row("group epoch", about, "epochs"),
        ]
        title = f"{size:,} lean members of a group of the consumer protocol settle"
        bench.print_rows("consumer-groups", title, rows)
    for size in dict.fromkeys(min(size, WARM_UP_SIZE) for size in sizes):
        title = f"The first {size:,} after the start: the JVM is cold"
        rows = [Row("CPU s", {"members": size}, "cpu_s", ".2f")]
        bench.print_rows("consumer-groups-first", title, rows)
