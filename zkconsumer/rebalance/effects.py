"""What happens to a rebalance (events) and what it wants done (effects): frozen values, nothing else.

ZooKeeper is spoken to in `Request`s, grouped into an `Ask`: so a conversation, a count of operations and a
model of ZooKeeper can all be made from the effects of `machine.py` without a server. Effects are performed
in the order given. One step's effects are one batch; when it is done, exactly one event answers it:

- `Answered`, when the batch ended with an `Ask`,
- `OffsetsFetched`, when it ended with `ReadStoredOffsets`,
- `Performed`, when it ended with anything else,
- `StepFailed`, when one of them failed; what followed it in the batch was not performed.

Effects that leave the machine idle or closed, and those of events that meet a batch under way, only tell
(`INSTANT`); nothing answers them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from kernel.values import NO_OFFSET, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping


class Operation(StrEnum):
    """ZooKeeper's own names of the requests."""

    EXISTS = "exists"
    GET_DATA = "getData"
    GET_CHILDREN = "getChildren"
    CREATE = "create"
    DELETE = "delete"
    SET_DATA = "setData"
    SYNC = "sync"


class Refusal(StrEnum):
    """Refusals that a step has an answer to; every other failure ends the attempt."""

    NO_NODE = "NoNode"
    NODE_EXISTS = "NodeExists"
    BAD_VERSION = "BadVersion"
    OTHER_SESSION = "SessionExpired"  #: it was for one session, which is over


@dataclass(frozen=True, slots=True)
class Request:
    """One ZooKeeper request. Whether it leaves a watch is decided by who listens to the path (`watching/watcher.py`).

    `data` is for creates, which are ephemeral unless they are `persistent`, and for setData; a create whose parent
    is missing creates the parents. `version` is for deletes, -1 deletes whatever is there. With a `session` it is
    done in that session or refused, and not repeated into a later one.
    """

    operation: Operation
    path: str
    data: bytes = b""
    persistent: bool = False
    version: int = -1
    session: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request brought: data, names of children, nothing, or a refusal.

    `version` is the data's; `owner` the session that an ephemeral node belongs to, 0 for a persistent one; `session`
    the one in which it was asked.
    """

    data: bytes = b""
    children: tuple[str, ...] = ()
    refusal: Refusal | None = None
    version: int = 0
    owner: int = 0
    session: int = 0

    @property
    def ours(self) -> bool:
        """Whether the node that was read lives as long as our own session."""
        return self.refusal is None and self.owner != 0 and self.owner == self.session


@dataclass(frozen=True, slots=True)
class Claim:
    """One of our partitions: the thread it is for, and the committed offset it starts from.

    `session` is the one that the owner node belongs to, `epoch` the version of the partition's epoch node after we
    bumped it (only with `fence_epochs`): what commits can be fenced by.
    """

    topic: str
    partition: int
    thread: str
    offset: int = NO_OFFSET
    session: int = 0
    epoch: int | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


# -- events ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RebalanceDemanded:
    """A rebalance is to run for its own sake, at the start or in a new session; `ticket` gets the outcome."""

    trigger: str
    ticket: int
    cause: str = ""


@dataclass(frozen=True, slots=True)
class ChangeNotified:
    """A watch fired and was re-armed: sets the merged trigger flag."""

    trigger: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class SessionRenewed:
    """The old session has expired and a new one stands: what was owned in the old one is not ours to release."""


@dataclass(frozen=True, slots=True)
class CloseDemanded:
    """Shut down, after whatever rebalance runs now."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers of an `Ask`, in its order."""

    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class OffsetsFetched:
    """What Kafka keeps for the partitions asked for; one without a committed offset may be missing."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Performed:
    """The batch is done."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """Something in the batch failed in a way that no step has an answer to."""

    error: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """No server is reached: the session may be over without anybody here knowing."""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A server is reached again, in the same session."""


@dataclass(frozen=True, slots=True)
class Reminded:
    """The time of a `Remind` is over."""

    token: int


#: What ends a batch.
Outcome = Answered | OffsetsFetched | Performed | StepFailed

Event = (
    Outcome
    | RebalanceDemanded
    | ChangeNotified
    | SessionRenewed
    | CloseDemanded
    | Disconnected
    | Reconnected
    | Reminded
)


# -- effects ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Send these requests, in this order, all before the first answer; `step` is R1..R12, or `look` between them."""

    step: str
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class ReadStoredOffsets:
    """R8 with offsets.storage=kafka: ask the broker that keeps the group's offsets, until it answers or we close."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class WatchBrokers:
    """R3a: from now on listen to the children of /brokers/ids."""


@dataclass(frozen=True, slots=True)
class StopFetchers:
    """End the leader finder, then all fetchers."""


@dataclass(frozen=True, slots=True)
class ClearStreams:
    """Empty the queues of these topics' streams (None: of all), and forget the current chunk of every stream."""

    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Write what was consumed since the last commit."""


@dataclass(frozen=True, slots=True)
class ForgetOwned:
    """The registry loses these partitions, without a word to ZooKeeper (None: all of them)."""

    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AdoptClaims:
    """The registry is this from now on."""

    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class StartFetchers:
    """Start a leader finder with everything in the registry."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """Stop fetching and empty all streams now, whatever else is being done (fix.stop.on.disconnect)."""


@dataclass(frozen=True, slots=True)
class ResumeFetchers:
    """Start a leader finder with everything in the registry, each partition from what was handed out last."""


@dataclass(frozen=True, slots=True)
class TellRevoked:
    """Call the application's listener for one stream."""

    stream: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class TellAssigned:
    """Call the application's listener for one stream."""

    stream: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class BackOff:
    """Wait this long; nothing shortens it."""

    ms: int


@dataclass(frozen=True, slots=True)
class Remind:
    """Tell `Reminded(token)` when this time is over; nothing waits for it."""

    ms: int
    token: int


@dataclass(frozen=True, slots=True)
class Report:
    """A demanded rebalance has ended: `error` is None or why it failed."""

    ticket: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Warn:
    """Something for the log that reaches nobody else."""

    message: str


@dataclass(frozen=True, slots=True)
class Emit:
    """A trace event of this member."""

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)
    stream: int | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class StopAutoCommit:
    """End the commit timer."""


@dataclass(frozen=True, slots=True)
class EndStreams:
    """Put the shutdown marker into each queue."""


@dataclass(frozen=True, slots=True)
class CloseSession:
    """End the ZooKeeper session: one transaction removes the id node and all owner nodes."""


Effect = (
    Ask
    | ReadStoredOffsets
    | WatchBrokers
    | StopFetchers
    | ClearStreams
    | CommitOffsets
    | ForgetOwned
    | AdoptClaims
    | StartFetchers
    | Freeze
    | ResumeFetchers
    | TellRevoked
    | TellAssigned
    | BackOff
    | Remind
    | Report
    | Warn
    | Emit
    | StopAutoCommit
    | EndStreams
    | CloseSession
)

#: Performed without waiting for anything.
INSTANT = (Emit, ForgetOwned, Freeze, Remind, Report, Warn)
