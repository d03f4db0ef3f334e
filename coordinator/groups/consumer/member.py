"""A member of a group of the `consumer` design. Members are values: what changes is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.consumer.states import ConsumerMemberState
from coordinator.groups.partitions import NONE

if TYPE_CHECKING:
    from coordinator.groups.consumer_records import ClassicTerms
    from coordinator.groups.partitions import Partitions

JOINING = 0  #: the epoch of a member that joins
LEAVING = -1  #: the epoch of a member that leaves
LEAVING_FOR_A_WHILE = -2  #: the epoch of a static member that will be back
NO_TIMEOUT = -1  #: a rebalance timeout that a heartbeat leaves as it is
NEVER_RECONCILED = -1  #: the previous epoch of a member that has no assignment yet


class Subscription(NamedTuple):
    """What a member asks for."""

    topics: frozenset[str]
    regex: str


class ConsumerMember(NamedTuple):
    """Everything here is stored, in two records: what the client said, and where the member is.

    A tuple, because every heartbeat of a rebalance makes one: a frozen dataclass takes two to five times as long.
    """

    id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()  #: the subscribed names
    topic_regex: str = ""
    rebalance_timeout_ms: int = NO_TIMEOUT
    assignor: str | None = None  #: that the member prefers
    classic: ClassicTerms | None = None  #: of a member that uses the classic protocol

    epoch: int = JOINING
    previous_epoch: int = NEVER_RECONCILED
    state: ConsumerMemberState = ConsumerMemberState.STABLE
    assigned: Partitions = NONE  #: that it has, or has just been given
    revoking: Partitions = NONE  #: that it was asked to give up

    @property
    def subscription(self) -> Subscription:
        return Subscription(self.topics, self.topic_regex)

    def is_at(self, target_epoch: int) -> bool:
        """Whether it has the target of this epoch."""
        return self.state is ConsumerMemberState.STABLE and self.epoch == target_epoch
