"""What a rebalance knows between two events: frozen, the whole of it, and nothing hidden elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition
    from zkconsumer.effects import Claim, RebalanceDemanded


class State(Enum):
    """Where the member is. Action: what it waits for. Transition: what comes next when all goes well."""

    IDLE = auto()  #: nothing to do; a demand, a notified change or the shutdown leads on
    LISTING_CLUSTER = auto()  #: R1, waits for the names of the brokers; then READING_CLUSTER
    READING_CLUSTER = auto()  #: R1, waits for their nodes; then READING_OWN
    READING_OWN = auto()  #: R2, waits for our own registration; then LISTING_BROKERS
    LISTING_BROKERS = auto()  #: R3, waits for the names of the brokers again; then READING_BROKERS
    READING_BROKERS = auto()  #: R3, waits for their nodes; then STOPPING, or AWAITING_BROKERS when there are none
    AWAITING_BROKERS = auto()  #: R3a, listens to /brokers/ids; then IDLE with everything untouched
    STOPPING = auto()  #: R4, waits until nothing is fetched and delivered; then RELEASING
    RELEASING = auto()  #: R5, waits for the deletes of one topic's owner nodes; then the next, or READING_OWN_AGAIN
    READING_OWN_AGAIN = auto()  #: R6, waits for our own registration; then READING_TOPICS
    READING_TOPICS = auto()  #: R6, waits for our topics and the members' names; then READING_MEMBERS
    READING_MEMBERS = auto()  #: R6, waits for the members' nodes and names; then DECIDING
    DECIDING = auto()  #: R7, waits for nothing; then READING_OFFSETS
    READING_OFFSETS = auto()  #: R8 to R10, waits for the committed offsets; then CLAIMING
    CLAIMING = auto()  #: R11, waits for one create of an owner node; then the next, or STARTING, or ROLLING_BACK
    CHECKING_CLAIM = auto()  #: R11, the node exists: waits for its data; then CLAIMING
    ROLLING_BACK = auto()  #: R11, waits for the deletes of what this attempt claimed; then GIVING_UP
    STARTING = auto()  #: R12, waits for the fetchers' start; then IDLE
    GIVING_UP = auto()  #: the attempt failed, waits until nothing is fetched; then BACKING_OFF
    BACKING_OFF = auto()  #: waits for the backoff; then LISTING_CLUSTER, or IDLE when the attempts are used up
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
    topics: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))  #: {topic: streams}, ours
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    members: tuple[str, ...] = ()
    threads: Mapping[str, list[str]] = field(default_factory=lambda: MappingProxyType({}))  #: the group's, by topic
    decided: tuple[tuple[str, TopicPartition], ...] = ()  #: (thread, partition): our part
    claims: tuple[Claim, ...] = ()  #: our part with its offsets
    claiming: int = 0  #: the claim that is made next
    claimed: tuple[Claim, ...] = ()
    conflicts: tuple[Claim, ...] = ()
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
    delivering: Mapping[int, frozenset[TopicPartition]] = field(default_factory=lambda: MappingProxyType({}))
    ticket: int | None = None  #: who asked for the running rebalance, when somebody did
    cause: str = ""  #: of the running rebalance: the change that made it, as the trace names causes
    attempt: Attempt = field(default_factory=Attempt)
