"""Effect on other groups: heartbeats of 100 members of 10 groups while 5,000 connect, form a group and one joins.

300 heartbeats a second, evenly paced. Only those sent meanwhile count; the times just before show the floor of this
machine. The bystanders and the 5,000 run in processes of their own; if both share a core, the 5,000 have the lower
priority (nice 10).

`consumer-bystanders` does the same while 5,000 settle in the consumer protocol (KIP-848), which half of the other
groups use as well.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bench import lean_consumers, machine
from bench.children import Child
from bench.figures import Row, quantile
from bench.lean_sockets import Sockets

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.bench import Bench
    from bench.sides import Side

SIZE, GROUPS, EACH, PER_SECOND = 5_000, 10, 10, 300
NICE = 10
#: Time before the 5,000 come, which gives the floor.
QUIET_S = 1.5
TARGET_MS = 50.0
FORM = ".1f"


@dataclass(frozen=True)
class Measure:
    """A crowd of one protocol."""

    part: str
    does: str
    phases: tuple[tuple[str, str], ...]  #: after connecting: (label, figure)
    runs: int
    warm_ups: int
    settings: Mapping[str, str] = field(default_factory=dict)
    #: Of groups of the `consumer` design: for the bystanders, half of whose groups are of that design, and the crowd.
    topics: tuple[str, ...] = ()


CLASSIC = Measure(
    "bystanders",
    "join",
    (("p99 while they form", "forming_p99"), ("p99 while one more joins", "rejoining_p99")),
    runs=5,
    warm_ups=2,
)
CONSUMERS = Measure(
    "consumer-bystanders",
    "settle in the consumer protocol",
    (("p99 while they settle", "settling_p99"),),
    runs=3,
    warm_ups=1,
    settings=lean_consumers.SETTINGS,
    topics=("bystanding", "crowding"),
)


def look_on(side: Side, bystanders: Child, size: int, group: str, *topic: str) -> dict[str, float]:
    """Run one crowd and return its effect on the bystanders; with a topic it is one of the `consumer` design."""
    side.wait_for_quiet()
    with Child("bench.crowd", side.port, group, size, NICE, *topic) as crowd:
        bystanders.next().result()
        time.sleep(QUIET_S)
        with side.profiling():
            side.longest_turn_ms()
            course = crowd.next().result()
            longest = side.longest_turn_ms()
        taken = bystanders.next().result()
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


def run(bench: Bench, measure: Measure = CLASSIC) -> None:
    """Run the part `bystanders`."""
    size = bench.sizes[0] if bench.sizes else (50 if bench.smoke else SIZE)
    runs, warm_ups = (1, 0) if bench.smoke else (bench.runs or measure.runs, measure.warm_ups)
    machine.allow_connections(size + 1)
    with bench.sides(measure.part, measure.settings) as sides, ExitStack() as stack:
        bystanders = {}
        for side in sides:
            for topic, partitions in zip(measure.topics, (EACH, size), strict=False):
                with Sockets() as sockets:
                    lean_consumers.create_topic(sockets, side, topic, partitions)
            arguments = (side.port, GROUPS, EACH, PER_SECOND, *measure.topics[:1])
            bystanders[side.name] = stack.enter_context(Child("bench.bystander_members", *arguments))
        for number in range(-warm_ups, runs):
            for side in sides:
                found = look_on(side, bystanders[side.name], size, f"crowd-{number}", *measure.topics[1:])
                if number >= 0:
                    bench.figures.add(measure.part, side.name, {"members": size}, found)
    title = f"Heartbeats of {GROUPS * EACH} members of other groups while {size:,} {measure.does}, ms"
    bench.print_rows(measure.part, title, _rows(measure, {"members": size}))


def run_consumers(bench: Bench) -> None:
    """Run the part `consumer-bystanders`."""
    run(bench, CONSUMERS)


def _rows(measure: Measure, about: dict[str, int]) -> list[Row]:
    def met(ours: float, theirs: float | None) -> bool | None:
        return False if ours >= TARGET_MS else None if theirs is None else ours < theirs

    return [
        Row("p50", about, "p50", FORM),
        Row("p99", about, "p99", FORM, f"< {TARGET_MS:g} ms and below Kafka's", met),
        Row("longest", about, "max", FORM),
        Row("longest turn of the event loop", about, "longest_turn", FORM),
        Row("longest garbage collection", about, "longest_collection", FORM),
        Row("p99 while they connect", about, "connecting_p99", FORM),
        *(Row(label, about, name, FORM) for label, name in measure.phases),
        Row("p50 before, without the crowd", about, "quiet_p50", FORM),
        Row("p99 before, without the crowd", about, "quiet_p99", FORM),
        Row("duration, s", about, "seconds", FORM),
        Row("heartbeats counted", about, "samples"),
    ]
