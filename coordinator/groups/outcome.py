"""What a handler hands out: effects as values, and the `Turn` in which they are gathered.

The order in which a caller performs an outcome's parts is given in the package's docstring.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeGuard, cast

from coordinator.groups.records import OffsetKey, OffsetRecord, PendingKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from coordinator.groups.answers import Answer, CommitAnswer, DeleteOffsetsAnswer, TransactionAnswer
    from coordinator.groups.classic.member import Member
    from coordinator.groups.records import Change, GroupRecord, ServerRecord, StoredChange, TransactionRecord
    from coordinator.groups.requests import Commit, Join, Mark, Producer
    from coordinator.groups.server.requests import Decide, Look
    from kernel.values import TopicPartition


class Moment(NamedTuple):
    """Now: monotonic milliseconds for timers, epoch milliseconds for what is stored."""

    ms: int
    wall_ms: int


class TimerKind(Enum):
    """What a timer stands for; a group has at most one JOIN and one SYNC, a member one SESSION."""

    JOIN = "join"  #: the initial delay, or the rebalance timeout
    SYNC = "sync"  #: the members of a generation must have synced
    SESSION = "session"  #: session timeout, new member's join timeout, or a pending id's
    RETENTION = "retention"  #: old offsets are looked for; one for all groups, with an empty name
    TRANSACTION = "transaction"  #: a transactional id's (`group_id` then)
    ROUND = "round"  #: server design: its members must have stopped, or started
    AWAIT = "await"  #: server design: a member's question has waited for long enough


class TimerKey(NamedTuple):
    """Setting a timer whose key is set already moves it."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class SetTimer(NamedTuple):
    """Call `Shard.timer_fired(key, now)` once `now.ms >= at_ms`."""

    key: TimerKey
    at_ms: int


class CancelTimer(NamedTuple):
    """Forget it; no harm if it is not set."""

    key: TimerKey


class Reply(NamedTuple):
    """Send `answer` to whoever `token` stands for. A token is answered at most once."""

    token: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """An event for the trace (kernel.trace.events has the kinds)."""

    kind: str
    fields: Mapping[str, object]
    cause: str = ""


# -- what is to happen after a write: handed back to the shard with the result --------------------------------


@dataclass(frozen=True, slots=True)
class AssignmentStored:
    """The leader's SyncGroup of this generation."""

    group_id: str
    record: GroupRecord


@dataclass(frozen=True, slots=True)
class OffsetsStored:
    """A commit; `answer` is what its sender gets when it is durable."""

    request: Commit
    changes: tuple[Change, ...]
    answer: CommitAnswer

    def offsets(self) -> Sequence[OffsetChange]:
        if self.request.producer is None:  # nothing is stored beside them then
            return cast("tuple[OffsetChange, ...]", self.changes)
        return _offsets_of(self.changes)

    def group_ids(self) -> Iterable[str]:
        return (self.request.group_id,)


@dataclass(frozen=True, slots=True)
class ReplacementStored:
    """A static member came back under a new id without a rebalance; `former` is for taking it back."""

    request: Join
    record: GroupRecord
    member_id: str
    former: Member
    former_leader: str


@dataclass(frozen=True, slots=True)
class GroupDeleted:
    """DeleteGroups of one group."""

    token: int
    group_id: str


@dataclass(frozen=True, slots=True)
class OffsetsDeleted:
    """OffsetDelete."""

    token: int
    changes: tuple[tuple[OffsetKey, None] | tuple[PendingKey, None], ...]
    answer: DeleteOffsetsAnswer


@dataclass(frozen=True, slots=True)
class OffsetsExpired:
    """Offsets of a group that are too old, and the group itself if nothing is left of it."""

    group_id: str
    changes: tuple[tuple[OffsetKey, None], ...]
    ends_group: bool


@dataclass(frozen=True, slots=True)
class TransactionStored:
    """A step of a transaction; `token` None: nobody waits for it."""

    transactional_id: str
    record: TransactionRecord
    token: int | None = None
    answer: TransactionAnswer | None = None


@dataclass(frozen=True, slots=True)
class Marked:
    """The end of a producer's transaction in this partition."""

    request: Mark
    changes: tuple[Change, ...]

    def offsets(self) -> Sequence[OffsetChange]:
        return _offsets_of(self.changes)

    def group_ids(self) -> Iterable[str]:
        return {key.group_id for key, _ in self.offsets()}


@dataclass(frozen=True, slots=True)
class GenerationStored:
    """A generation of the server design; with a `member_id` it was stored before, and that member is to be told."""

    group_id: str
    record: ServerRecord
    member_id: str | None = None


@dataclass(frozen=True, slots=True)
class ServerGroupDeleted:
    """DeleteGroups of an empty group of the server design; `token` None: the classic group's deletion answers."""

    group_id: str
    token: int | None


OffsetChange = tuple[OffsetKey, OffsetRecord | None] | tuple[PendingKey, OffsetRecord | None]


def _offsets_of(changes: Iterable[Change]) -> Sequence[OffsetChange]:
    """Without what is stored beside them: the fence of a producer."""
    return [change for change in changes if _is_of_offset(change)]


def _is_of_offset(change: Change) -> TypeGuard[OffsetChange]:
    return isinstance(change[0], OffsetKey | PendingKey)


