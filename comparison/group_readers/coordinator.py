"""A group as its coordinator describes it: our broker, or a real one of 0.9 to 4.1.

Each reading sends DescribeGroups and OffsetFetch to the coordinator and one ListOffsets to each leader of a partition.
None of them counts as a sign of life of a member, and none is written anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from comparison.group_readers.cluster import LogEnds
from comparison.group_readers.columns import GroupSeen, Keeper, MemberRow, PartitionRow, PatternKind, Subscribed
from comparison.group_readers.idle_reasons import GroupFacts, no_coordinator
from coordinator.client.calls import find_coordinator
from coordinator.protocol.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    MalformedMetadata,
    decode_assignment,
    subscription_of,
)
from coordinator.protocol.server.commands import SERVER_PROTOCOL_TYPE
from kernel.errors import ConfigurationError, Unavailable
from kernel.values import NO_OFFSET, TopicPartition
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api, negotiated

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from coordinator.client.calls import FoundCoordinator
    from kernel.client.client import ClusterClient
    from kernel.client.connection import BrokerConnection

_TIMEOUT_MS = 10_000
_DEAD = "Dead"
#: The version of OffsetFetch that can ask for all offsets of a group (0.10.2).
_ALL_OFFSETS_SINCE = 2
#: Answers of a broker that does not coordinate the group, or not yet.
_ELSEWHERE = frozenset(
    {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_LEADER_OR_FOLLOWER"}
)


@dataclass(frozen=True, slots=True)
class _Described:
    """A group's state and members."""

    state: str
    strategy: str
    members: tuple[MemberRow, ...]

    @property
    def topics(self) -> set[str]:
        """Those that members own, or subscribe to."""
        owned = {tp.topic for member in self.members for tp in member.owned}
        return owned.union(*(member.subscribed.topics for member in self.members))


class CoordinatorReader:
    """Reads one group again and again; the caller opens and closes the client."""

    def __init__(self, client: ClusterClient, group: str) -> None:
        self._client = client
        self._group = group
        self._ends = LogEnds(client)
        self._found: tuple[int, str] | None = None  #: the coordinator's id, and HOST:PORT (id)

    async def read(self) -> GroupSeen:
        """The group now. An unknown one is Dead, without members and offsets.

        Raises `ConfigurationError` if the cluster refuses for good; `Unavailable`, `ProtocolError`.
        """
        try:
            connection, coordinator = await self._coordinator()
            error, group = await self._described(connection)
            if not error:
                error, committed = await self._committed(connection, group.topics)
        except Unavailable:
            self._found = None  # the next reading looks it up again
            raise
        if error in _ELSEWHERE:
            self._found = None
            raise Unavailable(f"the coordinator {coordinator} answers {error}")
        if error:
            raise ConfigurationError(f"group {self._group!r} cannot be described: {error}")
        return await self._put_together(group, committed, coordinator)

    async def facts(self) -> GroupFacts:
        """The group, with what may keep its members from owning anything.

        Raises `ConfigurationError` if the cluster refuses for good; `ProtocolError`.
        """
        try:
            found = await self._lookup()
            facts = await lookup_facts(self._client, self._group, found)
            return facts if found.error else replace(facts, seen=await self.read())
        except Unavailable as error:
            return GroupFacts(group=self._group, unreachable=str(error))

    async def groups(self) -> set[str]:
        """The groups of all coordinators. Raises `Unavailable`, `ProtocolError`."""
        metadata = await self._client.refresh([])
        connections = [await self._client.connection(node_id) for node_id in metadata.brokers]
        body = {"states_filter": (), "types_filter": ()}
        answers = [await each.call(Api.ListGroups, body, timeout_ms=_TIMEOUT_MS) for each in connections]
        return {row.group_id for answer in answers for row in answer.groups}

    async def _put_together(
        self, group: _Described, committed: Mapping[TopicPartition, int], coordinator: str
    ) -> GroupSeen:
        owners = {tp: member for member in group.members for tp in member.owned}
        ends = await self._ends.read({*owners, *committed})
        rows = []
        for tp in sorted({*owners, *committed}):
            owner = owners.get(tp, MemberRow(member=""))
            rows.append(
                PartitionRow(
                    partition=tp,
                    current=committed.get(tp),
                    end=ends.get(tp),
                    owner=owner.member,
                    host=owner.host,
                    client=owner.client,
                )
            )
        return GroupSeen(
            group=self._group,
            keeper=Keeper.COORDINATOR,
            coordinator=coordinator,
            strategy=group.strategy,
            state=group.state,
            members=tuple(sorted(group.members, key=lambda member: member.member)),
            partitions=tuple(rows),
        )

    async def _lookup(self) -> FoundCoordinator:
        asked = await self._client.any_connection()
        return await find_coordinator(asked, self._group, timeout_ms=_TIMEOUT_MS)

    async def _coordinator(self) -> tuple[BrokerConnection, str]:
        if self._found is None:
            found = await self._lookup()
            if found.error:
                if found.error in _ELSEWHERE:
                    raise Unavailable(no_coordinator(await lookup_facts(self._client, self._group, found)))
                raise ConfigurationError(f"group {self._group!r} cannot be described: {found.error}")
            await self._client.refresh([])
            self._found = found.node_id, f"{found.host}:{found.port} ({found.node_id})"
        return await self._client.connection(self._found[0]), self._found[1]

    async def _described(self, connection: BrokerConnection) -> tuple[str, _Described]:
        version = min(5, connection.version_of(Api.DescribeGroups))  # 6 has an error for a group that is not there
        body = {"groups": (self._group,), "include_authorized_operations": False}
        answer = await connection.call(Api.DescribeGroups, body, version=version, timeout_ms=_TIMEOUT_MS)
        row = answer.groups[0]
        is_there = row.error_code is ErrorCode.none and row.group_state != _DEAD
        if not is_there and negotiated(Api.ConsumerGroupDescribe, connection.offered) is not None:
            modern = await self._described_as_modern(connection)
            if modern is not None:
                return "", modern
        return error_name(row.error_code), _classic(row)

    async def _described_as_modern(self, connection: BrokerConnection) -> _Described | None:
        """A group of KIP-848, which DescribeGroups does not show; None if there is none."""
        body = {"group_ids": (self._group,), "include_authorized_operations": False}
        answer = await connection.call(Api.ConsumerGroupDescribe, body, timeout_ms=_TIMEOUT_MS)
        row = answer.groups[0]
        return _modern(row) if row.error_code is ErrorCode.none else None

    async def _committed(
        self, connection: BrokerConnection, topics: Collection[str]
    ) -> tuple[str, dict[TopicPartition, int]]:
        """Every committed offset; of brokers before 0.10.2 those of `topics`, since they cannot be asked for all."""
        wanted = None
        if connection.version_of(Api.OffsetFetch) < _ALL_OFFSETS_SINCE:
            metadata = await self._client.refresh(sorted(topics)) if topics else self._client.metadata
            wanted = [TopicPartition(name, number) for name in topics for number in metadata.partitions_of(name)]
        return await _fetched(connection, self._group, wanted)


