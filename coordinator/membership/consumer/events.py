"""Events that only members of KIP-848 groups receive; the others are in `coordinator.membership.events`.

The stamp changes whenever an epoch is given up: when the group refuses it and when the member leaves. The answer to an
older heartbeat then means nothing. Callbacks of the listener have numbers instead, since one may return late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.events import Event, Refusal, Response

if TYPE_CHECKING:
    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class Subscribed(Event):
    """The application subscribed; the next poll joins, or the next heartbeat says what has changed.

    With a regular expression there are no topics: the coordinator finds those that match.
    """

    topics: frozenset[str]
    regex: str | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribed(Event):
    """The application unsubscribed."""


@dataclass(frozen=True, slots=True)
class HeartbeatAnswered(Response):
    """The answer: an assignment is the whole target, None an unchanged one; empty is to own nothing."""

    epoch: int
    interval_ms: int
    assignment: frozenset[TopicPartition] | None = None


@dataclass(frozen=True, slots=True)
class TargetResolved(Response):
    """Metadata has names for topic ids that the last assignment named; the whole target as known now."""

    assignment: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class CallbackReturned(Event):
    """The callback with this number has returned, and every earlier one; `failed`: the listener raised."""

    number: int
    failed: bool = False


@dataclass(frozen=True, slots=True)
class EpochFenced(Refusal):
    """FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID: the group has gone on without us."""


@dataclass(frozen=True, slots=True)
class ErrorReported(Refusal):
    """TOPIC_AUTHORIZATION_FAILED: the application has to know, and the member tries again."""