ClassicContinuation = (
    AssignmentStored
    | OffsetsStored
    | ReplacementStored
    | GroupDeleted
    | OffsetsDeleted
    | OffsetsExpired
    | TransactionStored
    | Marked
)
ServerContinuation = GenerationStored | ServerGroupDeleted
Continuation = ClassicContinuation | ServerContinuation


@dataclass(frozen=True, slots=True)
class Write:
    """Records to be stored together; `then` goes back to the shard. None: nobody waits for it."""

    changes: tuple[StoredChange, ...]
    then: Continuation | None = None


class Marker(NamedTuple):
    """Tell these partitions, and those of these groups, how the producer's transaction ended; then call `Shard.marked`.

    It is sent again after a failover, so a partition may hear of it twice.
    """

    transactional_id: str
    producer: Producer
    commits: bool
    groups: tuple[str, ...]
    partitions: tuple[TopicPartition, ...] = ()


class Outcome(NamedTuple):
    """Everything that follows from one event."""

    timers: tuple[SetTimer | CancelTimer, ...] = ()
    events: tuple[TraceEvent, ...] = ()
    replies: tuple[Reply, ...] = ()
    abandoned: tuple[int, ...] = ()  #: tokens that will never be answered, as in Kafka
    writes: tuple[Write, ...] = ()
    markers: tuple[Marker, ...] = ()
    looks: tuple[Look, ...] = ()  #: what the server design wants from ZooKeeper
    decisions: tuple[Decide, ...] = ()  #: ... and from its strategy


NOTHING = Outcome()  #: of a request that has to wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The broker's settings that the machine obeys (Kafka's names in the comments); milliseconds and bytes."""

    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    session_timeout_ms_min: int = 6_000  # group.min.session.timeout.ms
    session_timeout_ms_max: int = 1_800_000  # group.max.session.timeout.ms
    members_max: int = 2_147_483_647  # group.max.size
    member_bytes_max: int = 524_294  # group.member.metadata.max.bytes, which is ours
    group_bytes_max: int = 786_441  # group.metadata.max.bytes, ours as well
    new_member_join_timeout_ms: int = 300_000  # fixed in Kafka
    offset_metadata_bytes_max: int = 4_096  # offset.metadata.max.bytes
    retention_ms: int = 604_800_000  # offsets.retention.minutes
    retention_check_ms: int = 600_000  # offsets.retention.check.interval.ms
    transaction_timeout_ms_max: int = 900_000  # transaction.max.timeout.ms
    traced: bool = True  #: whether anybody reads the events (assignments are decoded for them)


class Turn:
    """One event being handled: the moment, the limits, and the effects so far.

    Lists are made when they are needed: most events are heartbeats, which have one reply and nothing else.
    """

    __slots__ = (
        "_abandoned",
        "_decisions",
        "_events",
        "_looks",
        "_markers",
        "_replies",
        "_timers",
        "_writes",
        "limits",
        "now",
    )

    def __init__(self, now: Moment, limits: Limits) -> None:
        self.now = now
        self.limits = limits
        self._timers: list[SetTimer | CancelTimer] | None = None
        self._events: list[TraceEvent] | None = None
        self._replies: list[Reply] = []
        self._abandoned: list[int] | None = None
        self._writes: list[Write] | None = None
        self._markers: list[Marker] | None = None
        self._looks: list[Look] | None = None
        self._decisions: list[Decide] | None = None

    def reply(self, token: int, answer: Answer) -> None:
        self._replies.append(Reply(token, answer))

    def abandon(self, token: int) -> None:
        self._abandoned = self._abandoned or []
        self._abandoned.append(token)

    def set_timer(self, key: TimerKey, at_ms: int) -> None:
        self._timers = self._timers or []
        self._timers.append(SetTimer(key, at_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        self._timers = self._timers or []
        self._timers.append(CancelTimer(key))

    def write(self, *changes: StoredChange, then: Continuation | None = None) -> None:
        self._writes = self._writes or []
        self._writes.append(Write(changes, then))

    def send(self, marker: Marker) -> None:
        self._markers = self._markers or []
        self._markers.append(marker)

    def look(self, look: Look) -> None:
        self._looks = self._looks or []
        self._looks.append(look)

    def decide(self, decide: Decide) -> None:
        self._decisions = self._decisions or []
        self._decisions.append(decide)

    def trace(self, kind: str, *, cause: str = "", **fields: object) -> None:
        if self.limits.traced:
            self._events = self._events or []
            self._events.append(TraceEvent(kind, fields, cause))

    def outcome(self) -> Outcome:
        rare = self._abandoned or self._markers or self._looks or self._decisions
        if not (self._timers or self._events or self._writes or rare):
            return Outcome(replies=tuple(self._replies)) if self._replies else NOTHING
        return Outcome(
            tuple(self._timers) if self._timers else (),
            tuple(self._events) if self._events else (),
            tuple(self._replies),
            tuple(self._abandoned) if self._abandoned else (),
            tuple(self._writes) if self._writes else (),
            tuple(self._markers) if self._markers else (),
            tuple(self._looks) if self._looks else (),
            tuple(self._decisions) if self._decisions else (),
        )
