"""Reads `__consumer_offsets` from any broker, and sends requests whose records can be compared.

`python -m tests.support.coordinators.log PORT` sends them to the broker there, which has a topic `t` of two partitions,
and prints the records it wrote, as JSON: `tests/coordinator/service/offsets-topic-4.1.1.json` has those of a real
4.1.1.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple
from uuid import UUID

from aiokafka.record._crecords import DefaultRecordBatch

from kernel.records.records import headers_of
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.conversations.recorded_json import entries_text
from tests.support.wire.clients import WireConnection, wait_for_coordinator

TOPIC = "__consumer_offsets"
FETCH, LIST_OFFSETS = 13, 7
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


class Stored(NamedTuple):
    """One record of the topic; `value` None is a tombstone."""

    offset: int
    timestamp_ms: int
    leader_epoch: int
    key: bytes
    value: bytes | None


class OffsetsTopic:
    """Reads all partitions of the topic, each from its current end."""

    def __init__(self, connection: WireConnection, topic_id: UUID, partitions: int) -> None:
        self.connection = connection
        self.topic_id = topic_id
        self.positions = dict.fromkeys(range(partitions), 0)

    @classmethod
    async def of(cls, connection: WireConnection) -> OffsetsTopic:
        answer = await connection.send(Api.Metadata, 12, {"topics": [{"topic_id": UUID(int=0), "name": TOPIC}]})
        (topic,) = answer.topics
        assert topic.error_code is ErrorCode.none, topic
        return cls(connection, topic.topic_id, len(topic.partitions))

    async def fetched(self, partition: int, offset: int, **fields: Any) -> Any:
        """One partition's part of a Fetch answer."""
        one = {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20, "log_start_offset": -1}
        body = {
            "max_wait": 0,
            "min_bytes": 0,
            "max_bytes": 1 << 20,
            "isolation_level": 0,
            "session_id": 0,
            "session_epoch": -1,
            "topics": [{"topic_id": self.topic_id, "partitions": [one | fields]}],
            "forgotten_topics_data": [],
        }
        answer = await self.connection.send(Api.Fetch, FETCH, body)
        return answer.responses[0].partitions[0]

    async def offset_at(self, partition: int, timestamp: int) -> tuple[int, int]:
        """(offset, timestamp) of ListOffsets."""
        one = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": timestamp}
        body = {"replica_id": -1, "isolation_level": 0, "topics": [{"name": TOPIC, "partitions": [one]}]}
        answer = await self.connection.send(Api.ListOffsets, LIST_OFFSETS, body)
        found = answer.topics[0].partitions[0]
        assert found.error_code is ErrorCode.none, found
        return found.offset, found.timestamp

    async def new(self) -> list[Stored]:
        """The new records since the last call, partition by partition."""
        found: list[Stored] = []
        for partition in self.positions:
            while True:
                part = await self.fetched(partition, self.positions[partition])
                assert part.error_code is ErrorCode.none, part
                if not part.records:
                    break
                records = stored(part.records, self.positions[partition])
                found += records
                self.positions[partition] = records[-1].offset + 1
        return found


def stored(data: bytes, from_offset: int) -> list[Stored]:
    found = []
    for header, batch in headers_of(bytes(data)):
        assert header.producer_id == -1
        found += [
            Stored(r.offset, r.timestamp, header.leader_epoch, r.key, r.value)
            for r in DefaultRecordBatch(bytes(batch))
            if r.offset >= from_offset
        ]
    return found


def commit(group: str, offsets: Mapping[int, int], **fields: Any) -> dict[str, Any]:
    """The body of an OffsetCommit for partitions of `t`."""
    partitions = [
        {
            "partition_index": number,
            "committed_offset": offset,
            "committed_leader_epoch": number,
            "committed_metadata": "m" * number,
        }
        for number, offset in offsets.items()
    ]
    body: dict[str, Any] = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
    return body | {"topics": [{"name": "t", "partitions": partitions}]} | fields


def join(group: str, **fields: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout": 30_000,
        "rebalance_timeout": 20_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x00"}],
    } | fields


