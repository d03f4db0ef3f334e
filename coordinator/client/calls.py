"""The group's requests as typed calls: the only place that names a member's wire fields.

Each raises what `BrokerConnection.call` raises, and returns Kafka's error name ('' for success) and values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from coordinator.membership.classic.events import GroupMember, Joined
from coordinator.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kernel.values import NO_OFFSET, TopicPartition, by_topic
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator.membership.effects import Identity
    from kernel.client.connection import BrokerConnection

#: JoinGroup and SyncGroup may be parked for the whole rebalance timeout; Kafka's client adds 5 s.
PARKED_EXTRA_MS = 5_000
#: Of OffsetFetch, as in Kafka's consumer: no offset that an open transaction may change (KIP-447).
REQUIRE_STABLE = True


class CommitCalls(Protocol):
    """A design's commit request: returns {partition: error}, raises what `BrokerConnection.call` raises."""

    async def commit(
        self, connection: BrokerConnection, identity: Identity, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, str]: ...


class FoundCoordinator(NamedTuple):
    """The response to FindCoordinator; `message` is the broker's, from version 1 on."""

    error: str
    node_id: int
    host: str
    port: int
    message: str = ""


class JoinResponse(NamedTuple):
    """The response to JoinGroup; `member_id` is also set with MEMBER_ID_REQUIRED."""

    error: str
    member_id: str
    generation: int
    protocol: str
    leader: str
    members: tuple[GroupMember, ...]
    skip_assignment: bool  #: for a static leader that returned: the assignment stays (KIP-814)

    def as_event(self, stamp: int) -> Joined:
        """Return the member's event for a response without an error."""
        return Joined(
            stamp,
            self.member_id,
            self.generation,
            self.protocol,
            self.leader,
            self.members,
            self.skip_assignment,
        )


async def find_coordinator(connection: BrokerConnection, group: str, *, timeout_ms: int) -> FoundCoordinator:
    """Look up the group's coordinator; any broker knows it."""
    body = {"key": group, "key_type": 0}
    version = min(3, connection.version_of(Api.FindCoordinator))
    answer = await connection.call(Api.FindCoordinator, body, version=version, timeout_ms=timeout_ms, group=group)
    message = getattr(answer, "error_message", None) or ""
    return FoundCoordinator(error_name(answer.error_code), answer.node_id, answer.host, answer.port, message)


