"""One member of the server design as a value: where it stands, who it is, what it owns, when it must do something."""

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


class State(Enum):
    """Where a member stands. What each state waits for is in `table.TABLE`."""

    UNREGISTERED = auto()  #: has no session, or one that may be over; owns nothing and asks for nothing
    REGISTERING = auto()  #: its id is being put into ZooKeeper; a dead predecessor's may have to go first
    WAITING = auto()  #: registered and owning nothing; waits to be told what to start
    STARTING = auto()  #: told to start: callbacks run
    STARTED = auto()  #: delivers what it owns, and waits to be told to stop
    STOPPING = auto()  #: told to stop: commits and revokes, and only then says so
    CLOSING = auto()  #: commits and revokes what it owns before its session ends
    LEFT = auto()  #: closed; terminal
    FAILED = auto()  #: refused for good; only closing is left


#: In these, what is owned is delivered or being given up under an identity that commits may carry.
OWNING = frozenset({State.STARTING, State.STARTED, State.STOPPING, State.CLOSING})

#: In these the next thing to do is to ask the coordinator for a command.
ASKING = frozenset({State.WAITING, State.STARTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """Timers by their Kafka names (retry.backoff.ms and so on), in milliseconds."""

    group: str
    retry_backoff_ms: int = 100
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """Deadlines in monotonic nanoseconds; None is a timer that does not run.

    `session_ns` runs while no ZooKeeper server is reached: when the session may be over by then.
    """

    retry_ns: int | None = None
    session_ns: int | None = None
    commit_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Everything that a member knows; changed only by `table.step`."""

    settings: MemberSettings
    state: State = State.UNREGISTERED
    session: int = NO_SESSION  #: the ZooKeeper session, which may be over while no server is reached
    session_timeout_ms: int = 0
    reached: bool = False  #: a ZooKeeper server is
    member_id: str = ""  #: the last one that was registered
    registered: bool = False  #: under that id, in a session that lives
    generation: int = NO_GENERATION  #: started last
    stopped: int = NO_GENERATION  #: stopped last, which the next question acknowledges
    stamp: int = 0  #: see `events`
    coordinator: int | None = None  #: node id of the broker that coordinates, while connected to it
    finding: bool = False  #: FindCoordinator is on its way
    asking: bool = False  #: AwaitCommand is on its way
    owned: frozenset[TopicPartition] = frozenset()
    owned_since: int = NO_GENERATION  #: the generation that gave it, also once that one is given up
    trigger: str = "subscribe"  #: why the next rebalance begins
    attempt: int = 0  #: of the running rebalance, from 1; 0 outside of one
    introduced: str = ""  #: the member id that the trace knows
    timers: Timers = field(default_factory=Timers)

    @property
    def identity(self) -> Identity | None:
        """What a commit made now carries; None while the group would refuse it."""
        if not self.registered or self.generation == NO_GENERATION or self.state not in OWNING:
            return None
        return Identity(self.member_id, self.generation)

    @property
    def cause(self) -> str:
        return "" if self.generation == NO_GENERATION else f"generation:{self.generation}"


def deadline(member: Member) -> int | None:
    """When `Ticked` has something to do, in monotonic nanoseconds; None when only an event can move the member."""
    return min((at for at in (member.timers.session_ns, member.timers.retry_ns) if at is not None), default=None)
