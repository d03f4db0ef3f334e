"""One member of the server design as a value: its state, identity, partitions and deadlines."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from coordinator.membership.effects import Identity

if TYPE_CHECKING:
    from kernel.values import TopicPartition

NS_PER_MS = 1_000_000
NO_GENERATION = -1
NO_SESSION = 0


class ServerMemberState(Enum):
    """States of a member. `table.TABLE` has what each one does with each event."""

    UNREGISTERED = auto()  #: no session, or one that may have expired; owns nothing and sends nothing
    REGISTERING = auto()  #: creating its id in ZooKeeper; a dead predecessor's znode may have to expire first
    WAITING = auto()  #: registered, owns nothing, awaits a start
    STARTING = auto()  #: received a start: callbacks are running
    STARTED = auto()  #: delivers what it owns, awaits a stop
    STOPPING = auto()  #: received a stop: commits and revokes, then acknowledges
    CLOSING = auto()  #: commits and revokes what it owns, then deletes its id
    LEFT = auto()  #: closed; terminal
    FAILED = auto()  #: failed for good; can only be closed


#: States in which the member delivers or revokes under an identity that commits may carry.
OWNING = frozenset(
    {ServerMemberState.STARTING, ServerMemberState.STARTED, ServerMemberState.STOPPING, ServerMemberState.CLOSING}
)

#: States in which the member asks the coordinator for its next command.
AWAITING = frozenset({ServerMemberState.WAITING, ServerMemberState.STARTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMemberSettings:
    """ServerMemberTimers by their Kafka names (retry.backoff.ms and so on), in milliseconds."""

    group: str
    retry_backoff_ms: int = 100
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMemberTimers:
    """Deadlines in monotonic nanoseconds; None for a timer that is not running.

    `session_ns` runs while ZooKeeper is unreachable: the session may have expired by then.
    """

    retry_ns: int | None = None
    session_ns: int | None = None
    commit_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMember:
    """A member's whole state; only `table.step` changes it."""

    settings: ServerMemberSettings
    state: ServerMemberState = ServerMemberState.UNREGISTERED
    session: int = NO_SESSION  #: the ZooKeeper session, which may have expired while `reached` is False
    session_timeout_ms: int = 0
    reached: bool = False  #: connected to ZooKeeper
    member_id: str = ""  #: registered last
    registered: bool = False  #: under that id, in a live session
    generation: int = NO_GENERATION  #: started last
    stopped: int = NO_GENERATION  #: stopped last; the next AwaitCommand acknowledges it
    stamp: int = 0  #: see `events`
    coordinator: int | None = None  #: node id of the coordinator, while connected to it
    finding: bool = False  #: FindCoordinator is outstanding
    awaiting_command: bool = False  #: AwaitCommand is outstanding
    owned: frozenset[TopicPartition] = frozenset()
    owned_since: int = NO_GENERATION  #: the generation that assigned `owned`, kept when `generation` is reset
    trigger: str = "subscribe"  #: why the next rebalance begins
    attempt: int = 0  #: attempt number within the running rebalance, from 1; 0 if none is running
    traced_id: str = ""  #: the member id last traced with `member_started`
    timers: ServerMemberTimers = field(default_factory=ServerMemberTimers)

    @property
    def identity(self) -> Identity | None:
        """The identity for a commit made now; None while the group would reject it."""
        if not self.registered or self.generation == NO_GENERATION or self.state not in OWNING:
            return None
        return Identity(self.member_id, self.generation)

    @property
    def cause(self) -> str:
        return "" if self.generation == NO_GENERATION else f"generation:{self.generation}"


def deadline(member: ServerMember) -> int | None:
    """Return when `Ticked` is next due, in monotonic nanoseconds; None if no timer is running."""
    return min((at for at in (member.timers.session_ns, member.timers.retry_ns) if at is not None), default=None)
