"""What a member of the server design wants done, in the order in which it is given.

FindCoordinator, AbandonCoordinator, CommitPositions, Lose, Fail and Emit are those of `coordinator.membership.effects`.
Here the listener hears of a loss as soon as it is free, whether the application polls or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.membership.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition


@dataclass(frozen=True, slots=True)
class Register(Effect):
    """Have the id stand in ZooKeeper, in this session and no other, and report Registered."""

    stamp: int
    session: int


@dataclass(frozen=True, slots=True)
class Unregister(Effect):
    """Take the id out of ZooKeeper: the group has nothing to wait for any more."""


@dataclass(frozen=True, slots=True)
class AwaitCommand(Effect):
    """Ask for the next command. `generation` is what was started last, `stopped` what was stopped last; -1: none."""

    stamp: int
    member_id: str
    generation: int
    stopped: int


@dataclass(frozen=True, slots=True)
class CallOff(Effect):
    """The command that is being awaited is not wanted any more: what asks next must not queue behind it."""


@dataclass(frozen=True, slots=True)
class Revoke(Effect):
    """Deliver nothing more, tell the listener, and report Stopped."""

    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Assign(Effect):
    """Tell the listener, deliver from these offsets on, and report Resumed."""

    stamp: int
    offsets: Mapping[TopicPartition, int]
