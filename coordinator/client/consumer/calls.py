"""The requests of a KIP-848 member as typed calls. Each raises what `BrokerConnection.call` raises.

Commits and lookups of offsets carry the member's epoch, which only version 9 of both requests can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.client.calls import REQUIRE_STABLE, commit_body, commit_errors, fetched_offsets, topics_to_fetch
from kernel.clock import milliseconds
from kernel.values import by_topic
from kernel.wire.errors import error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from coordinator.membership.consumer.effects import SendHeartbeat
    from coordinator.membership.effects import Identity
    from kernel.client.connection import BrokerConnection
    from kernel.values import TopicPartition

#: {topic id: partitions} as in ConsumerGroupHeartbeat.
ById = dict["UUID", tuple[int, ...]]


class HeartbeatResponse(NamedTuple):
    """The response to ConsumerGroupHeartbeat; an assignment is the whole target, None an unchanged one."""

    error: str
    epoch: int
    interval_ms: int
    assignment: ById | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kip848Calls:
    """One group's requests; each takes the connection, since the coordinator can move."""

    group: str
    request_timeout_ms: int
    instance_id: str | None = None

    async def heartbeat(
        self,
        connection: BrokerConnection,
        effect: SendHeartbeat,
        ids: Mapping[str, UUID],
        *,
        timeout_ms: int | None = None,
    ) -> HeartbeatResponse:
        """Send a heartbeat; `ids` are those of the topics that the member owns."""
        body: dict[str, Any] = {
            "group_id": self.group,
            "member_id": effect.member_id,
            "member_epoch": effect.epoch,
            "instance_id": effect.instance_id,
            "rack_id": None,
            "rebalance_timeout": effect.rebalance_timeout_ms,
            "subscribed_topic_names": None if effect.topics is None else sorted(effect.topics),
            "subscribed_topic_regex": effect.regex,
            "server_assignor": effect.server_assignor,
            "topic_partitions": None if effect.owned is None else _owned(effect.owned, ids),
        }
        answer = await connection.call(
            Api.ConsumerGroupHeartbeat, body, timeout_ms=self._bounded(timeout_ms), group=self.group
        )
        given = answer.assignment
        return HeartbeatResponse(
            error_name(answer.error_code),
            answer.member_epoch,
            milliseconds(answer.heartbeat_interval),
            None if given is None else {part.topic_id: tuple(part.partitions) for part in given.topic_partitions},
        )

    async def commit(
        self,
        connection: BrokerConnection,
        identity: Identity,
        offsets: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, str]:
        """Commit; returns {partition: error}."""
        body = commit_body(self.group, self.instance_id, identity, offsets)
        answer = await connection.call(
            Api.OffsetCommit, body, version=9, timeout_ms=self.request_timeout_ms, group=self.group
        )
        return commit_errors(answer, offsets)

    async def committed(
        self,
        connection: BrokerConnection,
        identity: Identity | None,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> tuple[str, dict[TopicPartition, int]]:
        """Fetch committed offsets: (error, {partition: offset or NO_OFFSET}). Without an identity nothing is fenced."""
        wanted = tuple(partitions)
        part: dict[str, Any] = {"group_id": self.group, "topics": topics_to_fetch(wanted)}
        if identity is not None:
            part |= {"member_id": identity.member_id, "member_epoch": identity.generation}
        body = {"groups": [part], "require_stable": REQUIRE_STABLE}
        answer = await connection.call(
            Api.OffsetFetch, body, version=9, timeout_ms=self._bounded(timeout_ms), group=self.group
        )
        return fetched_offsets(answer.groups[0], wanted)

    def _bounded(self, timeout_ms: int | None) -> int:
        return self.request_timeout_ms if timeout_ms is None else min(timeout_ms, self.request_timeout_ms)


def _owned(partitions: Iterable[TopicPartition], ids: Mapping[str, UUID]) -> list[dict[str, Any]]:
    return [
        {"topic_id": ids[topic], "partitions": [tp.partition for tp in of_topic]}
        for topic, of_topic in by_topic(partitions).items()
    ]
