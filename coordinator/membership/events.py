"""Events that members of every design can receive. Names are past participles.

What only one protocol has is in `classic.events` and `server.events`.

A stamp identifies one version of an identity: it changes with every join or registration, and whenever a member gives
up its id or generation. A response to a request with an older stamp is ignored (KAFKA-9823: an UNKNOWN_MEMBER_ID for
the old generation must not reset the new one).
"""

from __future__ import annotations

from dataclasses import dataclass

#: The error name for a request that got no response; not a Kafka error.
UNANSWERED = "UNANSWERED"


@dataclass(frozen=True, slots=True)
class Event:
    """Root of all events."""


@dataclass(frozen=True, slots=True)
class Polled(Event):
    """The application polled. Auto-commits happen only now; so do a classic member's callbacks and rebalances."""


@dataclass(frozen=True, slots=True)
class Ticked(Event):
    """A deadline (see `deadline` in `member`) may have passed."""


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """The application closed the consumer."""


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """`Revoke` is done: positions are committed and callbacks have returned."""


@dataclass(frozen=True, slots=True)
class CoordinatorFound(Event):
    """FindCoordinator named a broker, and a connection to it is open."""

    node_id: int


@dataclass(frozen=True, slots=True)
class CoordinatorUnknown(Event):
    """FindCoordinator named no coordinator, or it is unreachable; `error` is Kafka's name or what went wrong."""

    error: str


@dataclass(frozen=True, slots=True)
class Response(Event):
    """Root of the events that respond to a request or an effect of one identity."""

    stamp: int


@dataclass(frozen=True, slots=True)
class Resumed(Response):
    """The new assignment is in effect: callbacks have returned and delivery has begun."""


@dataclass(frozen=True, slots=True)
class Refusal(Response):
    """Root of the error responses: `api` and `error` by Kafka's names, see each protocol's `reactions`."""

    api: str
    error: str
    sent_ns: int


@dataclass(frozen=True, slots=True)
class GenerationOutdated(Refusal):
    """ILLEGAL_GENERATION: the group moved on without us; our member id is still valid (KAFKA-13419)."""


@dataclass(frozen=True, slots=True)
class CoordinatorMoved(Refusal):
    """NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or no response: look the coordinator up again."""


@dataclass(frozen=True, slots=True)
class CoordinatorLoading(Refusal):
    """COORDINATOR_LOAD_IN_PROGRESS and other transient errors: retry after the backoff."""


@dataclass(frozen=True, slots=True)
class Refused(Refusal):
    """A fatal error: the application has to know."""