@dataclass(frozen=True, slots=True)
class GroupCalls:
    """One group's requests; each takes the connection, since the coordinator can move."""

    group: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    request_timeout_ms: int
    instance_id: str | None = None  #: of a static member (KIP-345)

    async def join(self, connection: BrokerConnection, member_id: str, protocols: Mapping[str, bytes]) -> JoinResponse:
        """Join; `protocols` is {name: subscription bytes} in order of preference."""
        body = {
            "group_id": self.group,
            "session_timeout": self.session_timeout_ms,
            "rebalance_timeout": self.rebalance_timeout_ms,
            "member_id": member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": CONSUMER_PROTOCOL_TYPE,
            "protocols": [{"name": name, "metadata": metadata} for name, metadata in protocols.items()],
        }
        answer = await connection.call(Api.JoinGroup, body, timeout_ms=self._parked_ms, group=self.group)
        members = tuple(
            GroupMember(member.member_id, getattr(member, "group_instance_id", None), member.metadata)
            for member in answer.members
        )
        return JoinResponse(
            error_name(answer.error_code),
            answer.member_id,
            answer.generation_id,
            answer.protocol_name or "",
            answer.leader,
            members,
            getattr(answer, "skip_assignment", False),
        )

    async def sync(
        self, connection: BrokerConnection, identity: Identity, protocol: str, assignments: Mapping[str, bytes]
    ) -> tuple[str, bytes]:
        """Sync; returns (error, our assignment's bytes). Only a leader passes assignments."""
        body = {
            "group_id": self.group,
            "generation_id": identity.generation,
            "member_id": identity.member_id,
            "group_instance_id": self.instance_id,
            "protocol_type": CONSUMER_PROTOCOL_TYPE,
            "protocol_name": protocol,
            "assignments": [{"member_id": member, "assignment": data} for member, data in assignments.items()],
        }
        answer = await connection.call(Api.SyncGroup, body, timeout_ms=self._parked_ms, group=self.group)
        return error_name(answer.error_code), answer.assignment

    async def heartbeat(self, connection: BrokerConnection, identity: Identity) -> str:
        body = {
            "group_id": self.group,
            "generation_id": identity.generation,
            "member_id": identity.member_id,
            "group_instance_id": self.instance_id,
        }
        answer = await connection.call(Api.Heartbeat, body, timeout_ms=self.request_timeout_ms, group=self.group)
        return error_name(answer.error_code)

    async def leave(self, connection: BrokerConnection, member_id: str, *, timeout_ms: int) -> str:
        """Leave; versions 0 to 2 name one member at the top level, later ones a list (KIP-345)."""
        body = {
            "group_id": self.group,
            "member_id": member_id,
            "members": [{"member_id": member_id, "group_instance_id": self.instance_id}],
        }
        answer = await connection.call(Api.LeaveGroup, body, timeout_ms=timeout_ms, group=self.group)
        errors = [answer.error_code, *(member.error_code for member in getattr(answer, "members", ()))]
        return next((error_name(code) for code in errors if code != ErrorCode.none), "")

    async def commit(
        self,
        connection: BrokerConnection,
        identity: Identity,
        offsets: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, str]:
        """Commit; returns {partition: error}. Uses version 8 at most, since 9 has KIP-848's errors."""
        body = commit_body(self.group, self.instance_id, identity, offsets)
        version = min(8, connection.version_of(Api.OffsetCommit))
        answer = await connection.call(
            Api.OffsetCommit,
            body,
            version=version,
            timeout_ms=self.request_timeout_ms,
            group=self.group,
        )
        return commit_errors(answer, offsets)

    async def committed(
        self, connection: BrokerConnection, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> tuple[str, dict[TopicPartition, int]]:
        """Fetch committed offsets: (error, {partition: offset or NO_OFFSET}).

        Uses version 7 at most, the last for a single group (KIP-709).
        """
        wanted = tuple(partitions)
        body = {
            "group_id": self.group,
            "topics": topics_to_fetch(wanted),
            "require_stable": REQUIRE_STABLE,
        }
        version = min(7, connection.version_of(Api.OffsetFetch))
        answer = await connection.call(
            Api.OffsetFetch,
            body,
            version=version,
            timeout_ms=self._bounded(timeout_ms),
            group=self.group,
        )
        return fetched_offsets(answer, wanted)

    def _bounded(self, timeout_ms: int | None) -> int:
        return self.request_timeout_ms if timeout_ms is None else min(timeout_ms, self.request_timeout_ms)

    @property
    def _parked_ms(self) -> int:
        return max(self.request_timeout_ms, self.rebalance_timeout_ms + PARKED_EXTRA_MS)


def commit_body(
    group: str, instance_id: str | None, identity: Identity, offsets: Mapping[TopicPartition, int]
) -> dict[str, Any]:
    """OffsetCommit of any version."""
    return {
        "group_id": group,
        "generation_id_or_member_epoch": identity.generation,
        "member_id": identity.member_id,
        "group_instance_id": instance_id,
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {
                        "partition_index": tp.partition,
                        "committed_offset": offsets[tp],
                        "committed_leader_epoch": -1,
                        "committed_metadata": "",
                    }
                    for tp in partitions
                ],
            }
            for topic, partitions in by_topic(offsets).items()
        ],
    }


def commit_errors(answer: Any, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, str]:
    """{partition: error} in a response to OffsetCommit."""
    errors = {
        TopicPartition(topic.name, partition.partition_index): error_name(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
    }
    return {tp: errors.get(tp, "UNKNOWN_SERVER_ERROR") for tp in offsets}


def topics_to_fetch(partitions: Iterable[TopicPartition]) -> list[dict[str, Any]]:
    """The topics of a request for committed offsets."""
    return [
        {"name": topic, "partition_indexes": [tp.partition for tp in of_topic]}
        for topic, of_topic in by_topic(partitions).items()
    ]


def fetched_offsets(answer: Any, wanted: Iterable[TopicPartition]) -> tuple[str, dict[TopicPartition, int]]:
    """(error, {partition: offset or NO_OFFSET}) in a response to OffsetFetch, or in its part for one group."""
    error = error_name(getattr(answer, "error_code", ErrorCode.none))
    found = dict.fromkeys(wanted, NO_OFFSET)
    for topic in answer.topics:
        for partition in topic.partitions:
            error = error or error_name(partition.error_code)
            found[TopicPartition(topic.name, partition.partition_index)] = partition.committed_offset
    return error, found
