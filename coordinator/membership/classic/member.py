"""One member of a group as a value: where it stands, who it is, what it owns, and when it must do something."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from coordinator.membership.effects import Identity

if TYPE_CHECKING:
    from kernel.values import TopicPartition

NS_PER_MS = 1_000_000
NO_GENERATION = -1


class State(Enum):
    """Where a member stands. What each state waits for is in `table.TABLE`."""

    UNJOINED = auto()  #: not in the group and owning nothing; the next poll joins
    STOPPING = auto()  #: inside a poll: commits, and revokes what it may not keep before it joins
    SEEKING = auto()  #: wants to join; the coordinator is looked up, or a backoff runs
    JOINING = auto()  #: JoinGroup is parked at the coordinator until the others have come
    DECIDING = auto()  #: leads this generation; the assignor runs
    SYNCING = auto()  #: SyncGroup waits for the leader's assignment
    ASSIGNED = auto()  #: the assignment has come; the next poll takes it over
    RELEASING = auto()  #: inside a poll: commits and revokes what the new assignment takes away; cooperative only
    RESUMING = auto()  #: inside a poll: callbacks run and positions are looked up
    STABLE = auto()  #: owns its assignment and sends heartbeats
    SUMMONED = auto()  #: as STABLE, but told to rejoin; the next poll does it
    UNSUBSCRIBING = auto()  #: commits and revokes what it owns before it leaves; a new subscription joins again
    CLOSING = auto()  #: commits and revokes what it owns before it leaves
    LEFT = auto()  #: closed; terminal
    FAILED = auto()  #: refused for good; only closing is left


#: In a generation, with heartbeats and a session timer of its own. JOINING and SYNCING have none: a member whose
#: Join or Sync is parked counts as alive, and the parked request holds up whatever follows it on its connection.
ALIVE = frozenset(
    {
        State.STOPPING,
        State.DECIDING,
        State.ASSIGNED,
        State.RELEASING,
        State.RESUMING,
        State.STABLE,
        State.SUMMONED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """Timers by their Kafka names (session.timeout.ms and so on), in milliseconds."""

    group: str
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    retry_backoff_ms: int = 100
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    instance_id: str | None = None  #: group.instance.id of a static member (KIP-345)
    cooperative: bool = False  #: keeps its partitions during a rebalance (KIP-429)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """Deadlines in monotonic nanoseconds; None is a timer that does not run.

    `session_ns` is counted from when the last answered heartbeat was *sent*: the coordinator cannot have started
    its own timer for us any earlier, so ours never runs out after it.
    """

    heartbeat_ns: int | None = None
    session_ns: int | None = None
    poll_ns: int | None = None
    retry_ns: int | None = None
    commit_ns: int | None = None
    rejoin_ns: int | None = None  #: for which the leader has scheduled another rebalance
    heartbeat_sent: bool = False  #: one is on its way; the next waits for its answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Everything that a member knows; changed only by `table.step`."""

    settings: MemberSettings
    state: State = State.UNJOINED
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol: str = ""
    stamp: int = 0  #: see `events`
    coordinator: int | None = None  #: node id of the broker that coordinates, while connected to it
    finding: bool = False  #: FindCoordinator is on its way
    topics: frozenset[str] | None = None  #: subscribed to; None stays out, while nothing (a pattern may) joins
    joined: frozenset[str] | None = None  #: the topics that the last JoinGroup named
    owned: frozenset[TopicPartition] = frozenset()
    assigned: frozenset[TopicPartition] = frozenset()  #: has come, is not taken over yet
    trigger: str = "subscribe"  #: why the next rebalance begins
    releasing: frozenset[TopicPartition] = frozenset()  #: part of `owned` that a revocation under way covers
    summoned: bool = False  #: told to rejoin while it was busy; it does so once it is STABLE
    attempt: int = 0  #: of the running rebalance, from 1; 0 outside of one
    introduced: str = ""  #: the member id that the trace knows
    timers: Timers = field(default_factory=Timers)

    @property
    def identity(self) -> Identity | None:
        """What a commit made now carries; None while the group would refuse it."""
        if not self.member_id or self.generation == NO_GENERATION:
            return None
        return Identity(self.member_id, self.generation)

    @property
    def cause(self) -> str:
        return "" if self.generation == NO_GENERATION else f"generation:{self.generation}"


def deadline(member: Member) -> int | None:
    """When `Ticked` has something to do, in monotonic nanoseconds; None when only an event can move the member."""
    timers = member.timers
    candidates = []
    if member.state in ALIVE:
        candidates += [timers.session_ns, timers.poll_ns if member.identity is not None else None]
        if member.coordinator is not None and not timers.heartbeat_sent:
            candidates.append(timers.heartbeat_ns)
    if member.state is State.STABLE:
        candidates.append(timers.rejoin_ns)
    if member.state is State.SEEKING and member.owned:  # it delivers on, while nobody keeps its place
        candidates.append(timers.session_ns)
    if member.state is State.SEEKING or (member.coordinator is None and member.state in ALIVE):
        candidates.append(None if member.finding else timers.retry_ns)
    return min((at for at in candidates if at is not None), default=None)
