"""What the broker's side decides, in which order, does not depend on how Python hashes texts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: Members come, heartbeat, leave and are silent too long; prints all that was written, answered, timed and traced.
SCRIPT = """
from dataclasses import replace
from random import Random
from tests.support.groups.consumer import SETTINGS, World

random = Random(7)
world = World({f"t{n}": 3 for n in range(9)}, replace(SETTINGS, members_max=100))
names = [f"m{n}" for n in range(8)]
for _ in range(150):
    member, topics = random.choice(names), random.sample(sorted(world.sizes), random.randint(1, 9))
    match random.choice(("join", "beat", "beat", "leave", "wait")):
        case "join":
            world.join(member, *topics)
        case "beat" if member in world.epochs and member in world.group.members:
            has = world.group.members[member].assigned
            world.ask(member, world.epochs[member], owned=has, topics=tuple(topics))
        case "leave" if member in world.epochs:
            world.leave(member)
        case "wait":
            world.advance(random.choice((100, 900, 2_500)))
print(world.written, world.answers, list(world.timers.items()), world.events)
"""


def decided(hash_seed: int) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_consumer_groups_decide_the_same_under_every_hash_seed() -> None:
    first = decided(0)
    assert "assigned" in first
    assert [decided(seed) == first for seed in (1, 2, 3)] == [True] * 3
