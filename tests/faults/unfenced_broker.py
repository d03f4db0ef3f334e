"""A broker whose coordinator has a bug: it accepts commits of old generations and of members that it has removed.

A test names this module as that of a run's brokers. No setting leads to it.
"""

from __future__ import annotations

from comparison.scenarios.processes import broker_process
from coordinator.groups.classic.group import Group
from coordinator.groups.errors import Error
from coordinator.groups.offsets import offsets
from coordinator.groups.requests import Commit

_FENCES = frozenset({Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
_fenced = offsets.commit_refusal


def _unfenced(group: Group | None, request: Commit) -> Error | None:
    refusal = _fenced(group, request)
    return None if group is not None and refusal in _FENCES else refusal


def main() -> None:
    offsets.commit_refusal = _unfenced
    broker_process.main()
