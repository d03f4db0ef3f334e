"""A client that creates, grows, recreates, lists, describes and deletes topics, on our broker or a real one.

Source: the requests of Kafka's kafka-topics tool (TopicCommand of 3.9). CreateTopics, CreatePartitions and DeleteTopics
go to the controller, Metadata to any broker, ListOffsets to each partition's leader.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel.broker.settings.effective_configs import Source
from kernel.broker.settings.topic_configs import NOTES
from kernel.client.reads import EARLIEST, LATEST, list_offset
from kernel.errors import ProtocolError, Unavailable, UserError
from kernel.suggestions import did_you_mean
from kernel.values import TopicPartition
from kernel.waiting import WaitTimeout, until
from kernel.wire.errors import ErrorCode, error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from kernel.client.client import ClusterClient
    from kernel.client.connection import BrokerConnection

#: Timeout for the controller, in milliseconds.
TIMEOUT_MS = 10_000
#: Timeout for the election of a topic's leaders, in seconds.
LED_S = 60.0
#: How long leaders that do not know it yet are asked for offsets, in seconds.
OFFSETS_S = 2.0
LEADS_SOON = tuple(map(error_name, (ErrorCode.not_leader_or_follower, ErrorCode.unknown_topic_or_partition)))
NO_LEADER = -1
TOPIC = 2  #: ConfigResource.Type


class TopicRefused(UserError):
    """The cluster refused a request about a topic; the message has Kafka's name of the error."""


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """`leader` is -1 and the offsets are None while the partition has no leader."""

    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    begin_offset: int | None
    end_offset: int | None


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """A setting of the topic; `note` says how far this broker does not apply it, '' if it does."""

    name: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """`topic_id` is None from brokers that do not report it (Metadata before version 10)."""

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    settings: tuple[SettingDescription, ...] = ()


class TopicAdmin:
    """Requests about topics over a client that its caller opens and closes."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client

    async def create(
        self,
        name: str,
        *,
        partitions: int = -1,
        replication_factor: int = -1,
        configs: Mapping[str, str] | None = None,
    ) -> int:
        """Create a topic and wait for its leaders; its number of partitions. -1 means the broker's default.

        Raises `TopicRefused`, `Unavailable`, `ProtocolError`.
        """
        topic = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": replication_factor,
            "assignments": (),
            "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
        }
        connection = await self._controller()
        answer = await connection.call(
            Api.CreateTopics, {"topics": [topic], "timeout": TIMEOUT_MS, "validate_only": False}
        )
        _raise_if_refused(f"topic {name!r} was not created", _only(connection, Api.CreateTopics, answer.topics))
        return len(await partitions_led(self._client, name))

    async def settings(self, name: str) -> tuple[SettingDescription, ...]:
        """A topic's settings from the controller, which knows them right after `create`. Raises as `describe`."""
        return await _settings(await self._controller(), name)

    async def delete(self, name: str) -> None:
        """Delete a topic with all its records. Raises `TopicRefused`, `Unavailable`, `ProtocolError`."""
        connection = await self._controller()
        body = {"topic_names": (name,), "topics": ({"name": name, "topic_id": None},), "timeout": TIMEOUT_MS}
        answer = await connection.call(Api.DeleteTopics, body)
        await self._refuse(
            f"topic {name!r} was not deleted", name, _only(connection, Api.DeleteTopics, answer.responses)
        )

    async def add_partitions(self, name: str, more: int) -> int:
        """Add partitions to a topic and wait for their leaders; its number of partitions. Raises as `delete`."""
        connection = await self._controller()
        count = (await self._client.refresh([name])).sizes().get(name, 0) + more
        wanted = {"name": name, "count": count, "assignments": None}
        body = {"topics": [wanted], "timeout": TIMEOUT_MS, "validate_only": False}
        answer = await connection.call(Api.CreatePartitions, body)
        refused = f"topic {name!r} got no more partitions"
        await self._refuse(refused, name, _only(connection, Api.CreatePartitions, answer.results))
        return len(await partitions_led(self._client, name, count=count))

    async def recreate(self, name: str, *, partitions: int | None = None) -> int:
        """Delete a topic and create it again with its replicas and settings; its number of partitions.

        None: as many as it had. Raises as `delete` and `create`; after the latter the topic is gone.
        """
        before = await self.describe(name)
        await self.delete(name)

        async def gone() -> bool:
            return name not in (await self._client.refresh([name])).sizes()

        await until(gone, LED_S, f"topic {name!r} to be deleted")
        return await self.create(
            name,
            partitions=partitions or len(before.partitions),
            replication_factor=len(before.partitions[0].replicas),
            configs={setting.name: setting.value for setting in before.settings},
        )

    async def list(self) -> dict[str, int]:
        """{topic: number of partitions}, sorted by name, without internal topics. Raises `Unavailable`."""
        metadata = await self._client.refresh()
        sizes = metadata.sizes()
        return {name: sizes[name] for name in sorted(sizes) if name not in metadata.internal}

    async def describe(self, name: str) -> TopicDescription:
        """One topic with its leaders, replicas and offsets. Raises `TopicRefused`, `Unavailable`, `ProtocolError`."""
        await self._client.refresh([name])
        connection = await self._client.any_connection()
        body = {"topics": [{"name": name, "topic_id": None}], "allow_auto_topic_creation": False}
        version = min(12, connection.version_of(Api.Metadata))  # the last that every stock broker offers
        answer = await connection.call(Api.Metadata, body, version=version)
        topic = _only(connection, Api.Metadata, answer.topics)
        await self._refuse(f"topic {name!r} cannot be described", name, topic)
        leaders = {TopicPartition(name, row.partition_index): row.leader_id for row in topic.partitions}
        begins, ends = await self._offsets(leaders, EARLIEST), await self._offsets(leaders, LATEST)
        return TopicDescription(
            name=name,
            topic_id=getattr(topic, "topic_id", None),
            is_internal=topic.is_internal,
            partitions=tuple(
                PartitionDescription(
                    number=row.partition_index,
                    leader=row.leader_id,
                    replicas=tuple(row.replica_nodes),
                    in_sync=tuple(row.isr_nodes),
                    begin_offset=begins.get(TopicPartition(name, row.partition_index)),
                    end_offset=ends.get(TopicPartition(name, row.partition_index)),
                )
                for row in sorted(topic.partitions, key=lambda row: row.partition_index)
            ),
            settings=await _settings(connection, name),
        )

    async def _refuse(self, what: str, name: str, row: Any) -> None:
        """Raises `TopicRefused` if the row does, for an unknown topic with the one that may be meant."""
        if row.error_code != ErrorCode.unknown_topic_or_partition:
            _raise_if_refused(what, row)
            return
        meant = did_you_mean(name, await self.list()) or "."
        raise TopicRefused(f"{what}: {error_name(row.error_code)}{meant} `rebalance-lab topic list` lists them all")

    async def _offsets(self, leaders: Mapping[TopicPartition, int], at: int) -> dict[TopicPartition, int]:
        """The first (EARLIEST) or next (LATEST) offset of each partition with a leader.

        A broker that does not know yet that it leads a partition is asked again, as Kafka's admin client does.
        """
        asked: dict[TopicPartition, tuple[str, int]] = {}

        async def answered() -> bool:
            for leader in sorted(set(leaders.values()) - {NO_LEADER}):
                led = [tp for tp, node_id in leaders.items() if node_id == leader]
                asked.update(await self._offsets_at(leader, led, at))
            return all(error not in LEADS_SOON for error, _ in asked.values())

        with suppress(WaitTimeout):
            await until(answered, OFFSETS_S, "leaders to answer")
        return {tp: offset for tp, (error, offset) in asked.items() if not error}

    async def _offsets_at(
        self, leader: int, led: Sequence[TopicPartition], at: int
    ) -> dict[TopicPartition, tuple[str, int]]:
        try:
            connection = await self._client.connection(leader)
            return await list_offset(connection, dict.fromkeys(led, at))
        except Unavailable:
            return {}  # it has just gone: its partitions are shown without offsets

    async def _controller(self) -> BrokerConnection:
        """The controller, which alone creates and deletes topics in a ZooKeeper cluster; else any broker."""
        metadata = await self._client.refresh([])
        if metadata.controller_id in metadata.brokers:
            return await self._client.connection(metadata.controller_id)
        return await self._client.any_connection()


