"""The complete state of a member's rebalances between two events, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.values import TopicPartition
    from zkconsumer.rebalance.config import RebalanceConfig
    from zkconsumer.rebalance.effects import Claim, RebalanceDemanded, Request
    from zkconsumer.znodes.payloads import Registration

    #: {stream: its partitions}
    Delivering = Mapping[int, frozenset[TopicPartition]]


def _empty() -> Mapping[Any, Any]:
    return MappingProxyType({})


class RebalanceState(Enum):
    """Where the member is. Each line gives the action (what it waits for) and the transitions (what can come next).

    The transitions of a step (R1 to R12) are those of all options together, without failures; `table.py` says which
    steps there are with given options. A step that fails leads to GIVING_UP.
    """

    IDLE = auto()  #: nothing to do, until a demand, a change, a lost connection or the shutdown
    SYNCING = auto()  #: R1, waits until our server has caught up; then LISTING_CLUSTER
    LISTING_CLUSTER = auto()  #: R1, waits for the names of the brokers; then READING_CLUSTER
    READING_CLUSTER = auto()  #: R1, waits for their nodes; then READING_OWN
    READING_OWN = auto()  #: R2, waits for our own registration; then MATCHING_OWN
    MATCHING_OWN = auto()  #: R2, with a pattern: waits for the names of all topics; then LISTING_BROKERS
    LISTING_BROKERS = auto()  #: R3, waits for the names of the brokers again; then READING_BROKERS
    READING_BROKERS = auto()  #: R3, waits for their nodes; then STOPPING, or AWAITING_BROKERS if there are none
    AWAITING_BROKERS = auto()  #: R3a, waits for the watch on /brokers/ids; then IDLE with nothing changed
    STOPPING = auto()  #: R4, waits until nothing is fetched or delivered; then NOTIFYING_REVOKED or RELEASING
    NOTIFYING_REVOKED = auto()  #: R4, waits for the listener, called as in 1.1; then RELEASING
    #: R5, waits for the deletes (checked release: the data) of one topic's owner nodes; then RELEASING for the next
    #: topic or RELEASING_CHECKED, and in the end SYNCING_AGAIN or READING_OWN_AGAIN
    RELEASING = auto()
    #: R5, waits for the deletes of the nodes that are ours; then RELEASING for the next topic, and in the end
    #: SYNCING_AGAIN or READING_OWN_AGAIN
    RELEASING_CHECKED = auto()
    SYNCING_AGAIN = auto()  #: R6, waits until our server has caught up; then READING_OWN_AGAIN
    READING_OWN_AGAIN = auto()  #: R6, waits for our own registration; then MATCHING_OWN_AGAIN
    #: R6, with a pattern: waits for the names of all topics; then READING_TOPICS or LISTING_MEMBERS
    MATCHING_OWN_AGAIN = auto()
    READING_TOPICS = auto()  #: R6, waits for our topics and the names of the members; then READING_MEMBERS
    LISTING_MEMBERS = auto()  #: R6 of 1.1, waits for the names of the members; then READING_MEMBERS
    #: R6, waits for the nodes and names of the members; then READING_MEMBERS for the rest, and in the end
    #: READING_GROUP_TOPICS or DECIDING
    READING_MEMBERS = auto()
    READING_GROUP_TOPICS = auto()  #: R6 of 1.1, waits for all topics of the group; then DECIDING
    #: R7, waits for nothing; then READING_KAFKA_OFFSETS or READING_OFFSETS, or CHECKING_ROOT or CLAIMING if claims come
    #: first
    DECIDING = auto()
    #: R8, waits for the offsets in Kafka; then READING_OFFSETS with dual commit, or CHECKING_SHUTDOWN
    READING_KAFKA_OFFSETS = auto()
    READING_OFFSETS = auto()  #: R8, waits for the offsets in ZooKeeper; then CHECKING_SHUTDOWN
    #: R9, waits for nothing: fails if the member is closing; then CHECKING_ROOT or CLAIMING, or OWNING if claims came
    #: first
    CHECKING_SHUTDOWN = auto()
    CHECKING_ROOT = auto()  #: R11 of 1.1, waits for `exists /`, once; then CLAIMING
    #: R11, waits for one create of an owner node; then BUMPING_EPOCH or COUNTING, or CHECKING_CLAIM if it exists
    CLAIMING = auto()
    CHECKING_CLAIM = auto()  #: R11, waits for the data of an owner node that exists; then BUMPING_EPOCH or COUNTING
    #: R11, waits for a new version of the claimed partition's epoch node; then COUNTING, or MAKING_EPOCH without one
    BUMPING_EPOCH = auto()
    #: R11, waits for the create of the epoch node; then COUNTING, or BUMPING_EPOCH if it exists by now
    MAKING_EPOCH = auto()
    #: R11, waits for nothing; then CLAIMING for the next partition, and in the end ROLLING_BACK after a conflict, or
    #: OWNING (READING_KAFKA_OFFSETS, READING_OFFSETS if offsets come after claims)
    COUNTING = auto()
    #: R11, waits for the deletes of what was claimed, and fails; checked release: for the data, then
    #: ROLLING_BACK_CHECKED
    ROLLING_BACK = auto()
    ROLLING_BACK_CHECKED = auto()  #: R11, waits for the deletes of the nodes that are ours, and fails
    OWNING = auto()  #: R12, waits for nothing: the claims are ours to release; then NOTIFYING_ASSIGNED or ADOPTING
    NOTIFYING_ASSIGNED = auto()  #: R12, waits for the listener, called as in 1.1; then ADOPTING
    ADOPTING = auto()  #: R12, waits until each partition has its stream; then STARTING
    STARTING = auto()  #: R12, waits for the fetchers to start; then IDLE
    GIVING_UP = auto()  #: the attempt failed, waits until nothing is fetched; then BACKING_OFF
    BACKING_OFF = auto()  #: waits for the backoff; then the next attempt, or IDLE when all are used up
    LOOKING = auto()  #: all attempts failed, waits for the owners of our part; then IDLE, or a rebalance
    PAUSING = auto()  #: disconnected, waits for the listener; then IDLE, and nothing is delivered
    RESUMING = auto()  #: connected again, waits for the listener and for the fetchers to start; then IDLE
    CLOSING = auto()  #: waits for fetchers, streams and the last commit; then CLOSING_SESSION
    CLOSING_SESSION = auto()  #: waits for the end of the session; then CLOSED
    CLOSED = auto()  #: final


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one attempt has read and done so far."""

    number: int = 1
    broker_names: tuple[str, ...] = ()
    own: Registration | None = None  #: our registration as ZooKeeper has it
    topics: Mapping[str, int] = field(default_factory=_empty)  #: {topic: streams}, ours, a pattern's too
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=_empty)
    unread: tuple[str, ...] = ()  #: members whose nodes are still to be read
    unmatched: tuple[str, ...] = ()  #: members whose pattern still needs the names of all topics
    members_listed: bool = False  #: whether the last getChildren of R6 is done, or left to another step
    registrations: Mapping[str, Registration] = field(default_factory=_empty)
    #: {member: {topic: streams}} of the members read so far
    subscriptions: Mapping[str, Mapping[str, int]] = field(default_factory=_empty)
    left_out: tuple[str, ...] = ()  #: for each member left out, why its node could not be read
    stored: Mapping[TopicPartition, int] = field(default_factory=_empty)  #: offsets from Kafka
    claims: tuple[Claim, ...] = ()  #: our part, in the order in which it is claimed
    claiming: int = 0  #: index of the next claim
    claimed: tuple[Claim, ...] = ()
    conflicts: tuple[Claim, ...] = ()
    deletes: tuple[Request, ...] = ()  #: of owner nodes that passed the check
    spared: tuple[str, ...] = ()  #: owner nodes that failed the check: not ours
    outcome: str = ""  #: how the attempt failed, for `attempt_ended`
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One member between two events."""

    config: RebalanceConfig
    state: RebalanceState = RebalanceState.IDLE
    triggered: bool = False  #: the merged trigger flag
    triggered_by: str = ""
    triggered_cause: str = ""
    demands: tuple[RebalanceDemanded, ...] = ()  #: queued behind the running rebalance, as on the original's lock
    closing: bool = False
    owned: tuple[Claim, ...] = ()  #: the topic registry: what R5 releases
    #: stream -> what it may deliver; unlike the registry it survives an expired session
    delivering: Delivering = field(default_factory=_empty)
    ticket: int | None = None  #: of the demand that is being served, if any
    cause: str = ""  #: of the running rebalance: the change that triggered it, as the trace names causes
    attempt: Attempt = field(default_factory=Attempt)
    #: member -> whether it had a pattern when it was last read: decides which reads can be sent together
    wildcards: Mapping[str, bool] = field(default_factory=_empty)
    root_checked: bool = False  #: whether `exists /` was sent (1.1)
    connected: bool = True  #: kept up to date, and used, only with stop_on_disconnect
    held: Delivering = field(default_factory=_empty)  #: what was delivered when the connection broke
    unnotified: Delivering = field(default_factory=_empty)  #: stopped since then, and not yet reported to the listener
    reminders: int = 0  #: how many were requested; the last token
    quiet_token: int = 0  #: of the reminder that ends the wait for a quiet group; 0: no wait
    retry_token: int = 0  #: of the reminder to look for a free part; 0: none
