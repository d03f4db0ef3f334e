"""What happens to a rebalance (events) and what it wants done (effects): frozen values, nothing else.

ZooKeeper is spoken to in `Request`s, grouped into an `Ask`: so a conversation, a count of operations and a
model of ZooKeeper can all be made from the effects of `rebalance.py` without a server. Effects are performed
in the order given. One step's effects are one batch; when it is done, exactly one event answers it:

- `Answered`, when the batch ended with an `Ask`,
- `Performed`, when it ended with anything else,
- `StepFailed`, when one of them failed; what followed it in the batch was not performed.

Effects that leave the machine idle or closed only tell (`INSTANT`); nothing answers them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from kernel.values import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping


class Operation(StrEnum):
    """ZooKeeper's own names of the requests."""

    EXISTS = "exists"
    GET_DATA = "getData"
    GET_CHILDREN = "getChildren"
    CREATE = "create"
    DELETE = "delete"


class Refusal(StrEnum):
    """Refusals that a step has an answer to; every other failure ends the attempt."""

    NO_NODE = "NoNode"
    NODE_EXISTS = "NodeExists"


@dataclass(frozen=True, slots=True)
class Request:
    """One ZooKeeper request. Whether it leaves a watch is decided by who listens to the path (`watching.py`).

    `data` is for creates, which are ephemeral here; a create whose parent is missing creates the parents.
    """

    operation: Operation
    path: str
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request brought: data, names of children, nothing, or a refusal."""

    data: bytes = b""
    children: tuple[str, ...] = ()
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """One of our partitions: the thread it is for, and the committed offset it starts from."""

    topic: str
    partition: int
    thread: str
    offset: int

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
class Performed:
    """The batch is done."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """Something in the batch failed in a way that no step has an answer to."""

    error: str


Event = RebalanceDemanded | ChangeNotified | SessionRenewed | CloseDemanded | Answered | Performed | StepFailed


# -- effects ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """Send these requests, in this order, all before the first answer; `step` is R1..R12."""

    step: str
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class WatchBrokers:
    """R3a: from now on listen to the children of /brokers/ids."""


@dataclass(frozen=True, slots=True)
class StopFetchers:
    """End the leader finder, then all fetchers."""


@dataclass(frozen=True, slots=True)
class ClearStreams:
    """Empty the queues and the current chunk of the streams of these topics (None: of all)."""

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
    | WatchBrokers
    | StopFetchers
    | ClearStreams
    | CommitOffsets
    | ForgetOwned
    | AdoptClaims
    | StartFetchers
    | TellRevoked
    | TellAssigned
    | BackOff
    | Report
    | Warn
    | Emit
    | StopAutoCommit
    | EndStreams
    | CloseSession
)

#: Performed without waiting for anything.
INSTANT = (Emit, ForgetOwned, Report, Warn)
