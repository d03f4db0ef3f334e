"""One member of a classic group as a value: its state, identity, partitions and deadlines."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING

from coordinator.membership.effects import Identity

if TYPE_CHECKING:
    from kernel.values import TopicPartition

NS_PER_MS = 1_000_000
NO_GENERATION = -1


class MemberState(Enum):
    """States of a member. `table.TABLE` has what each one does with each event."""

    UNJOINED = auto()  #: not in the group, owns nothing; the next poll joins
    STOPPING = auto()  #: inside a poll: commits, and revokes what it may not keep before it joins
    SEEKING = auto()  #: about to join; looking up the coordinator, or in a backoff
    JOINING = auto()  #: JoinGroup is parked at the coordinator until the others have joined
    DECIDING = auto()  #: leads this generation; the assignor is running
    SYNCING = auto()  #: SyncGroup awaits the leader's assignment
    ASSIGNED = auto()  #: has received its assignment; the next poll takes it over
    RELEASING = auto()  #: inside a poll: commits and revokes what the new assignment takes away; cooperative only
    RESUMING = auto()  #: inside a poll: callbacks run and positions are looked up
    STABLE = auto()  #: owns its assignment and sends heartbeats
    REJOIN_NEEDED = auto()  #: as STABLE, but the next poll rejoins
    UNSUBSCRIBING = auto()  #: commits and revokes what it owns, then leaves; a new subscription joins again
    CLOSING = auto()  #: commits and revokes what it owns, then leaves
    LEFT = auto()  #: closed; terminal
    FAILED = auto()  #: failed for good; can only be closed


#: States in a generation, with heartbeats and a session timer. JOINING and SYNCING have neither: the coordinator
#: considers a member with a parked request alive, and that request delays any other on the same connection.
ALIVE = frozenset(
    {
        MemberState.STOPPING,
        MemberState.DECIDING,
        MemberState.ASSIGNED,
        MemberState.RELEASING,
        MemberState.RESUMING,
        MemberState.STABLE,
        MemberState.REJOIN_NEEDED,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """MemberTimers by their Kafka names (session.timeout.ms and so on), in milliseconds."""

    group: str
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    retry_backoff_ms: int = 100
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    instance_id: str | None = None  #: group.instance.id of a static member (KIP-345)
    cooperative: bool = False  #: keeps its partitions during a rebalance (KIP-429)
    forgets_id_with_generation: bool = False  #: fault.kafka.13419
    loses_all_between_generations: bool = False  #: fault.kafka.13891


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberTimers:
    """Deadlines in monotonic nanoseconds; None for a timer that is not running.

    `session_ns` is counted from when the last successful heartbeat was *sent*: the coordinator cannot have restarted
    its session timer earlier, so ours never runs out after it.
    """

    heartbeat_ns: int | None = None
    session_ns: int | None = None
    poll_ns: int | None = None
    retry_ns: int | None = None
    commit_ns: int | None = None
    rejoin_ns: int | None = None  #: when the leader scheduled the next rebalance
    heartbeat_sent: bool = False  #: a heartbeat is outstanding; the next one waits for its response


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member's whole state; only `table.step` changes it."""

    settings: MemberSettings
    state: MemberState = MemberState.UNJOINED
    member_id: str = ""
    generation: int = NO_GENERATION
    protocol: str = ""
    stamp: int = 0  #: see `events`
    coordinator: int | None = None  #: node id of the coordinator, while connected to it
    finding: bool = False  #: FindCoordinator is outstanding
    topics: frozenset[str] | None = None  #: None: not subscribed, stays out; empty (a pattern without a match): joins
    joined: frozenset[str] | None = None  #: the topics in the last JoinGroup
    owned: frozenset[TopicPartition] = frozenset()
    assigned: frozenset[TopicPartition] = frozenset()  #: received, not yet taken over
    trigger: str = "subscribe"  #: why the next rebalance begins
    releasing: frozenset[TopicPartition] = frozenset()  #: the part of `owned` that is being revoked
    rejoin_needed: bool = False  #: a rejoin was requested while busy; it follows as soon as possible
    attempt: int = 0  #: attempt number within the running rebalance, from 1; 0 if none is running
    traced_id: str = ""  #: the member id last traced with `member_started`
    timers: MemberTimers = field(default_factory=MemberTimers)

    @property
    def identity(self) -> Identity | None:
        """The identity for a commit made now; None while the group would reject it."""
        if not self.member_id or self.generation == NO_GENERATION:
            return None
        return Identity(self.member_id, self.generation)

    @property
    def cause(self) -> str:
        return "" if self.generation == NO_GENERATION else f"generation:{self.generation}"


def deadline(member: Member) -> int | None:
    """Return when `Ticked` is next due, in monotonic nanoseconds; None if no timer is running."""
    timers = member.timers
    candidates = []
    if member.state in ALIVE:
        candidates += [timers.session_ns, timers.poll_ns if member.identity is not None else None]
        if member.coordinator is not None and not timers.heartbeat_sent:
            candidates.append(timers.heartbeat_ns)
    if member.state is MemberState.STABLE:
        candidates.append(timers.rejoin_ns)
    if member.state is MemberState.SEEKING and member.owned:  # delivers without heartbeats
        candidates.append(timers.session_ns)
    seeks = member.coordinator is None and (member.state in ALIVE or member.state is MemberState.CLOSING)
    if member.state is MemberState.SEEKING or seeks:
        candidates.append(None if member.finding else timers.retry_ns)
    running = [at for at in candidates if at is not None]
    return min(running) if running else None
