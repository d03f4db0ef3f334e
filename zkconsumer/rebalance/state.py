"""What a rebalance knows between two events: frozen, the whole of it, and nothing hidden elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition
    from zkconsumer.rebalance.effects import Claim, RebalanceDemanded, Request
    from zkconsumer.znodes.payloads import Registration

    #: {stream: its partitions}
    Delivering = Mapping[int, frozenset[TopicPartition]]


def _empty() -> Mapping[Any, Any]:
    return MappingProxyType({})


class State(Enum):
    """Where the member is. Action: what it waits for. Transition: what comes next when all goes well.

    Which of the steps there are, and in which order, `table.py` says for the rules that are given.
    """

    IDLE = auto()  #: nothing to do; a demand, a notified change or the shutdown leads on
    SYNCING = auto()  #: R1, waits until our server has caught up; then LISTING_CLUSTER
    LISTING_CLUSTER = auto()  #: R1, waits for the names of the brokers; then READING_CLUSTER
    READING_CLUSTER = auto()  #: R1, waits for their nodes; then READING_OWN
    READING_OWN = auto()  #: R2, waits for our own registration; then MATCHING_OWN
    MATCHING_OWN = auto()  #: R2, with a pattern: waits for the names of all topics; then LISTING_BROKERS
    LISTING_BROKERS = auto()  #: R3, waits for the names of the brokers again; then READING_BROKERS
    READING_BROKERS = auto()  #: R3, waits for their nodes; then STOPPING, or AWAITING_BROKERS when there are none
    AWAITING_BROKERS = auto()  #: R3a, listens to /brokers/ids; then IDLE with everything untouched
    STOPPING = auto()  #: R4, waits until nothing is fetched and delivered; then RELEASING
    TELLING_REVOKED = auto()  #: R4, waits for 1.1's listener; then RELEASING
    RELEASING = auto()  #: R5, waits for the deletes of one topic's owner nodes, or checked: for their data
    RELEASING_CHECKED = auto()  #: R5, waits for the deletes of those that are ours; then the next topic
    SYNCING_AGAIN = auto()  #: R6, waits until our server has caught up; then READING_OWN_AGAIN
    READING_OWN_AGAIN = auto()  #: R6, waits for our own registration; then MATCHING_OWN_AGAIN
    MATCHING_OWN_AGAIN = auto()  #: R6, with a pattern: waits for the names of all topics; then READING_TOPICS
    READING_TOPICS = auto()  #: R6, waits for our topics and the members' names; then READING_MEMBERS
    LISTING_MEMBERS = auto()  #: R6 of 1.1, waits for the members' names; then READING_MEMBERS
    READING_MEMBERS = auto()  #: R6, waits for the members' nodes and names; then DECIDING
    READING_GROUP_TOPICS = auto()  #: R6 of 1.1, waits for all topics of the group; then DECIDING
    DECIDING = auto()  #: R7, waits for nothing; then READING_OFFSETS
    READING_KAFKA_OFFSETS = auto()  #: R8, waits for what Kafka keeps; then READING_OFFSETS, with dual commit
    READING_OFFSETS = auto()  #: R8, waits for what ZooKeeper keeps; then HEEDING_SHUTDOWN
    HEEDING_SHUTDOWN = auto()  #: R9, waits for nothing: fails when the member is to close; then CLAIMING
    CLAIMING = auto()  #: R11, waits for one create of an owner node; then COUNTING, or CHECKING_CLAIM
    CHECKING_CLAIM = auto()  #: R11, the node exists: waits for its data; then COUNTING
    BUMPING_EPOCH = auto()  #: R11, waits for a new version of the epoch node of what was claimed; then COUNTING
    MAKING_EPOCH = auto()  #: R11, there is no epoch node yet: waits for its create; then COUNTING
    COUNTING = auto()  #: R11, waits for nothing; then CLAIMING, or OWNING, or ROLLING_BACK
    ROLLING_BACK = auto()  #: R11, waits for the deletes of what was claimed, or checked: for the data; then GIVING_UP
    ROLLING_BACK_CHECKED = auto()  #: R11, waits for the deletes of those that are ours; then GIVING_UP
    OWNING = auto()  #: R12, waits for nothing: what was claimed is ours to release; then ADOPTING
    TELLING_ASSIGNED = auto()  #: R12, waits for 1.1's listener; then ADOPTING
    ADOPTING = auto()  #: R12, waits until each partition has its stream; then STARTING
    STARTING = auto()  #: R12, waits for the fetchers' start; then IDLE
    GIVING_UP = auto()  #: the attempt failed, waits until nothing is fetched; then BACKING_OFF
    BACKING_OFF = auto()  #: waits for the backoff; then the next attempt, or IDLE when the attempts are used up
    LOOKING = auto()  #: all attempts failed, waits for the owners of our part; then IDLE, or a rebalance
    PAUSING = auto()  #: disconnected, waits for the listener; then IDLE, and nothing is delivered
    RESUMING = auto()  #: connected again, waits for the listener and the fetchers' start; then IDLE
    CLOSING = auto()  #: waits for fetchers, streams and the last commit; then CLOSING_SESSION
    CLOSING_SESSION = auto()  #: waits for the session's end; then CLOSED
    CLOSED = auto()  #: final


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings that decide."""

    group: str
    consumer_id: str
    max_retries: int = 4  #: rebalance.max.retries: attempts in all
    backoff_ms: int = 2000  #: rebalance.backoff.ms, after the last attempt too
    auto_commit: bool = True  #: auto.commit.enable
    #: 0.8.2.2 looks at its shutdown flag in R9 only; 1.1 before every attempt (off here)
    retry_while_closing: bool = True
    strategy: str = "range"  #: range, roundrobin-0.8.2 or roundrobin-1.1
    exclude_internal_topics: bool = True  #: a pattern never matches __consumer_offsets
    listener_in_attempt: bool = False  #: 1.1's listener, which can fail the attempt
    #: R8 reads them from ZooKeeper, from Kafka, or from both (dual commit)
    offsets_from: frozenset[str] = frozenset({"zookeeper"})
    claim_before_offsets: bool = False  #: fix.claim.before.offsets
    checked_release: bool = False  #: fix.checked.release
    checked_claim: bool = False  #: fix.checked.claim
    stop_on_disconnect: bool = False  #: fix.stop.on.disconnect
    sync_before_reads: bool = False  #: fix.sync.before.reads
    retry_when_free: bool = False  #: fix.retry.when.free
    quiet_ms: int = 0  #: fix.quiet.ms
    skip_unreadable_members: bool = False  #: fix.skip.unreadable.members
    fence_epochs: bool = False  #: fix.commit.fence=epoch: each claim bumps the partition's epoch node


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attempt has read and done so far."""

    number: int = 1
    broker_names: tuple[str, ...] = ()
    own: Registration | None = None  #: our registration as it stands in ZooKeeper
    topics: Mapping[str, int] = field(default_factory=_empty)  #: {topic: streams}, ours, a pattern's too
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=_empty)
    unread: tuple[str, ...] = ()  #: members whose nodes are still to be read
    unmatched: tuple[str, ...] = ()  #: members whose pattern still needs the names of all topics
    members_listed: bool = False  #: whether the last getChildren of R6 is done, or left to another step
    registrations: Mapping[str, Registration] = field(default_factory=_empty)
    subscriptions: Mapping[str, Mapping[str, int]] = field(
        default_factory=_empty
    )  #: {member: {topic: streams}}, of those that were read
    left_out: tuple[str, ...] = ()  #: why a member's node could not be read, for each that is left out
    stored: Mapping[TopicPartition, int] = field(default_factory=_empty)  #: what Kafka keeps
    claims: tuple[Claim, ...] = ()  #: our part, in the order in which it is claimed
    claiming: int = 0  #: the claim that is made next
    claimed: tuple[Claim, ...] = ()
    conflicts: tuple[Claim, ...] = ()
    deletes: tuple[Request, ...] = ()  #: of owner nodes that were checked
    spared: tuple[str, ...] = ()  #: owner nodes that are not ours by the check
    outcome: str = ""  #: how the attempt failed, as `attempt_ended` says it
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One member between two events."""

    rules: Rules
    state: State = State.IDLE
    triggered: bool = False  #: the merged trigger flag
    triggered_by: str = ""
    triggered_cause: str = ""
    demands: tuple[RebalanceDemanded, ...] = ()  #: wait for the running rebalance, as for the original's lock
    closing: bool = False
    owned: tuple[Claim, ...] = ()  #: the topic registry: what R5 releases
    #: stream -> what it may deliver; unlike the registry it outlives an expired session
    delivering: Delivering = field(default_factory=_empty)
    ticket: int | None = None  #: who asked for the running rebalance, when somebody did
    cause: str = ""  #: of the running rebalance: the change that made it, as the trace names causes
    attempt: Attempt = field(default_factory=Attempt)
    #: member -> whether it subscribed by a pattern when it was read last: decides which reads can go together
    wildcards: Mapping[str, bool] = field(default_factory=_empty)
    connected: bool = True  #: only told, and only looked at, with stop_on_disconnect
    held: Delivering = field(default_factory=_empty)  #: what was delivered when the connection broke
    untold: Delivering = field(
        default_factory=_empty
    )  #: what has stopped since then and the listener does not know yet
    reminders: int = 0  #: how many were asked for: tokens are counted
    quiet_token: int = 0  #: whose reminder says that the group has been quiet; 0: it is
    retry_token: int = 0  #: whose reminder makes us look for a free partition; 0: no need
