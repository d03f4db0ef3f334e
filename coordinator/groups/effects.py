"""The effects that a machine hands out as values, and the `Turn` that collects them.

The package's docstring says in which order a caller performs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coordinator.groups.answers import Answer
    from coordinator.groups.errors import Error
    from coordinator.groups.limits import Limits
    from coordinator.groups.records import StoredChange
    from coordinator.groups.requests import Producer
    from kernel.assignors.subscription import MemberSubscription
    from kernel.values import TopicPartition


class Moment(NamedTuple):
    """Now: monotonic milliseconds for timers, epoch milliseconds for what is stored."""

    ms: int
    wall_ms: int


class TimerKind(Enum):
    """A group has at most one JOIN and one SYNC timer, a member one SESSION timer."""

    JOIN = "join"  #: the initial delay, or the rebalance timeout
    SYNC = "sync"  #: the deadline for a generation's SyncGroups
    SESSION = "session"  #: a session timeout, a new member's join timeout, or a pending id's
    RETENTION = "retention"  #: the next search for expired offsets; one for all groups, with an empty name
    TRANSACTION = "transaction"  #: a transaction's timeout or retry (`group_id` is the transactional id)
    ROUND = "round"  #: server design: the deadline for members to stop or start
    CONSUMER_SESSION = "consumer session"  #: `consumer` design: a member's session timeout
    REVOCATION = "revocation"  #: `consumer` design: the deadline for a member to give partitions up
    REJOIN = "rejoin"  #: the same for a member of the classic protocol to join again, since it was asked to
    RESYNC = "resync"  #: and to send a SyncGroup after its JoinGroup
    AWAIT = "await"  #: server design: the longest that an AwaitCommand waits


#: Of members of the `consumer` design.
CONSUMER_TIMERS = frozenset({TimerKind.CONSUMER_SESSION, TimerKind.REVOCATION, TimerKind.REJOIN, TimerKind.RESYNC})


class TimerKey(NamedTuple):
    """Setting a timer that is set moves it."""

    kind: TimerKind
    group_id: str
    member_id: str = ""


class SetTimer(NamedTuple):
    """Call `Machine.timer_fired(key, now)` once `now.ms >= at_ms`."""

    key: TimerKey
    at_ms: int


class CancelTimer(NamedTuple):
    """Cancel the timer, if it is set."""

    key: TimerKey


class Reply(NamedTuple):
    """Send `answer` to the request behind `token`. A token is answered at most once."""

    token: int
    answer: Answer


@dataclass(frozen=True, slots=True)
class TraceEvent:
    """An event for the trace (kernel.trace.events has the kinds)."""

    kind: str
    fields: Mapping[str, object]
    cause: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Records to be stored together. A subclass, next to the code that requests the write, says what follows.

    Exactly one of `stored` and `not_stored` is called, once; writes are reported in the order they were handed out.
    A plain `Write` has no consequences and need not be reported.
    """

    changes: tuple[StoredChange, ...]

    #: Clients decide how large it is, so it may be refused. What the coordinator itself decides is written at any size.
    is_from_client: ClassVar[bool] = False

    def stored(self, turn: Turn) -> None:
        """Called when the records are durable."""

    def not_stored(self, error: Error, turn: Turn) -> None:
        """Nothing was stored: it was refused (NOT_COORDINATOR: a higher epoch leads) or it failed."""

    def __str__(self) -> str:
        return type(self).__name__


class Marker(NamedTuple):
    """Write a transaction's outcome to these partitions and those of these groups, then call `Transactions.marked`.

    It is handed out again after a failover, so a partition may get it twice.
    """

    transactional_id: str
    producer: Producer
    commits: bool
    groups: tuple[str, ...]
    partitions: tuple[TopicPartition, ...] = ()


class WatchIds(NamedTuple):
    """Read the group's ids with a watch, and each id's data; report them now and whenever the watch fires."""

    group_id: str


class ReadAgain(NamedTuple):
    """Read this member's data again, which has changed, and report."""

    group_id: str
    member_id: str


class ForgetIds(NamedTuple):
    """Stop watching the group's ids."""

    group_id: str


#: What the server design asks of ZooKeeper.
WatchEffect = WatchIds | ReadAgain | ForgetIds


@dataclass(frozen=True, slots=True)
class Decide:
    """Run the server design's strategy for the next generation, off the event loop, and report the result."""

    group_id: str
    generation: int  #: the next
    sizes: tuple[tuple[str, int], ...]  #: (topic, partition count) of existing topics
    subscriptions: Mapping[str, MemberSubscription]


class Search(NamedTuple):
    """Search the topics that match regular expressions of a group of the `consumer` design, and report."""

    group_id: str
    regexes: tuple[str, ...]
    version: int  #: of the topics' names (`Topics.names_version`)


class Effects(NamedTuple):
    """Everything that follows from one event."""

    timers: tuple[SetTimer | CancelTimer, ...] = ()
    events: tuple[TraceEvent, ...] = ()
    replies: tuple[Reply, ...] = ()
    abandoned: tuple[int, ...] = ()  #: tokens that will never be answered, as in Kafka
    writes: tuple[Write, ...] = ()
    markers: tuple[Marker, ...] = ()
    watches: tuple[WatchEffect, ...] = ()
    decisions: tuple[Decide, ...] = ()
    searches: tuple[Search, ...] = ()


NOTHING = Effects()  #: of a request that has to wait


class Turn:
    """One event being handled: the moment, the limits, and the effects so far.

    Lists are created on first use: most events are heartbeats, whose only effect is a reply.
    """

    __slots__ = (
        "_abandoned",
        "_decisions",
        "_events",
        "_markers",
        "_replies",
        "_searches",
        "_timers",
        "_watch_effects",
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
        self._watch_effects: list[WatchEffect] | None = None
        self._decisions: list[Decide] | None = None
        self._searches: list[Search] | None = None

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

    def write(self, write: Write) -> None:
        self._writes = self._writes or []
        self._writes.append(write)

    def send(self, marker: Marker) -> None:
        self._markers = self._markers or []
        self._markers.append(marker)

    def watch(self, watch: WatchEffect) -> None:
        self._watch_effects = self._watch_effects or []
        self._watch_effects.append(watch)

    def decide(self, decide: Decide) -> None:
        self._decisions = self._decisions or []
        self._decisions.append(decide)

    def search(self, search: Search) -> None:
        self._searches = self._searches or []
        self._searches.append(search)

    def trace(self, kind: str, *, cause: str = "", **fields: object) -> None:
        if self.limits.traced:
            self._events = self._events or []
            self._events.append(TraceEvent(kind, fields, cause))

    def effects(self) -> Effects:
        rare = self._abandoned or self._markers or self._watch_effects or self._decisions or self._searches
        if not (self._timers or self._events or self._writes or rare):
            return Effects(replies=tuple(self._replies)) if self._replies else NOTHING
        return Effects(
            tuple(self._timers) if self._timers else (),
            tuple(self._events) if self._events else (),
            tuple(self._replies),
            tuple(self._abandoned) if self._abandoned else (),
            tuple(self._writes) if self._writes else (),
            tuple(self._markers) if self._markers else (),
            tuple(self._watch_effects) if self._watch_effects else (),
            tuple(self._decisions) if self._decisions else (),
            tuple(self._searches) if self._searches else (),
        )
