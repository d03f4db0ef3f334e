"""Requests and responses of the `server` design, as values (docs/server-protocol.md).

`coordinator.protocol.server.messages` converts them to and from message bodies.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from coordinator.protocol.server.errors import ServerError
from kernel.values import NO_OFFSET

#: What DescribeGroups and ListGroups call the design.
SERVER_PROTOCOL_TYPE = "server"
#: The generation of a member that has started nothing, or stopped nothing.
NO_GENERATION = -1
#: The `strategy` of a member that accepts any.
ANY_STRATEGY = ""


class Command(IntEnum):
    """What the coordinator commands a member to do."""

    NOTHING = 0  #: ask again
    STOP = 1  #: commit and revoke what `generation` assigned, then ask again with `stopped` = that generation
    START = 2  #: fetch these partitions from these offsets, in generation `generation`


class StartedPartition(NamedTuple):
    """A partition to start at `offset`, the group's committed one; NO_OFFSET (-1) if there is none."""

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
    """The result of committing one offset."""

    topic: str
    partition: int
    error: ServerError


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitCommand:
    """A member's long poll: it reports what it runs and awaits the next command.

    `generation` is the last one it started, `stopped` the one whose stop it acknowledges: it is running unless they
    are equal. `topics` are those of its registration, which the coordinator reads again when they differ.
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
class CommandAnswer:
    """The response to AwaitCommand. `generation` is that of the command; -1 with NOTHING or an error."""

    error: ServerError = ServerError.NONE
    command: Command = Command.NOTHING
    generation: int = NO_GENERATION
    partitions: tuple[StartedPartition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOwned:
    """A member's commit, in the generation in which it owns the partitions."""

    group_id: str
    member_id: str
    generation: int
    offsets: tuple[OwnedOffset, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedCommitAnswer:
    """The response to CommitOwned: one result for each offset, in the order of the request."""

    partitions: tuple[CommittedPartition, ...]
