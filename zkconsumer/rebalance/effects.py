"""Events that reach a rebalance and effects that it wants performed: frozen values, nothing else.

ZooKeeper requests are `Request`s, grouped into an `Ask`: conversations, counts of operations and a model of ZooKeeper
can all be made from the effects of `machine.py` without a server. Effects are performed in the order given. The effects
of one step are one batch; when it is done, exactly one event reports its result:

- `Answered`, when the batch ended with an `Ask`,
- `OffsetsFetched`, when it ended with `ReadStoredOffsets`,
- `Performed`, when it ended with anything else,
- `StepFailed`, when one of the effects failed; those after it were not performed.

Effects that leave the machine idle or closed, and effects of an event that arrives while a batch is running, are all
`INSTANT`; no event reports their result.
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
    """Refusals that a step can handle; every other failure ends the attempt."""

    NO_NODE = "NoNode"
    NODE_EXISTS = "NodeExists"
    BAD_VERSION = "BadVersion"
    OTHER_SESSION = "SessionExpired"  #: the request was for one session, which is over


@dataclass(frozen=True, slots=True)
class Request:
    """One ZooKeeper request. A read leaves a watch if its path has a listener (`watching/watcher.py`).

    `data` is for creates and for setData. Creates are ephemeral unless `persistent`, and create missing parents.
    `version` is for deletes; -1 deletes any version. With a `session`, the request is performed in that session or
    refused, and never retried in a later one.
    """

    operation: Operation
    path: str
    data: bytes = b""
    persistent: bool = False
    version: int = -1
    session: int = 0


@dataclass(frozen=True, slots=True)
class Response:
    """The response to one request: data, names of children, nothing, or a refusal.

    `version` is the version of the data; `owner` is the session that an ephemeral node belongs to, 0 for a persistent
    one; `session` is the session in which the request was sent.
    """

    data: bytes = b""
    children: tuple[str, ...] = ()
    refusal: Refusal | None = None
    version: int = 0
    owner: int = 0
    session: int = 0

    @property
    def ours(self) -> bool:
        """Whether the node belongs to our own session."""
        return self.refusal is None and self.owner != 0 and self.owner == self.session


@dataclass(frozen=True, slots=True)
class Claim:
    """One of our partitions: the thread it is for, and the committed offset it starts from.

    Commits can be fenced by `session`, which the owner node belongs to, and by `epoch`, the version of the partition's
    epoch node after we bumped it (only with `fence_epochs`).
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
    """Run a rebalance, at the start or in a new session; the outcome is reported for `ticket`."""

    trigger: str
    ticket: int
    cause: str = ""


@dataclass(frozen=True, slots=True)
class ChangeNotified:
    """A watch fired and was registered again: sets the merged trigger flag."""

    trigger: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class SessionRenewed:
    """A new session replaces the expired one: what we owned in the old one is no longer ours to release."""


@dataclass(frozen=True, slots=True)
class CloseDemanded:
    """Shut down, once the running rebalance has ended."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The responses to an `Ask`, in the order of its requests."""

    responses: tuple[Response, ...]


@dataclass(frozen=True, slots=True)
class OffsetsFetched:
    """The committed offsets that Kafka keeps; partitions without one may be missing."""

    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Performed:
    """All effects of the batch were performed."""


@dataclass(frozen=True, slots=True)
class StepFailed:
    """An effect of the batch failed in a way that no step can handle."""

    error: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection to ZooKeeper is lost; the session may expire without our noticing."""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """Connected again, in the same session."""


@dataclass(frozen=True, slots=True)
class Reminded:
    """The time of a `Remind` has passed."""

    token: int


#: The result of a batch.
BatchResult = Answered | OffsetsFetched | Performed | StepFailed

Event = (
    BatchResult
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
    """Send these requests, in this order, without waiting for responses; `step` is R1 to R12, or `look` when idle."""

    step: str
    requests: tuple[Request, ...]


@dataclass(frozen=True, slots=True)
class ReadStoredOffsets:
    """R8 with offsets.storage=kafka: fetch offsets from the group's coordinator; retry until it answers or we close."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class WatchBrokers:
    """R3a: listen to the children of /brokers/ids from now on."""


@dataclass(frozen=True, slots=True)
class StopFetchers:
    """Stop the leader finder, then all fetchers."""


@dataclass(frozen=True, slots=True)
class ClearStreams:
    """Empty the queues of these topics' streams (None: all topics), and drop the current chunk of every stream."""

    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CommitOffsets:
    """Commit what was consumed since the last commit."""


@dataclass(frozen=True, slots=True)
class ForgetOwned:
    """Remove these topics' partitions from the registry (None: all of them). ZooKeeper is not touched."""

    topics: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AdoptClaims:
    """Replace the registry with these claims."""

    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class StartFetchers:
    """Start a leader finder for everything in the registry."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """Stop fetching and empty all streams at once, even during a batch (fix.stop.on.disconnect)."""


@dataclass(frozen=True, slots=True)
class ResumeFetchers:
    """Start a leader finder for everything in the registry, each partition after its last delivered record."""


@dataclass(frozen=True, slots=True)
class NotifyRevoked:
    """Call the application's listener: one stream lost these partitions."""

    stream: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class NotifyAssigned:
    """Call the application's listener: one stream got these partitions."""

    stream: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class BackOff:
    """Wait this long; nothing cuts the wait short."""

    ms: int


@dataclass(frozen=True, slots=True)
class Remind:
    """Post `Reminded(token)` after this time; the batch does not wait for it."""

    ms: int
    token: int


@dataclass(frozen=True, slots=True)
class Report:
    """Report the end of a demanded rebalance to its caller: `error` is None, or why it failed."""

    ticket: int
    error: str | None


@dataclass(frozen=True, slots=True)
class Warn:
    """Log a warning."""

    message: str


@dataclass(frozen=True, slots=True)
class Emit:
    """Emit a trace event of this member."""

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)
    stream: int | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True)
class StopAutoCommit:
    """Stop the commit timer."""


@dataclass(frozen=True, slots=True)
class EndStreams:
    """Put the shutdown marker into each stream's queue."""


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close the ZooKeeper session, which removes the id node and all owner nodes in one transaction."""


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
    | NotifyRevoked
    | NotifyAssigned
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
