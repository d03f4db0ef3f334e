"""Effects that only members of the server design ask for; the others are in `coordinator.membership.effects`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class Register(Effect):
    """Register the id in ZooKeeper, in this session only, and report Registered."""

    stamp: int
    session: int


@dataclass(frozen=True, slots=True)
class Unregister(Effect):
    """Delete the id from ZooKeeper, so that the group stops waiting for this member."""


@dataclass(frozen=True, slots=True)
class SendAwaitCommand(Effect):
    """Ask for the next command, after the last `generation` started and the last one `stopped`; -1 for none."""

    stamp: int
    member_id: str
    generation: int
    stopped: int


@dataclass(frozen=True, slots=True)
class CancelAwait(Effect):
    """Abandon the outstanding AwaitCommand, so that the next one does not queue behind it."""


@dataclass(frozen=True, slots=True)
class StartDelivery(Effect):
    """Notify the listener, start delivery at these offsets, and report Resumed."""

    stamp: int
    offsets: Mapping[TopicPartition, int]
