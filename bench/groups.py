"""A group of lean members, one connection each: forming, one more member, heartbeats every 3 s, memory.

Persistence is included. Members connect before the first JoinGroup, and connecting is timed separately. The time to
Stable runs from the first JoinGroup to the last answer to SyncGroup. It is printed as measured, and without the initial
delay, which is extended as long as members join within it (with more than one member, to at least twice 500 ms).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from bench import lean_groups, machine
from bench.figures import Row, at_most, at_most_absolute
from bench.lean import Member
from bench.lean_sockets import Sockets
from bench.sides import SETTINGS

if TYPE_CHECKING:
    from bench.bench import Bench
    from bench.sides import Side

SIZES = (1_000, 5_000, 10_000)
#: Size of the (at least two) unmeasured groups that warm up the JVM.
WARM_UP_MEMBERS = 5_000
DELAY_S = int(SETTINGS["group.initial.rebalance.delay.ms"]) / 1000
#: Heartbeat interval; duration at the size with a target, and at the others.
HEARTBEAT_S, STEADY_S, STEADY_OTHERS_S = 3.0, 15.0, 6.0
#: Default runs; with 10,000 members a run takes half a minute per side.
RUNS, RUNS_LARGEST = 5, 3
#: Targets relative to Kafka's.
CPU_TARGET = 0.5
#: Targets: seconds to Stable beyond the initial delay with 10,000, % of a core with 5,000 heartbeats every 3 s.
STABLE_TARGET_S, STABLE_TARGET_SIZE = 3.0, 10_000
STEADY_TARGET, STEADY_TARGET_SIZE = 12.0, 5_000


def form_once(side: Side, size: int, group: str, steady_s: float) -> dict[str, float]:
    """Measure one group of one side once, from its first connection to its end."""
    members = [Member(f"c{number}", group, number) for number in range(size + 1)]
    side.wait_for_quiet()
    found = {"memory_before_mb": side.memory_mb()}
    with Sockets() as sockets, machine.no_collections():
        lean_groups.find_coordinator(sockets, side.port, group)
        cpu_s, started = side.cpu_s(), time.monotonic()
        *connections, joiner = lean_groups.connect(sockets, side.port, members)
        found |= {"connect_s": time.monotonic() - started, "connect_cpu_s": side.cpu_s() - cpu_s}
        found["memory_connected_mb"] = side.memory_mb()
        with side.profiling():
            cpu_s = side.cpu_s()
            formed = lean_groups.settle(sockets, connections)
            found["form_cpu_s"] = side.cpu_s() - cpu_s
            found["form_s"] = formed.seconds
            found["delay_s"] = formed.delay_s(DELAY_S)
            found["beyond_s"] = formed.seconds - found["delay_s"]
            # The usual state when a member joins: every member has heartbeated in this generation.
            lean_groups.beat(sockets, connections)
            cpu_s = side.cpu_s()
            joined = lean_groups.rebalance(sockets, connections, joiner)
            found |= {"join_cpu_s": side.cpu_s() - cpu_s, "join_s": joined.seconds}
            found["memory_stable_mb"] = side.memory_mb()
            if steady_s:
                cpu_s, started = side.cpu_s(), time.monotonic()
                beats = lean_groups.heartbeats_in_turn(sockets, connections, steady_s, HEARTBEAT_S)
                elapsed = time.monotonic() - started
                found |= {"steady_percent": 100 * (side.cpu_s() - cpu_s) / elapsed, "steady_per_s": beats / elapsed}
        lean_groups.leave(sockets, [*connections, joiner])
    return found


def run(bench: Bench) -> None:
    """Run the part `groups`."""
    sizes = bench.sizes or ((50,) if bench.smoke else SIZES)
    for size in sizes:
        machine.allow_connections(size + 1)
        runs = bench.runs or (1 if bench.smoke else RUNS_LARGEST if size >= STABLE_TARGET_SIZE else RUNS)
        steady_s = 1.0 if bench.smoke else STEADY_S if size == STEADY_TARGET_SIZE else STEADY_OTHERS_S
        with bench.sides(f"groups-{size}") as sides:
            warm_ups = 1 if bench.smoke else max(2, WARM_UP_MEMBERS // size)
            for number in range(-warm_ups, runs):
                for side in sides:
                    found = form_once(side, size, f"herd-{size}-{number}", steady_s if number >= 0 else 1.0)
                    # Memory is measured with the first group, because earlier groups would leave garbage in it.
                    memory = {name: found.pop(name) for name in list(found) if name.startswith("memory")}
                    if number == -warm_ups:
                        keep_first(
                            bench, side, size, memory | {name: found[name] for name in ("form_cpu_s", "join_cpu_s")}
                        )
                    elif number >= 0:
                        bench.figures.add("groups", side.name, {"members": size}, found)
    report(bench, sizes)


def keep_first(bench: Bench, side: Side, size: int, found: dict[str, float]) -> None:
    """Memory of the first group after the start."""
    grown = found["memory_stable_mb"] - found["memory_before_mb"]
    bench.figures.add(
        "groups-first", side.name, {"members": size}, found | {"kb_per_member": 1000 * grown / (size + 1)}
    )


def report(bench: Bench, sizes: tuple[int, ...]) -> None:
    for size in sizes:
        about = {"members": size}
        cpu = {"form": ".3f", "target": f"<= {CPU_TARGET}", "met": at_most(CPU_TARGET)}
        seconds = {"form": ".2f"}
        beyond: dict[str, Any] = dict(seconds)
        steady: dict[str, Any] = {"form": ".1f"}
        if size == STABLE_TARGET_SIZE:
            beyond |= {"target": f"<= {STABLE_TARGET_S:g} s", "met": at_most_absolute(STABLE_TARGET_S)}
        if size == STEADY_TARGET_SIZE:
            steady |= {"target": f"<= {STEADY_TARGET:g} %", "met": at_most_absolute(STEADY_TARGET)}
        rows = [
            Row("connect, s", about, "connect_s", **seconds),
            Row("connect, CPU s", about, "connect_cpu_s", form=".3f"),
            Row("to Stable, s", about, "form_s", **seconds),
            Row("beyond the initial delay, s", about, "beyond_s", **beyond),
            Row("forming, CPU s", about, "form_cpu_s", **cpu),
            Row("one more joins, s", about, "join_s", **seconds),
            Row("one more joins, CPU s", about, "join_cpu_s", **cpu),
            Row(f"heartbeats every {HEARTBEAT_S:g} s, % of a core", about, "steady_percent", **steady),
        ]
        bench.print_rows("groups", f"A group of {size:,} lean members", rows)
        first = [
            Row("forming, CPU s", about, "form_cpu_s", form=".3f"),
            Row("one more joins, CPU s", about, "join_cpu_s", form=".3f"),
            Row("memory before, MB", about, "memory_before_mb"),
            Row("memory, connected, MB", about, "memory_connected_mb"),
            Row("memory, all in one group after one more joined, MB", about, "memory_stable_mb"),
            Row("memory, kB per member", about, "kb_per_member", form=".1f"),
        ]
        title = f"The first {size:,} after the start: the JVM is cold, and its heap has a fixed size"
        bench.print_rows("groups-first", title, first)
