"""What can happen to a member of the server design. Events are past participles.

What both coordinators' members have in common (polls, ticks, the coordinator's place, refusals) is in
`coordinator.membership.events`. A `stamp` names the life of an identity: it changes with every registration, with
every generation that is started, and whenever one is given up; an answer of an earlier life is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.events import Answer, Event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class SessionBegun(Event):
    """A ZooKeeper session stands that did not before; nothing of an earlier one is left."""

    session: int
    timeout_ms: int  #: as ZooKeeper granted it


@dataclass(frozen=True, slots=True)
class SessionInterrupted(Event):
    """No ZooKeeper server is reached: the session may live or be over."""


@dataclass(frozen=True, slots=True)
class SessionRestored(Event):
    """A server is reached again, in time: the session and its znodes have lived on."""


@dataclass(frozen=True, slots=True)
class SessionEnded(Event):
    """A server has said that the session is over, and with it the member's id: to the group it is dead."""


@dataclass(frozen=True, slots=True)
class Registered(Answer):
    """The id stands in ZooKeeper."""

    member_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionAnnounced(Event):
    """The registration names other topics now; the coordinator reads it when it is asked with them."""


@dataclass(frozen=True, slots=True)
class NothingTold(Answer):
    """AwaitCommand's time is over, and the coordinator wants nothing."""


@dataclass(frozen=True, slots=True)
class StopTold(Answer):
    """Stop what was started as `generation`, commit, and say so."""

    generation: int


@dataclass(frozen=True, slots=True)
class StartTold(Answer):
    """These partitions are this member's in `generation`; each offset is where to begin, NO_OFFSET where none is."""

    generation: int
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """What `Revoke` asked for is done: positions committed, callbacks returned."""


@dataclass(frozen=True, slots=True)
class Resumed(Answer):
    """What `Assign` asked for is done: callbacks returned, delivery begun."""