async def lookup_facts(client: ClusterClient, group: str, found: FoundCoordinator) -> GroupFacts:
    """What a lookup found, and the cluster's brokers and topics. Raises `Unavailable`."""
    metadata = await client.refresh()
    return GroupFacts(
        group=group,
        lookup_error=found.error,
        lookup_message=found.message,
        brokers=len(metadata.brokers),
        topics=metadata.sizes(),
    )


async def committed_offsets(
    client: ClusterClient, group: str, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """What a group has committed to Kafka of these partitions. Raises `Unavailable`, `ProtocolError`."""
    found = await find_coordinator(await client.any_connection(), group, timeout_ms=_TIMEOUT_MS)
    if found.error:
        raise Unavailable(f"group {group!r} has no coordinator: {found.error}")
    await client.refresh([])
    error, committed = await _fetched(await client.connection(found.node_id), group, partitions)
    if error:
        raise Unavailable(f"the coordinator {found.host}:{found.port} answers {error}")
    return committed


async def _fetched(
    connection: BrokerConnection, group: str, partitions: Sequence[TopicPartition] | None
) -> tuple[str, dict[TopicPartition, int]]:
    """(error, committed offsets) of these partitions, or of all."""
    wanted = None
    if partitions is not None:
        names = sorted({tp.topic for tp in partitions})
        wanted = [
            {"name": name, "partition_indexes": tuple(tp.partition for tp in partitions if tp.topic == name)}
            for name in names
        ]
    body = {"group_id": group, "topics": wanted, "require_stable": False}
    version = min(7, connection.version_of(Api.OffsetFetch))
    answer = await connection.call(Api.OffsetFetch, body, version=version, timeout_ms=_TIMEOUT_MS)
    found = {
        TopicPartition(topic.name, row.partition_index): row.committed_offset
        for topic in answer.topics
        for row in topic.partitions
        if row.error_code is ErrorCode.none and row.committed_offset != NO_OFFSET
    }
    return error_name(getattr(answer, "error_code", ErrorCode.none)), found


def _classic(row: Any) -> _Described:
    is_consumers = row.protocol_type in (CONSUMER_PROTOCOL_TYPE, SERVER_PROTOCOL_TYPE)
    members: list[MemberRow] = []
    for each in row.members:
        owned: tuple[TopicPartition, ...] = ()
        topics: tuple[str, ...] = ()
        if is_consumers:
            try:
                owned = tuple(sorted(decode_assignment(each.member_assignment).partitions))
            except MalformedMetadata:
                owned = ()
            topics = subscription_of(each.member_metadata).topics if each.member_metadata else ()
        members.append(
            MemberRow(
                member=each.member_id,
                instance=getattr(each, "group_instance_id", None) or "",
                host=each.client_host,
                client=each.client_id,
                owned=owned,
                subscribed=Subscribed(topics=tuple(sorted(topics))),
            )
        )
    return _Described(row.group_state, row.protocol_data, tuple(members))


def _modern(row: Any) -> _Described:
    members = [
        MemberRow(
            member=each.member_id,
            instance=each.instance_id or "",
            host=each.client_host,
            client=each.client_id,
            owned=tuple(
                sorted(
                    TopicPartition(part.topic_name, number)
                    for part in each.assignment.topic_partitions
                    for number in part.partitions
                )
            ),
            subscribed=Subscribed(
                topics=tuple(sorted(each.subscribed_topic_names)),
                pattern=each.subscribed_topic_regex or "",
                kind=PatternKind.RE2 if each.subscribed_topic_regex else None,
            ),
        )
        for each in row.members
    ]
    return _Described(row.group_state, row.assignor_name, tuple(members))
