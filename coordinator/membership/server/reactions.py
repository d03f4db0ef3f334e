"""What an error code means to a member of the server design: one table, (api, error) -> event.

The errors are those of docs/server-protocol.md. Any other error is fatal (`Refused`) in AwaitCommand, and no event in
CommitOwned: the caller sees it in the result of the commit.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from coordinator.membership.events import UNANSWERED, CoordinatorLoading, CoordinatorMoved, GenerationOutdated, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.membership.events import Refusal

AWAIT, COMMIT = "AwaitCommand", "CommitOwned"

REACTIONS: Mapping[tuple[str, str], type[Refusal]] = MappingProxyType(
    {
        (AWAIT, "ILLEGAL_GENERATION"): GenerationOutdated,
        (AWAIT, "NOT_COORDINATOR"): CoordinatorMoved,
        (AWAIT, "COORDINATOR_NOT_AVAILABLE"): CoordinatorMoved,
        (AWAIT, UNANSWERED): CoordinatorMoved,
        (AWAIT, "COORDINATOR_LOAD_IN_PROGRESS"): CoordinatorLoading,
        (AWAIT, "UNKNOWN_SERVER_ERROR"): CoordinatorLoading,
        (COMMIT, "ILLEGAL_GENERATION"): GenerationOutdated,
        (COMMIT, "UNKNOWN_CONSUMER"): GenerationOutdated,
        (COMMIT, "NOT_COORDINATOR"): CoordinatorMoved,
        (COMMIT, "COORDINATOR_NOT_AVAILABLE"): CoordinatorMoved,
        (COMMIT, UNANSWERED): CoordinatorMoved,
    }
)


def reaction(api: str, error: str, *, stamp: int, sent_ns: int) -> Refusal | None:
    """Return the event for an error in the response to `api`; None when it concerns only the caller."""
    event = REACTIONS.get((api, error), Refused if api == AWAIT else None)
    return None if event is None else event(stamp=stamp, api=api, error=error, sent_ns=sent_ns)
