"""The runner's client of the cluster: topics, the group's coordinator, records, offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.consumers import CONSUMERS, commits_of
from comparison.topic_admin import TopicAdmin, partitions_led
from kernel.client.bootstrap import addresses
from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.client.reads import LATEST, list_offset
from kernel.errors import Unavailable
from kernel.runtime import REAL
from kernel.waiting import until
from kernel.wire.errors import error_name
from kernel.wire.versions import Api

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator.membership.effects import Identity
    from kernel.client.connection import BrokerConnection
    from kernel.clock import Clock
    from kernel.values import TopicPartition

_READY_S = 60.0
_TIMEOUT_MS = 10_000
#: The number of group names to try until one hashes to the wanted broker (a coin toss each).
_GROUP_NAMES = 40


class ClusterAccess:
    """Client and producer of a run; create it with `open`."""

    def __init__(self, client: ClusterClient, clock: Clock) -> None:
        self._client = client
        self._producer = Producer(client, clock=clock)

    @classmethod
    async def open(cls, bootstrap: str, clock: Clock = REAL.clock) -> ClusterAccess:
        """Connect; `clock` is that of the records' timestamps. Raises `Unavailable` when no broker answers."""
        client = ClusterClient(addresses(bootstrap), "rebalance-lab")
        try:
            await client.refresh([])
        except Unavailable:
            await client.close()
            raise
        return cls(client, clock)

    @property
    def client(self) -> ClusterClient:
        return self._client

    async def close(self) -> None:
        await self._producer.close()
        await self._client.close()

    async def send(self, tp: TopicPartition, value: bytes) -> int:
        """Produce a record; its offset. Follows a change of leader."""
        return await self._producer.send(tp, value)

    async def partitions_of(self, topic: str, *, create: bool) -> list[TopicPartition]:
        """Wait for each partition of a topic to have a leader; the partitions. Raises `Unavailable`."""
        return await partitions_led(self._client, topic, create=create)

    async def create_topic(self, topic: str, replicas: Sequence[Sequence[int]]) -> None:
        """Create a topic with these replicas of each partition, the leader first, and wait for the leaders."""
        connection = await self._client.any_connection()
        body = {
            "topics": [
                {
                    "name": topic,
                    "num_partitions": -1,
                    "replication_factor": -1,
                    "assignments": [
                        {"partition_index": number, "broker_ids": tuple(nodes)} for number, nodes in enumerate(replicas)
                    ],
                }
            ],
            "timeout": _TIMEOUT_MS,
        }

        async def answered() -> str:
            answer = await connection.call(Api.CreateTopics, body)
            error = error_name(answer.topics[0].error_code) or "NONE"
            # A broker that has just started may not know the others yet.
            return "" if error == "INVALID_REPLICA_ASSIGNMENT" else error

        error = await until(
            answered, _READY_S, f"the brokers to know each other, to create topic {topic!r}", every_s=0.1
        )
        if error not in ("NONE", "TOPIC_ALREADY_EXISTS"):
            raise Unavailable(f"topic {topic!r} could not be created: {error}")
        await self.partitions_of(topic, create=False)

    async def create_partitions(self, topic: str, count: int, replicas: Sequence[Sequence[int]]) -> None:
        """Grow a topic to `count` partitions, the new ones with these replicas, and wait for their leaders."""
        body = {
            "topics": [{"name": topic, "count": count, "assignments": [{"broker_ids": tuple(n)} for n in replicas]}],
            "timeout": _TIMEOUT_MS,
            "validate_only": False,
        }
        asked_before = False

        async def answered() -> str:
            nonlocal asked_before
            connection = await self._client.any_connection()
            answer = await connection.call(Api.CreatePartitions, body)
            error = error_name(answer.results[0].error_code) or "NONE"
            if error == "REQUEST_TIMED_OUT":
                # The controller may be reconnecting to ZooKeeper: Kafka's admin client asks again, too.
                asked_before = True
                return ""
            return "NONE" if asked_before and error == "INVALID_PARTITIONS" else error  # the first request did it

        error = await until(answered, _READY_S, f"the controller to grow topic {topic!r}", every_s=0.1)
        if error != "NONE":
            raise Unavailable(f"topic {topic!r} could not be grown to {count} partitions: {error}")
        await partitions_led(self._client, topic, count=count)

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its records. Raises `TopicRefused` and `Unavailable`."""
        await TopicAdmin(self._client).delete(topic)

    async def group_coordinated_by(self, node_id: int) -> str:
        """A group name that this broker coordinates."""
        for number in range(_GROUP_NAMES):
            name = f"lab-{number}"
            if await self.coordinator(name) == node_id:
                return name
        raise Unavailable(f"no group name of {_GROUP_NAMES} is coordinated by broker {node_id}")

    async def coordinator(self, group: str) -> int:
        """Wait for the group to have a coordinator; its node id."""

        async def found() -> int:
            connection = await self._client.any_connection()
            answer = await connection.call(Api.FindCoordinator, {"key": group, "key_type": 0}, version=1)
            return 0 if error_name(answer.error_code) else int(answer.node_id)

        return await until(found, _READY_S, f"a coordinator of group {group!r}", every_s=0.1)

    async def commit_as(
        self, group: str, identity: Identity, offsets: Mapping[TopicPartition, int], design: str
    ) -> dict[str, str]:
        """Commit as this member of the design; the error name for each partition, '' if accepted."""
        connection = await self._client.connection(await self.coordinator(group))
        answered = await CONSUMERS[design].commits(group).commit(connection, identity, offsets)
        return {str(tp): error for tp, error in answered.items()}

    async def committed(self, group: str, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets committed with the coordinator, or NO_OFFSET. Raises `WaitTimeout`."""
        calls = commits_of(group)
        found: dict[TopicPartition, int] = {}
        said = ""

        async def read() -> bool:
            nonlocal found, said
            try:
                await self._client.refresh([])
                connection = await self._client.connection(await self.coordinator(group))
                said, found = await calls.committed(connection, partitions)
            except Unavailable as error:
                said = str(error)
            return not said

        await until(read, _READY_S, lambda: f"the offsets of group {group!r} ({said})", every_s=0.1)
        return found

    async def ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The log end of each partition, once each has a leader that knows it. Raises `WaitTimeout`."""
        found: dict[TopicPartition, int] = {}
        said = ""

        async def known() -> bool:
            nonlocal said
            try:
                said = await self._read_ends([tp for tp in partitions if tp not in found], found)
            except Unavailable as error:
                said = str(error)
            return len(found) == len(partitions)

        await until(known, _READY_S, lambda: f"the log end of every partition ({said})", every_s=0.1)
        return found

    async def _read_ends(self, partitions: Sequence[TopicPartition], found: dict[TopicPartition, int]) -> str:
        """Add those that can be read now to `found`; why another one could not, '' if all could."""
        await self._client.refresh(sorted({tp.topic for tp in partitions}))
        leaders = {tp: self._client.leader_of(tp) for tp in partitions}
        said = next((f"{tp} has no leader" for tp, leader in leaders.items() if leader is None), "")
        for node_id in sorted({leader for leader in leaders.values() if leader is not None}):
            connection: BrokerConnection = await self._client.connection(node_id)
            led = {tp: LATEST for tp, leader in leaders.items() if leader == node_id}
            for tp, (error, offset) in (await list_offset(connection, led)).items():
                if error:
                    said = f"{tp}: {error}"
                else:
                    found[tp] = offset
        return said
