"""Events that only members of the server design receive; the others are in `coordinator.membership.events`.

The stamp changes with every registration, with every generation that is started, and whenever an id or a generation
is given up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.events import Event, Response

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class SessionBegun(Event):
    """A new ZooKeeper session began; nothing of an earlier one is left."""

    session: int
    timeout_ms: int  #: as negotiated with ZooKeeper


@dataclass(frozen=True, slots=True)
class SessionInterrupted(Event):
    """The connection to ZooKeeper is lost: the session may or may not expire."""


@dataclass(frozen=True, slots=True)
class SessionRestored(Event):
    """The client reconnected in time: the session and its znodes are intact."""


@dataclass(frozen=True, slots=True)
class SessionEnded(Event):
    """ZooKeeper reported that the session expired, and with it the member's id: the group considers it dead."""


@dataclass(frozen=True, slots=True)
class Registered(Response):
    """The id is registered in ZooKeeper."""

    member_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionAnnounced(Event):
    """The registration has other topics now; the coordinator reads it again when a request names them."""


@dataclass(frozen=True, slots=True)
class NoCommand(Response):
    """AwaitCommand timed out: the coordinator had no command."""


@dataclass(frozen=True, slots=True)
class StopCommanded(Response):
    """Stop what was started in `generation`, commit, and acknowledge."""

    generation: int


@dataclass(frozen=True, slots=True)
class StartCommanded(Response):
    """Own these partitions in `generation`; each starts at its offset, or has NO_OFFSET."""

    generation: int
    offsets: Mapping[TopicPartition, int]
