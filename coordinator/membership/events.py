"""What can happen to a member. Events are past participles; those with a `stamp` answer one of its requests.

A stamp names the life of an identity: it changes with every JoinGroup that is sent and whenever the member id or
the generation is given up. An answer to a request of an earlier life is ignored (KAFKA-9823: an
UNKNOWN_MEMBER_ID for the old generation must not reset the new one).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One entry of the list that only the leader's JoinGroup answer has; `metadata` is its subscription's bytes."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """Root of all events."""


@dataclass(frozen=True, slots=True)
class Polled(Event):
    """The application polls: only here callbacks come, positions are committed and a rebalance begins."""


@dataclass(frozen=True, slots=True)
class Ticked(Event):
    """A deadline (see `member.deadline`) may have passed."""


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """The application is done with the group."""


@dataclass(frozen=True, slots=True)
class SubscriptionChanged(Event):
    """The application wants other topics: the next poll rejoins with them."""

    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class Unsubscribed(Event):
    """The application wants no topics any more: give everything up, leave, and stay out until it wants some."""


@dataclass(frozen=True, slots=True)
class RejoinWanted(Event):
    """Something that the assignment rests on has changed; `trigger` says what: "metadata-changed", "scheduled"."""

    trigger: str


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """What `Revoke` asked for is done: positions committed, callbacks returned."""


@dataclass(frozen=True, slots=True)
class CoordinatorFound(Event):
    """FindCoordinator named a broker, and a connection to it is open."""

    node_id: int


@dataclass(frozen=True, slots=True)
class CoordinatorUnknown(Event):
    """FindCoordinator gave no coordinator, or it cannot be reached; `error` is Kafka's name or what went wrong."""

    error: str


@dataclass(frozen=True, slots=True)
class Answer(Event):
    """Root of everything that answers a request or an effect of one identity's life."""

    stamp: int


@dataclass(frozen=True, slots=True)
class Joined(Answer):
    """JoinGroup was answered: a new generation, or for who came back to a stable group the one that there is.

    `members` is filled for the leader only; `skip_assignment` tells it that the assignment stands (KIP-814).
    """

    member_id: str
    generation: int
    protocol: str
    leader: str
    members: tuple[GroupMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class Decided(Answer):
    """The assignor has run: assignment bytes for every member."""

    assignments: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Synced(Answer):
    """SyncGroup was answered: all that is ours in this generation; 0 < `delay_ms`: rejoin after so long."""

    partitions: frozenset[TopicPartition]
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Resumed(Answer):
    """What `Assign` asked for is done: callbacks returned, positions looked up."""


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered(Answer):
    """The coordinator knows us, in this generation, as of when the request was sent."""

    sent_ns: int


@dataclass(frozen=True, slots=True)
class Refusal(Answer):
    """Root of the answers that carry an error: `api` and `error` by Kafka's names, see `reactions`."""

    api: str
    error: str
    sent_ns: int


@dataclass(frozen=True, slots=True)
class RejoinRequested(Refusal):
    """REBALANCE_IN_PROGRESS: the group is preparing a new generation; ours still stands."""


@dataclass(frozen=True, slots=True)
class GenerationOutdated(Refusal):
    """ILLEGAL_GENERATION: the group went on without us; our member id is still good (KAFKA-13419)."""


@dataclass(frozen=True, slots=True)
class MemberForgotten(Refusal):
    """UNKNOWN_MEMBER_ID: the group does not know us any more."""


@dataclass(frozen=True, slots=True)
class MemberIdGiven(Answer):
    """MEMBER_ID_REQUIRED: join again under this id (KIP-394)."""

    member_id: str


@dataclass(frozen=True, slots=True)
class CoordinatorMoved(Refusal):
    """NOT_COORDINATOR or COORDINATOR_NOT_AVAILABLE: look it up again."""


@dataclass(frozen=True, slots=True)
class CoordinatorLoading(Refusal):
    """COORDINATOR_LOAD_IN_PROGRESS and other errors that pass: the same again after the backoff."""


@dataclass(frozen=True, slots=True)
class Refused(Refusal):
    """An error that does not pass: the application has to know."""
