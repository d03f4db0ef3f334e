"""One member of a KIP-848 group as a value: its state, epoch, partitions and deadlines."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from coordinator.membership.effects import Identity

if TYPE_CHECKING:
    from kernel.values import TopicPartition

NS_PER_MS = 1_000_000
#: Member epochs on the wire: to join, to leave, and to leave for a while under an instance id (KIP-848).
JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
NOTHING: frozenset[TopicPartition] = frozenset()


class ConsumerMemberState(Enum):
    """States by Kafka's own names (MemberState.java), without LEAVING, which takes no time. `table.TABLE` has what each
    one does with each event.
    """

    UNSUBSCRIBED = auto()  #: not in the group
    JOINING = auto()  #: sends epoch 0, now or as soon as there is a coordinator
    RECONCILING = auto()  #: the target differs from what was reconciled last; a poll takes it over
    ACKNOWLEDGING = auto()  #: reconciled; the next heartbeat says so, at once if none is outstanding
    STABLE = auto()  #: owns its target
    PREPARE_LEAVING = auto()  #: revokes everything, then leaves
    FENCED = auto()  #: the group refused its epoch; joins again when the listener has returned
    STALE = auto()  #: left because the application did not poll in time; joins again at a poll
    FATAL = auto()  #: failed for good; can only be closed


class Local(NamedTuple):
    """An assignment and its number among those received: the same partitions again are another assignment."""

    number: int
    partitions: frozenset[TopicPartition]


#: Before the first assignment. An empty one is not equal to it: the listener hears of that one, too.
NONE = Local(-1, frozenset())


class SentFields(NamedTuple):
    """What the coordinator knows from earlier heartbeats, so that the next one leaves it out."""

    topics: frozenset[str]
    regex: str | None
    local: Local


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMemberSettings:
    """Settings by their Kafka names; the interval of heartbeats and the session timeout are the broker's."""

    group: str
    instance_id: str | None = None
    server_assignor: str | None = None
    max_poll_interval_ms: int = 300_000  #: also the rebalance timeout that the member sends
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMemberTimers:
    """Deadlines in monotonic nanoseconds; None for a timer that is not running."""

    heartbeat_ns: int | None = None  #: the next heartbeat, unless one is outstanding
    retry_ns: int | None = None  #: the next lookup of the coordinator
    poll_ns: int | None = None
    commit_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member's whole state; only `table.step` changes it. The consumer makes its member id itself (KIP-1082)."""

    settings: ConsumerMemberSettings
    member_id: str
    state: ConsumerMemberState = ConsumerMemberState.UNSUBSCRIBED
    topics: frozenset[str] | None = None  #: the subscription; None for none
    regex: str | None = None  #: the subscription, if the coordinator matches topics; `topics` is empty then
    #: While it prepares to leave: the topics and regular expression that its heartbeats go on to name.
    last_subscription: tuple[frozenset[str], str | None] | None = None
    closed: bool = False
    epoch: int = JOIN_EPOCH  #: the last one that the coordinator gave; JOIN_EPOCH while there is none
    stamp: int = 0  #: see `events`
    coordinator: int | None = None  #: node id of the coordinator, while connected to it
    finding: bool = False  #: FindCoordinator is outstanding
    heartbeat_sent: bool = False  #: a heartbeat is outstanding
    interval_ms: int = 0  #: between heartbeats, as the coordinator said last
    failures: int = 0  #: heartbeats in a row that failed
    sent: SentFields | None = None  #: None: the next heartbeat is full
    owned: frozenset[TopicPartition] = NOTHING
    target: Local = NONE  #: received last
    reconciling: Local | None = None  #: the target being taken over
    current: Local = NONE  #: reconciled last
    releasing: frozenset[TopicPartition] = NOTHING  #: of `owned`: being revoked
    callback: int | None = None  #: the number of the callback that the member waits for
    callbacks: int = 0  #: how many it has asked for
    expired: bool = False  #: leaves because the application did not poll
    trigger: str = "subscribe"  #: why the next rebalance begins
    attempt: int = 0  #: 1 while a rebalance runs
    timers: ConsumerMemberTimers = field(default_factory=ConsumerMemberTimers)

    @property
    def identity(self) -> Identity | None:
        """The identity for a commit made now; None while the group would refuse it."""
        return None if self.epoch <= JOIN_EPOCH else Identity(self.member_id, self.epoch)

    @property
    def cause(self) -> str:
        return "" if self.epoch <= JOIN_EPOCH else f"generation:{self.epoch}"


#: States that send heartbeats by the interval.
IN_GROUP = frozenset(
    {
        ConsumerMemberState.JOINING,
        ConsumerMemberState.RECONCILING,
        ConsumerMemberState.ACKNOWLEDGING,
        ConsumerMemberState.STABLE,
        ConsumerMemberState.PREPARE_LEAVING,
    }
)


def deadline(member: ConsumerMember) -> int | None:
    """Return when `Ticked` is next due, in monotonic nanoseconds; None if no timer is running."""
    if member.state not in IN_GROUP:
        return None
    timers = member.timers
    heartbeat = None if member.heartbeat_sent or member.coordinator is None else timers.heartbeat_ns
    poll = None if member.state is ConsumerMemberState.PREPARE_LEAVING else timers.poll_ns
    return min((at for at in (heartbeat, timers.retry_ns, poll) if at is not None), default=None)
