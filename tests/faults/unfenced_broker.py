"""A broker whose coordinator has a bug: it accepts commits of old generations and of members that it has removed.

A test names this module as that of a run's brokers. No setting leads to it.
"""

from __future__ import annotations

from comparison.scenarios.processes import broker_process
from coordinator.groups.offsets import offsets
from tests.support.planted.bugs import unfenced


def main() -> None:
    offsets.commit_refusal = unfenced
    broker_process.main()
