"""Effect on other groups: heartbeats of 100 members of 10 groups while 5,000 connect, form a group and one joins.

300 heartbeats a second, evenly paced. Only those sent meanwhile count; the times just before show the floor of this
machine. The bystanders and the 5,000 run in processes of their own; if both share a core, the 5,000 have the lower
priority (nice 10).

`consumer-bystanders` does the same while 5,000 settle in the consumer protocol (KIP-848), which half of the other
groups use as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from bench import lean_consumers, machine
from bench.figures import Row, print_rows
from bench.lean_sockets import Sockets
from bench.sides import KAFKA, OURS
from kernel.platform.processes import start_child, stop_child

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bench.bench import Bench
    from bench.sides import Side

SIZE, GROUPS, EACH, PER_SECOND = 5_000, 10, 10, 300
NICE = 10
#: Time before the 5,000 come, which gives the floor.
QUIET_S = 1.5
WARM_UPS = 2
TARGET_MS = 50.0
#: Of the part `consumer-bystanders`.
CONSUMER_RUNS, CONSUMER_WARM_UPS = 3, 1
SMALL_TOPIC, LARGE_TOPIC = "bystanding", "crowding"


class LineChild:
    """A child process that answers in JSON lines."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child
        self.read()

    def read(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(
                f"a child process of the bench ended with exit code {self._child.wait()}; its message is above"
            )
        return dict(json.loads(line))

    def next(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write("\n")
        self._child.stdin.flush()


@contextmanager
def line_child(module: str, *arguments: object) -> Iterator[LineChild]:
    """Start `python -m module arguments` and wait until it is ready."""
    child = start_child(
        [sys.executable, "-m", module, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        yield LineChild(child)
    finally:
        child.stdin.close()
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            stop_child(child)
        child.stdout.close()


def look_on(side: Side, bystanders: LineChild, size: int, group: str, *topic: str) -> dict[str, float]:
    """Run one crowd and return its effect on the bystanders; with a topic it is one of the `consumer` design."""
    side.wait_for_quiet()
    with line_child("bench.crowd", side.port, group, size, NICE, *topic) as crowd:
        bystanders.next()
        time.sleep(QUIET_S)
        with side.profiling():
            side.longest_turn_ms()
            crowd.next()
            course = crowd.read()
            longest = side.longest_turn_ms()
        bystanders.next()
        taken = bystanders.read()
        crowd.next()
    return {**judged(taken["samples"], taken["late"], course), **longest}


def judged(samples: Sequence[tuple[float, float]], late: int, course: dict[str, float]) -> dict[str, float]:
    """Quantiles of the heartbeats in flight between the first connection and the last answer, and in each phase."""
    began, ended = course["began"], course["ended"]

    def between(start: float, end: float) -> list[float]:
        return sorted(ms for sent, ms in samples if sent + ms / 1000 >= start and sent <= end)

    meanwhile, quiet = between(began, ended), sorted(ms for sent, ms in samples if sent + ms / 1000 < began)
    if len(meanwhile) < PER_SECOND * (ended - began) * 0.5 - late:
        raise RuntimeError(f"{len(meanwhile)} heartbeats in {ended - began:.1f} s: the load did not get enough CPU")
    found = {"samples": float(len(meanwhile)), "late": float(late), "seconds": ended - began}
    found |= {"p50": quantile(meanwhile, 0.5), "p99": quantile(meanwhile, 0.99), "max": meanwhile[-1]}
    found |= {"quiet_p50": quantile(quiet, 0.5), "quiet_p99": quantile(quiet, 0.99)}
    phases = {"connecting": ("began", "connected")}
    if "stable" in course:
        phases |= {"forming": ("connected", "stable"), "rejoining": ("stable", "ended")}
    else:
        phases |= {"settling": ("connected", "ended")}
    for name, (start, end) in phases.items():
        found |= {f"{name}_p99": quantile(between(course[start], course[end]), 0.99)}
    return found


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def run(bench: Bench) -> None:
    """Run the part `bystanders`."""
    size = bench.sizes[0] if bench.sizes else (50 if bench.smoke else SIZE)
    runs, warm_ups = (1, 0) if bench.smoke else (bench.runs or 5, WARM_UPS)
    machine.allow_connections(size + 1)
    with bench.sides("bystanders") as sides, ExitStack() as stack:
        bystanders = {
            side.name: stack.enter_context(line_child("bench.bystander_members", side.port, GROUPS, EACH, PER_SECOND))
            for side in sides
        }
        for number in range(-warm_ups, runs):
            for side in sides:
                found = look_on(side, bystanders[side.name], size, f"crowd-{number}")
                if number >= 0:
                    bench.figures.add("bystanders", side.name, {"members": size}, found)
    report(bench, size)


def run_consumers(bench: Bench) -> None:
    """Run the part `consumer-bystanders`."""
    size = bench.sizes[0] if bench.sizes else (50 if bench.smoke else SIZE)
    runs, warm_ups = (1, 0) if bench.smoke else (bench.runs or CONSUMER_RUNS, CONSUMER_WARM_UPS)
    machine.allow_connections(size + 1)
    with bench.sides("consumer-bystanders", lean_consumers.SETTINGS) as sides, ExitStack() as stack:
        bystanders = {}
        for side in sides:
            with Sockets() as sockets:
                lean_consumers.create_topic(sockets, side, SMALL_TOPIC, EACH)
                lean_consumers.create_topic(sockets, side, LARGE_TOPIC, size)
            arguments = (side.port, GROUPS, EACH, PER_SECOND, SMALL_TOPIC)
            bystanders[side.name] = stack.enter_context(line_child("bench.bystander_members", *arguments))
        for number in range(-warm_ups, runs):
            for side in sides:
                found = look_on(side, bystanders[side.name], size, f"crowd-{number}", LARGE_TOPIC)
                if number >= 0:
                    bench.figures.add("consumer-bystanders", side.name, {"members": size}, found)
    about = {"members": size}
    rows = common_rows(about)
    rows[6:6] = [Row("p99 while they settle", about, "settling_p99", ".1f")]
    title = f"Heartbeats of {GROUPS * EACH} members of other groups while {size:,} settle in the consumer protocol, ms"
    print_rows(bench.console, bench.figures, "consumer-bystanders", title, (OURS, KAFKA), rows)


def common_rows(about: dict[str, int]) -> list[Row]:
    """Rows for a crowd of either protocol, without the phases after connecting, whose place is the sixth."""

    def met(ours: float, theirs: float | None) -> bool | None:
        return False if ours >= TARGET_MS else None if theirs is None else ours < theirs

    form = ".1f"
    return [
        Row("p50", about, "p50", form),
        Row("p99", about, "p99", form, f"< {TARGET_MS:g} ms and below Kafka's", met),
        Row("longest", about, "max", form),
        Row("longest turn of the event loop", about, "longest_turn", form),
        Row("longest garbage collection", about, "longest_collection", form),
        Row("p99 while they connect", about, "connecting_p99", form),
        Row("p50 before, without the crowd", about, "quiet_p50", form),
        Row("p99 before, without the crowd", about, "quiet_p99", form),
        Row("duration, s", about, "seconds", form),
        Row("heartbeats counted", about, "samples"),
    ]


def report(bench: Bench, size: int) -> None:
    about = {"members": size}
    rows = common_rows(about)
    rows[6:6] = [
        Row("p99 while they form", about, "forming_p99", ".1f"),
        Row("p99 while one more joins", about, "rejoining_p99", ".1f"),
    ]
    title = f"Heartbeats of {GROUPS * EACH} members of other groups while {size:,} join, ms"
    print_rows(bench.console, bench.figures, "bystanders", title, (OURS, KAFKA), rows)