async def partitions_led(
    client: ClusterClient, topic: str, *, create: bool = False, count: int = 1
) -> list[TopicPartition]:
    """Wait for every partition of a topic, and for `count` of them, to have a leader; the partitions.

    `create` allows automatic creation. Raises `Unavailable` after `LED_S` seconds.
    """

    async def led() -> list[TopicPartition]:
        metadata = await client.refresh([topic], create=create)
        found = [TopicPartition(topic, number) for number in metadata.partitions_of(topic)]
        return found if len(found) >= count and all(client.leader_of(tp) is not None for tp in found) else []

    return await until(led, LED_S, f"topic {topic!r} to have a leader for every partition")


async def _settings(connection: BrokerConnection, name: str) -> tuple[SettingDescription, ...]:
    """The topic's settings; none from a broker before 0.11, which cannot describe them."""
    if Api.DescribeConfigs not in connection.offered:
        return ()
    resource = {"resource_type": TOPIC, "resource_name": name, "configuration_keys": None}
    body = {"resources": [resource], "include_synonyms": False, "include_documentation": True}
    answer = _only(connection, Api.DescribeConfigs, (await connection.call(Api.DescribeConfigs, body)).results)
    _raise_if_refused(f"the settings of topic {name!r} cannot be described", answer)
    return tuple(
        SettingDescription(row.name, row.value or "", _note(getattr(row, "documentation", None) or ""))
        for row in sorted(answer.configs, key=lambda row: row.name)
        if row.config_source == Source.TOPIC
    )


def _only(connection: BrokerConnection, api: Api, rows: Sequence[Any]) -> Any:
    """The row about the one topic that was asked about. Raises `ProtocolError`."""
    if len(rows) != 1:
        raise ProtocolError(
            f"{connection.host}:{connection.port} answered {api.name} with nonsense: {len(rows)} rows about one topic"
        )
    return rows[0]


def _note(documentation: str) -> str:
    """The note that our broker appends to a setting's documentation when it does not fully apply it."""
    return next((note for note in NOTES.values() if documentation.endswith(f"({note})")), "")


def _raise_if_refused(what: str, row: Any) -> None:
    if row.error_code != ErrorCode.none:
        message = getattr(row, "error_message", None)
        raise TopicRefused(f"{what}: {error_name(row.error_code)}{f' ({message})' if message else ''}")
