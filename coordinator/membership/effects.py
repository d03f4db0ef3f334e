"""What a member wants done. Effects are imperatives, performed in the order in which they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.membership.events import GroupMember
    from kernel.values import TopicPartition


class Identity(NamedTuple):
    """What a request is stamped with, and what the coordinator fences by."""

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
    """Close the connection; what was not answered on it is not waited for."""


@dataclass(frozen=True, slots=True)
class SendJoin(Effect):
    """JoinGroup under `member_id` ('' asks for one)."""

    stamp: int
    member_id: str


@dataclass(frozen=True, slots=True)
class RunAssignor(Effect):
    """We lead: decide who gets what by `protocol`, and report Decided.

    `skip_assignment`: the coordinator has kept the assignment of a static leader that was away. Nothing is decided
    and Decided is empty, but the leader has to know the group's topics, to watch them (KIP-814).
    """

    stamp: int
    protocol: str
    members: tuple[GroupMember, ...]
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SendSync(Effect):
    """SyncGroup; `assignments` is empty for a follower."""

    stamp: int
    identity: Identity
    protocol: str
    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class SendHeartbeat(Effect):
    """Heartbeat."""

    stamp: int
    identity: Identity


@dataclass(frozen=True, slots=True)
class SendLeave(Effect):
    """LeaveGroup; nobody waits for its answer but an orderly close."""

    member_id: str


@dataclass(frozen=True, slots=True)
class CommitPositions(Effect):
    """Auto-commit everything handed out until now, under the identity of now; `wait` for it before what follows."""

    stamp: int
    identity: Identity
    wait: bool


@dataclass(frozen=True, slots=True)
class Revoke(Effect):
    """Stop delivering these, tell the listener while a commit is still good, and report Stopped.

    Nothing to revoke is no news for the listener: Stopped then says that what was to be done before it is done.
    """

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Assign(Effect):
    """Tell the listener of what is new (also when nothing is), look up its positions, deliver, report Resumed."""

    stamp: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Lose(Effect):
    """Stop delivering at once; the listener hears of it at the next poll."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Fail(Effect):
    """The application's next call has to raise: `api` answered `error`, which does not pass."""

    api: str
    error: str


@dataclass(frozen=True, slots=True)
class Emit(Effect):
    """One event for the trace, as of now; who performs it adds member and stream."""

    kind: str
    member_id: str
    cause: str
    fields: Mapping[str, object]
