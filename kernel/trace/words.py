"""The words of fields that have only a few: a line with any other word is unusable (`kernel.trace.check`).

Whatever reads a trace may rely on them. Words that a user, a broker or ZooKeeper chooses are no such field: faults and
changes, which scenarios of one's own may add, names, errors, and reasons.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.trace.events import PHASES, Implementation, Role

if TYPE_CHECKING:
    from collections.abc import Mapping


class TimeSource(StrEnum):
    """By which clock a process ran: its machine's monotonic one, or that of a simulated world."""

    MONOTONIC = "monotonic"
    SIMULATED = "simulated"


#: The states of groups in all designs that have a coordinator.
_GROUP_STATES = (
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "Dead",
)

#: By kind and field.
WORDS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("run_ended", "outcome"): ("complete", "interrupted", "failed"),
        ("stage_entered", "stage"): ("warm", "steady", "fault", "heal", "drain", "final", "stop"),
        ("process_ended", "how"): ("leave", "kill", "stop", "itself"),
        ("phase_entered", "phase"): PHASES,
        ("attempt_ended", "outcome"): ("ok", "conflict", "unavailable", "error", "superseded"),
        ("rebalance_ended", "outcome"): ("ok", "failed", "superseded", "conflict", "error"),
        ("position_reset", "reset"): ("earliest", "latest", "smallest", "largest"),
        ("commit_answered", "outcome"): ("accepted", "refused", "dropped", "unknown"),
        ("commit_answered", "store"): ("kafka", "zookeeper"),
        ("session_changed", "state"): ("connected", "suspended", "lost", "closed"),
        ("zk_op", "op"): ("create", "delete", "exists", "getData", "getChildren", "setData", "sync", "multi"),
        ("zk_notified", "event"): ("created", "deleted", "changed", "children", "none"),
        ("group_changed", "state"): _GROUP_STATES,
        ("bystander_op", "op"): ("getData", "setData"),
    }
)
#: The same of the header.
HEADER_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"role": tuple(Role), "implementation": tuple(Implementation), "clock": tuple(TimeSource)}
)
