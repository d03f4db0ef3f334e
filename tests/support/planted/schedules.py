"""Schedules that show planted bugs: what the fuzzer's long exams leave of those that it draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from comparison.fuzzing.schedule import Schedule
from comparison.fuzzing.situation import sequence
from comparison.scenarios.plan.membership_vocabulary import CopyWithZombie
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import FreezeAtPoint, FreezeOwner, Hold, Inject, KillAtPoint
from kernel.designs import CONSUMER, EAGER, ZOOKEEPER

SEED = 1


def shrunk(number: int, design: str, run_seed: int, links: str, *steps: Step, fixed: bool = False) -> Schedule:
    """What is left of a schedule of SEED."""
    return Schedule(
        seed=SEED, number=number, design=design, steps=sequence(design, steps), run_seed=run_seed, simulated=True,
        links=links, fixed=fixed,
    )  # fmt: skip


#: So many worlds show it at the latest: a change of anything may move the moment that it takes out of the first one.
WORLDS = 4
#: What the long exams find.
SHRUNK: dict[str, Schedule] = {
    "unfenced commit": shrunk(3, EAGER, 1698759047, "region", FreezeOwner()),
    "unreleased ignored": shrunk(1, CONSUMER, 1386622405, "loopback,priorities=3", Inject("slow-start", "owner")),
    "unchecked release": shrunk(7, ZOOKEEPER, 461985351, "region", FreezeAtPoint("R5", over_ms=1000), fixed=True),
    "claims kept": shrunk(
        5, ZOOKEEPER, 2137129902, "zone,priorities=2",
        KillAtPoint("R6", "member"), FreezeOwner(), Inject("close", "owner->data"),
    ),
    "zombie producer": shrunk(3, EAGER, 1698759047, "region", CopyWithZombie()),
    "fence before the write": shrunk(
        12, EAGER, 1542378776, "loopback,priorities=3", Inject("freeze", "broker-1"), Hold(4000)
    ),
}  # fmt: skip


def worlds_of(name: str) -> Iterator[Schedule]:
    """The schedule that shows a bug, in one world after the other."""
    schedule = SHRUNK[name]
    return (replace(schedule, run_seed=schedule.run_seed + more) for more in range(WORLDS))
