"""Seeded runs of a model group: the same random interleavings with and without an option."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.support.model.actions import ALL, WEIGHTS, Actions, beginning, end_of_faults
from tests.support.model.group import ModelGroup
from tests.support.model.invariants import Invariants
from tests.support.model.zookeeper import ModelZooKeeper

Check = Callable[[ModelGroup], None]


def nothing(_: ModelGroup) -> None:
    """A check that accepts everything."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The actions of a run, and whom they affect; `always` is checked after every action."""

    actions: Sequence[str] = ALL
    steps: int = 120
    servers: int = 3
    fence: str = "none"
    finish: Check = end_of_faults
    always: Check = nothing


def play(seed: int, plan: Plan, check: Check, **options: Any) -> Invariants:
    """Two members join, random actions follow, and `check` runs when all faults are healed and the group is settled."""
    chosen = random.Random(seed)
    group = beginning(ModelZooKeeper(plan.servers))
    held = Invariants(group)
    actions = Actions(group, chosen.randrange, options, plan.fence)
    actions.join()
    actions.join()
    weights = [WEIGHTS.get(name, 1) for name in plan.actions]
    for name in chosen.choices(plan.actions, weights, k=plan.steps):
        getattr(actions, name)()
        plan.always(group)
    plan.finish(group)
    check(group)
    return held


def first_to_break(seeds: Iterable[int], plan: Plan, check: Check, **options: Any) -> str | None:
    """The first seed for which `check` fails, and its error; None if there is none."""
    for seed in seeds:
        try:
            play(seed, plan, check, **options)
        except AssertionError as error:
            return f"seed {seed}: {error}"
    return None
