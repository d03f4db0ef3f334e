"""A broker that receives mutated frames, and an undisturbed twin: both serve the same workload and must end in the same
state.

`blast` sends each frame over its own socket; `Workload` is a well-behaved client of both brokers meanwhile; `state_of`
returns their state afterwards.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections.abc import Sequence
from typing import Any

from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.client.reads import EARLIEST, LATEST, fetch, list_offset
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.hostile.mutated_frames import MutatedFrame
from tests.support.brokers.limited import LimitedBroker
from tests.support.consumers.consuming import Running
from tests.support.consumers.eager import eager, generation_of

TOPIC, PARTITIONS, GROUP, BYSTANDERS = "kept", 2, "kept", "bystanders"
#: Concurrent connections, and how long to wait for an answer.
AT_ONCE, PATIENCE_S = 32, 20.0


def blast(port: int, frames: Sequence[MutatedFrame]) -> list[bytes]:
    """The bytes received for each frame until the broker closed its connection. Fails if it keeps one open.

    Each client sends its frame and then FIN, so the broker cannot wait for the rest of an incomplete frame.
    """
    answers: list[bytes] = []
    for start in range(0, len(frames), AT_ONCE):
        answers += _blast(port, frames[start : start + AT_ONCE])
    return answers


def _blast(port: int, frames: Sequence[MutatedFrame]) -> list[bytes]:
    sockets = []
    for frame in frames:
        connection = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        try:
            connection.sendall(frame.data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:  # closed already: the broker need not read a refused frame to its end
            pass
        sockets.append(connection)
    received = dict.fromkeys(sockets, b"")
    open_ones = set(sockets)
    deadline = time.monotonic() + PATIENCE_S
    while open_ones:
        ready, _, _ = select.select(list(open_ones), [], [], max(deadline - time.monotonic(), 0))
        kept = [frame.name for frame, one in zip(frames, sockets, strict=True) if one in open_ones]
        assert ready, f"connections are kept open for {PATIENCE_S:g} s after {kept}"
        for connection in ready:
            try:
                data = connection.recv(65_536)
            except ConnectionError:
                data = b""
            received[connection] += data
            if not data:
                open_ones.discard(connection)
    for connection in sockets:
        connection.close()
    return [received[connection] for connection in sockets]


def check_broker(broker: LimitedBroker, what: str) -> None:
    """Check that it is running, and has logged no internal error."""
    assert broker.log is not None, "the log of a broker under fire is kept"
    log = broker.log.read_text()
    assert broker.process.returncode is None, f"ended with {broker.process.returncode} at {what}\n{log[-3000:]}"
    assert "Traceback" not in log, f"at {what}\n{log[-5000:]}"


class Workload:
    """Produces, commits, and keeps a group member, on one broker."""

    def __init__(self, broker: LimitedBroker) -> None:
        self.broker = broker
        self.client = ClusterClient([(broker.host, broker.port)], "workload")
        self.producer = Producer(self.client)
        self.member: Running = eager(f"{broker.host}:{broker.port}", BYSTANDERS)
        self.steps = 0
        self.generation = -1

    async def begin(self) -> None:
        connection = await self.client.any_connection()
        wanted = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
        answer = await connection.call(Api.CreateTopics, {"topics": [wanted], "timeout": 20_000})
        assert answer.topics[0].error_code is ErrorCode.none, answer
        await self.member.begin({TOPIC: 1})
        await until(lambda: len(self.member.owned) == PARTITIONS, 60, "the bystander to own its partitions")
        self.generation = generation_of(self.member)
        await until(self._coordinates, 30, f"a coordinator of {GROUP}")

    async def _coordinates(self) -> bool:
        connection = await self.client.any_connection()
        found = await connection.call(Api.FindCoordinator, {"key_type": 0, "coordinator_keys": [GROUP]}, version=4)
        return all(row.error_code is ErrorCode.none for row in found.coordinators)

    async def step(self) -> None:
        """Produce a record and commit."""
        tp = TopicPartition(TOPIC, self.steps % PARTITIONS)
        self.steps += 1
        offset = await self.producer.send(tp, b"%d" % self.steps, timestamp_ms=1_700_000_000_000 + self.steps)
        connection = await self.client.any_connection()
        partition = {"partition_index": tp.partition, "committed_offset": offset + 1, "committed_metadata": "kept"}
        body = {
            "group_id": GROUP,
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "topics": [{"name": TOPIC, "partitions": [partition]}],
        }
        answer = await connection.call(Api.OffsetCommit, body, version=8)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.none, answer

    async def check(self, what: str) -> None:
        """Check that the bystander is undisturbed and reads all records, and that the broker has logged no internal
        error.
        """
        check_broker(self.broker, what)
        member = self.member
        assert member.failure is None, f"at {what}: {member.failure}"
        assert generation_of(member) == self.generation, f"the bystander's group was rebalanced at {what}"
        assert [heard for heard, _, _ in member.listener.heard] == ["assigned"], f"at {what}: {member.listener.heard}"
        await until(
            lambda: len(member.records) == self.steps, 60, lambda: f"{self.steps} records, got {len(member.records)}"
        )

    async def end(self) -> None:
        await self.member.close()
        await self.producer.close()
        await self.client.close()


async def state_of(client: ClusterClient, *, of_all: bool) -> dict[str, Any]:
    """Topics, log ends, records, committed offsets and groups; all of them, or only those of the workload."""
    await client.refresh(None)
    connection = await client.any_connection()
    partitions = sorted(tp for tp in client.metadata.leaders if of_all or tp.topic == TOPIC)
    ends = await list_offset(connection, dict.fromkeys(partitions, LATEST))
    begins = await list_offset(connection, dict.fromkeys(partitions, EARLIEST))
    state: dict[str, Any] = {"begins": begins, "ends": {tp: ends[tp] for tp in partitions if tp.topic[:2] != "__"}}
    for number in range(PARTITIONS):
        tp = TopicPartition(TOPIC, number)
        records: list[Any] = []
        while len(records) < ends[tp][1]:
            part = (await fetch(connection, {tp: len(records)}))[tp]
            assert part.records, f"{tp} has no record at {len(records)}: {part.error or part.corrupt}"
            records += part.records
        state[str(tp)] = [(record.offset, record.value, record.timestamp_ms) for record in records]
    fetched = await connection.call(Api.OffsetFetch, {"group_id": GROUP, "topics": None}, version=5)
    state["committed"] = sorted(
        (topic.name, one.partition_index, one.committed_offset, one.metadata)
        for topic in fetched.topics
        for one in topic.partitions
    )
    if of_all:
        groups = await connection.call(Api.ListGroups, {}, version=4)
        state["groups"] = sorted((group.group_id, group.group_state) for group in groups.groups)
    return state


async def in_turns(workloads: Sequence[Workload], what: str) -> None:
    """One step of each workload, and its checks."""
    await asyncio.gather(*(workload.step() for workload in workloads))
    await asyncio.gather(*(workload.check(what) for workload in workloads))
