"""Requests to groups of the `consumer` design as values, and the settings that they are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.consumer.member import NO_TIMEOUT

if TYPE_CHECKING:
    from coordinator.groups.partitions import Partitions, TopicId


class ConsumerHeartbeat(NamedTuple):
    """ConsumerGroupHeartbeat. None, or `NO_TIMEOUT`, is what has not changed since the last one."""

    token: int
    group_id: str
    member_id: str
    epoch: int
    client_id: str
    client_host: str
    fresh_id: str  #: of the member, if the coordinator has to make one: v0 only
    may_lack_id: bool = False  #: v0; since v1 (KIP-1082) the client makes its id
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = NO_TIMEOUT
    topics: tuple[str, ...] | None = None
    topic_regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    regex_problem: str | None = None  #: why `topic_regex` cannot be used
    bare_topics: tuple[TopicId, ...] = ()  #: named among what is owned, but without partitions

    @property
    def is_full(self) -> bool:
        """Whether the client tells all that it knows: when it joins, and after a failed request."""
        is_complete = self.rebalance_timeout_ms != NO_TIMEOUT and self.topics is not None and self.owned is not None
        return self.epoch == 0 or is_complete


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """Settings of the broker for groups of the `consumer` design (Kafka's names in the comments)."""

    session_timeout_ms: int = 45_000  # group.consumer.session.timeout.ms
    heartbeat_interval_ms: int = 5_000  # group.consumer.heartbeat.interval.ms
    members_max: int = 2_147_483_647  # group.consumer.max.size
    assignors: tuple[str, ...] = ("uniform", "range")  # group.consumer.assignors
    migration_policy: str = "bidirectional"  # group.consumer.migration.policy
    regex_refresh_ms: int = 600_000  # group.consumer.regex.refresh.interval.ms
    topics_refresh_ms: int = 600_000  # fixed in Kafka
    mended: frozenset[int] = frozenset()  # fix.kafka.*: the tickets whose faults 4.1.1 has and this broker has not
