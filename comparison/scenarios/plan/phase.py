"""At which moment a change comes: anywhere between two heartbeats, or two automatic commits, of the members.

After a rebalance the timers of all members are in step, and a change that always came when the group had just settled
would always meet them at the same phase: how soon it is noticed, and how much was delivered and not yet committed,
would be an artefact. So before each change the runner waits for a share of the timers' interval. The share follows from
the seed, the scenario and the number of the change, and not from the design: all designs of one comparison get the same
one, and another seed, as another repeat has, gets another.
"""

from __future__ import annotations

import random

#: Longer intervals are not waited for: members whose commits are further apart are asked to commit instead.
INTERVAL_MS_MAX = 5_000


def share_of(seed: int, scenario: str, change: int) -> float:
    """From 0 up to 1, uniform over the seeds."""
    # A text as seed is hashed alike in every process and Python.
    return random.Random(f"{seed} {scenario} {change}").random()  # reproducible, not secret


def interval_ms(heartbeat_ms: int, commit_interval_ms: int = 0) -> int:
    """The longest of the intervals over which a phase is drawn."""
    return min(INTERVAL_MS_MAX, max(heartbeat_ms, commit_interval_ms))
