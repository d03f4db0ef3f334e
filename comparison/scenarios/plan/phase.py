"""Draws the phase of each change: when it comes between two heartbeats, or two automatic commits, of the members.

After a rebalance the timers of all members are in step. If a change always came when the group had just settled, it
would always meet them at the same phase, and how soon it is noticed, or how much was delivered but not committed,
would be an artefact. So before each change the runner waits for a share of the timers' interval. The share depends on
the seed, the scenario and the number of the change but not on the design: all designs of a comparison get the same
one, and another seed, as in another repeat, gets another.
"""

from __future__ import annotations

import random

#: The runner waits for no longer interval: it asks members with longer commit intervals to commit.
INTERVAL_MS_MAX = 5_000


def share_of(seed: int, scenario: str, change: int) -> float:
    """A share in [0, 1), uniform over the seeds."""
    # A text seed is hashed the same in every process and Python version.
    return random.Random(f"{seed} {scenario} {change}").random()  # reproducible, not secret


def interval_ms(heartbeat_ms: int, commit_interval_ms: int = 0) -> int:
    """The longest interval of which a phase is drawn."""
    return min(INTERVAL_MS_MAX, max(heartbeat_ms, commit_interval_ms))
