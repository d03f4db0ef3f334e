"""Effects that members of every design ask for: imperatives, performed in the given order.

What only one protocol has is in `classic.effects` and `server.effects`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition


class Identity(NamedTuple):
    """What every request carries, and what the coordinator fences by."""

    member_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class Effect:
    """Root of all effects."""


@dataclass(frozen=True, slots=True)
class FindCoordinator(Effect):
    """Ask any broker, connect to the one it names, and report CoordinatorFound or CoordinatorUnknown."""


@dataclass(frozen=True, slots=True)
class AbandonCoordinator(Effect):
    """Close the connection, without waiting for outstanding responses."""


@dataclass(frozen=True, slots=True)
class CommitPositions(Effect):
    """Auto-commit everything delivered so far, under the current identity; if `wait`, before the next effect."""

    stamp: int
    identity: Identity
    wait: bool


@dataclass(frozen=True, slots=True)
class Revoke(Effect):
    """Stop delivery of these, notify the listener, and report Stopped.

    With nothing to revoke, the listener is not notified; Stopped then follows the effects before it.
    """

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lose(Effect):
    """Stop delivery of these at once, and notify the listener as soon as no other callback runs."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Fail(Effect):
    """Raise in the application's next call: `api` failed with `error`, which is fatal."""

    api: str
    error: str


@dataclass(frozen=True, slots=True)
class Emit(Effect):
    """Emit one trace event now; the member's runner adds the stream."""

    kind: str
    member_id: str
    cause: str
    fields: Mapping[str, object]
