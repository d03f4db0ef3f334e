"""What members and coordinator of the `server` design tell each other, as values (docs/server-protocol.md).

The bytes are `coordinator.protocol.server_messages`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from coordinator.protocol.server_errors import ServerError
from kernel.values import NO_OFFSET

#: Where a generation is asked for and there is none: nothing was started yet, or nothing stopped.
NO_GENERATION = -1
#: `strategy` of a member that takes whatever the coordinator assigns by.
ANY_STRATEGY = ""


class Command(IntEnum):
    """What a member is told to do."""

    NOTHING = 0  #: ask again
    STOP = 1  #: give up what generation `generation` gave, commit, and ask again with `stopped` = that generation
    START = 2  #: fetch these partitions from these offsets, in generation `generation`


class StartedPartition(NamedTuple):
    """A partition to start; `offset` is the group's committed one, NO_OFFSET (-1) where there is none."""

    topic: str
    partition: int
    offset: int = NO_OFFSET


class OwnedOffset(NamedTuple):
    """The next offset to consume of a partition that the sender owns."""

    topic: str
    partition: int
    offset: int
    metadata: str = ""


class CommittedPartition(NamedTuple):
    """What became of one offset of a commit."""

    topic: str
    partition: int
    error: ServerError


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitCommand:
    """A member reports what it runs and waits for what to do next.

    `generation` is the one it started last, `stopped` the one whose stop it acknowledges: it runs something unless
    they are equal. `topics` are those of its registration: the coordinator reads that again when they differ.
    """

    group_id: str
    member_id: str
    generation: int = NO_GENERATION
    stopped: int = NO_GENERATION
    strategy: str = ANY_STRATEGY
    topics: tuple[str, ...] = ()
    wait_ms: int = 0

    @property
    def runs(self) -> int:
        """The generation whose partitions the member fetches now; NO_GENERATION when it fetches none."""
        return NO_GENERATION if self.generation == self.stopped else self.generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Commanded:
    """The answer to AwaitCommand. `generation` is that of the command; with NOTHING, or an error, it is -1."""

    error: ServerError = ServerError.NONE
    command: Command = Command.NOTHING
    generation: int = NO_GENERATION
    partitions: tuple[StartedPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOwned:
    """A member commits, in the generation in which it owns the partitions."""

    group_id: str
    member_id: str
    generation: int
    offsets: tuple[OwnedOffset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The answer to CommitOwned: every offset in the order of the request, each with a result of its own."""

    partitions: tuple[CommittedPartition, ...]