class Conversation:
    """Requests to a coordinator, and the records that it writes for each."""

    def __init__(self, connection: WireConnection, topic: OffsetsTopic) -> None:
        self._connection, self._topic = connection, topic
        self.members: list[str] = []
        self.written: dict[str, list[list[str | None]]] = {}

    async def forget_former(self) -> None:
        """Skip the records written so far."""
        await self._topic.new()

    async def ask(self, what: str, api: Api, version: int, body: Mapping[str, Any]) -> Any:
        """Send a request and read its records. Every request here must write some, or this times out."""
        answer = await self._connection.send(api, version, body)
        records: list[Stored] = []

        async def found() -> bool:
            records.extend(await self._topic.new())
            return bool(records)

        await until(found, 60, f"records of {what!r}")
        self.written[what] = [[self._plain(r.key), None if r.value is None else self._plain(r.value)] for r in records]
        return answer

    def _plain(self, data: bytes) -> str:
        """Replace what differs from run to run: member ids by a name of their length, times by zeros."""
        for number, member_id in enumerate(self.members):
            data = data.replace(member_id.encode(), b"<member %d>".ljust(len(member_id), b".") % number)
        return _without_times(data).hex()


def _without_times(data: bytes) -> bytes:
    """An offset's value, version 4, ends with its time and no tags; a group's, version 3, has it after the leader."""
    if data[:2] == b"\x00\x04":
        return data[:-9] + bytes(8) + data[-1:]
    if data[:2] == b"\x00\x03":
        at = 2
        for kind in "siss":
            length = int.from_bytes(data[at : at + 2], signed=True)
            at += 4 if kind == "i" else 2 + max(length, 0)
        return data[:at] + bytes(8) + data[at + 8 :]
    return data


async def converse(connection: WireConnection) -> dict[str, list[list[str | None]]]:
    """The records written for each request. Nothing else may write meanwhile."""
    await wait_for_coordinator(connection, "g", "s", "alone")
    talk = Conversation(connection, await OffsetsTopic.of(connection))
    await talk.forget_former()
    await talk.ask("commit of nobody in particular", Api.OffsetCommit, 8, commit("alone", {0: 5, 1: 2**40}))
    await talk.ask("commit again", Api.OffsetCommit, 8, commit("alone", {0: 6}))
    member_id = (await connection.send(Api.JoinGroup, 5, join("g"))).member_id
    talk.members.append(member_id)
    await talk.ask("first member", Api.JoinGroup, 5, join("g", member_id=member_id))
    me = {"group_id": "g", "generation_id": 1, "member_id": member_id}
    given = [{"member_id": member_id, "assignment": b"\x00\x01all"}]
    await talk.ask("assignment", Api.SyncGroup, 3, me | {"assignments": given})
    identity = {"generation_id_or_member_epoch": 1, "member_id": member_id}
    await talk.ask("commit of a member", Api.OffsetCommit, 8, commit("g", {1: 7, 0: 8}, **identity))
    await talk.ask("last member leaves", Api.LeaveGroup, 3, {"group_id": "g", "members": [{"member_id": member_id}]})
    deleted = [{"name": "t", "partitions": [{"partition_index": 1}]}]
    await talk.ask("offset deleted", Api.OffsetDelete, 0, {"group_id": "g", "topics": deleted})
    await talk.ask("group deleted", Api.DeleteGroups, 2, {"groups_names": ["g"]})
    static = join("s", group_instance_id="i-1")
    static_id = (await talk.ask("static member joins", Api.JoinGroup, 5, static)).member_id
    talk.members.append(static_id)
    me = {"group_id": "s", "generation_id": 1, "member_id": static_id, "group_instance_id": "i-1"}
    given = [{"member_id": static_id, "assignment": b""}]
    await talk.ask("its assignment", Api.SyncGroup, 3, me | {"assignments": given})
    return talk.written


async def main(port: int) -> None:
    connection = await WireConnection.open("127.0.0.1", port, "log")
    try:
        written = await converse(connection)
    finally:
        connection.close()
    sys.stdout.write(entries_text(written) + "\n")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
