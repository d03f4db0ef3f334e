"""Every fault of the table as steps of scenarios, in groups that a run goes through one after the other."""

from __future__ import annotations

from collections.abc import Mapping

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.step import Step
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, Settle, Steady
from kernel.designs import COORDINATED, DESIGN_NAMES, SERVER, ZOOKEEPER


def _for(held_ms: int, fault: str, target: str, given: Mapping[str, int | str] | None = None) -> tuple[Step, ...]:
    return Inject(fault, target, given or {}), Hold(held_ms), Heal()


LINKS: tuple[Step, ...] = (
    *_for(1000, "delay", "follower->ensemble", {"by_ms": 700, "ways": "in"}),
    *_for(500, "cut", "owner->authority", {"ways": "in"}),
    *_for(500, "half-open", "owner->authority"),
    *_for(500, "close", "owner->data"),
    *(Inject("growing-delay", "coordinator->zookeeper", {"to_ms": 300, "within_ms": 600}), Hold(800)),
)
PROCESSES: tuple[Step, ...] = (
    *_for(1500, "kill", "leader"),
    *_for(500, "freeze", "coordinator"),
    *(Inject("restart", "broker-2"), *_for(1500, "disconnect", "leader->network")),
    *_for(1000, "quorum-loss", "ensemble"),
    *_for(1000, "kill", "owner"),
    *(Inject("disk-full", "broker-1"), Hold(1000), Inject("clock-step", "owner", {"by_ms": -3_600_000})),
    *_for(1500, "clock-step", "coordinator", {"by_ms": 86_400_000}),
    *(Inject("slow-start", "m2", {"away_ms": 300}), Inject("flap", "m3", {"times": 2, "every_ms": 300})),
)
SESSIONS: tuple[Step, ...] = (
    # Held until the member has noticed: before that, the group looks settled.
    *(Inject("expire", "owner"), Hold(1000), Settle()),
    *(Inject("expire", "members"), Hold(1000), Settle()),
)
OWNER_ZNODES: tuple[Step, ...] = (Inject("set-data", "partition-0"), Hold(500))
APPLICATIONS: tuple[Step, ...] = (
    *_for(500, "stuck-record", "owner"),
    *(Inject("slow-record", "owner"), Inject("slow", "m1"), Hold(500)),
)
MEMBERSHIP: tuple[Step, ...] = (
    *(Inject("join", "group"), Settle(), Inject("listener-exception", "m2"), Inject("leave", "m1"), Settle()),
    *(Inject("unsubscribe", "owner"), Settle(), Heal("unsubscribe")),
    *(Inject("flap", "m3", {"times": 2, "every_ms": 300, "by": "leave"}), Heal()),
    Inject("rolling-restart", "members", {"away_ms": 300, "every_ms": 500}),
)
LISTENERS: tuple[Step, ...] = (
    *(Inject("slow-listener", "m1", {"for_ms": 500}), Inject("late-commit", "m2", {"for_ms": 500})),
    *(Inject("join", "group"), Settle(), Heal()),
)
PAUSES: tuple[Step, ...] = (Inject("paused-partitions", "owner"), Hold(500))

#: What is injected together, into how many ZooKeeper servers, in which designs.
GROUPS: tuple[tuple[str, tuple[Step, ...], int, tuple[str, ...]], ...] = (
    ("links", LINKS, 3, DESIGN_NAMES),
    ("processes", PROCESSES, 3, DESIGN_NAMES),
    ("sessions", SESSIONS, 1, (ZOOKEEPER, SERVER)),
    ("owner-znodes", OWNER_ZNODES, 1, (ZOOKEEPER,)),
    ("applications", APPLICATIONS, 1, DESIGN_NAMES),
    ("membership", MEMBERSHIP, 1, DESIGN_NAMES),
    ("listeners", LISTENERS, 1, DESIGN_NAMES),
    ("pauses", PAUSES, 1, COORDINATED),
)


def scenario_of(steps: tuple[Step, ...], servers: int) -> Scenario:
    """A scenario `mine` that goes through these steps."""
    return Scenario(
        name="mine",
        symptom="?",
        look_for=("!",),
        steps=(Form(), Steady(), *steps),
        defaults=Parameters(time_limit_s=240),
        settings={"rebalance.listener.in.attempt": "true"},
        zookeeper_servers=servers,
        brokers_min=2,
    )
