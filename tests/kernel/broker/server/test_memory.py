"""Memory is bounded: clients that send half a request, or read no answer, cost at most the budgets.

The attacks run against a broker in another process, under a limit of its address space. A bystander's small requests
have to be answered all the while, and at the end a large one of a well-behaved client.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from kernel.client.client import ClusterClient
from kernel.client.connection import BrokerConnection, Disconnected
from kernel.client.reads import fetch
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire import codec
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.kernel.broker.apis.test_data_plane import produce
from tests.support.brokers.limited import LimitedBroker, limited_broker

T = TypeVar("T")

MIB = 1024 * 1024
TP = TopicPartition("t", 0)


class Scale(NamedTuple):
    """`stored_mib` is the size of a partition's records; `stall_s` is how long a client may stand still."""

    frame_mib: int
    requests_mib: int
    answers_mib: int
    stored_mib: int
    stall_s: float

    @property
    def settings(self) -> dict[str, str]:
        return {
            "socket.request.max.bytes": str(self.frame_mib * MIB),
            "queued.max.request.bytes": str(self.requests_mib * MIB),
            "queued.max.response.bytes": str(self.answers_mib * MIB),
            "offsets.topic.num.partitions": "1",
        }


SCALES = [
    pytest.param(Scale(frame_mib=8, requests_mib=24, answers_mib=16, stored_mib=12, stall_s=1.0), id="small"),
    # The defaults, and 20 clients with 99 of 100 MiB, 40 that ask for 55 MiB.
    pytest.param(
        Scale(frame_mib=100, requests_mib=200, answers_mib=128, stored_mib=60, stall_s=5.0),
        id="defaults",
        marks=pytest.mark.long,
    ),
]
#: What is allowed besides the budgets: one frame and one answer that are being processed, and the interpreter's
#: overhead.
SLACK_MIB = 48
#: What waiting fetches could hold.
WAITED_FOR_MIB = 40


@contextlib.asynccontextmanager
async def bystander(broker: LimitedBroker) -> AsyncIterator[BrokerConnection]:
    """Sends the same small request again and again; every one has to be answered."""
    connection = await BrokerConnection.open(broker.host, broker.port, "bystander")

    async def beat() -> None:
        while True:
            answer = await connection.call(
                Api.Heartbeat, {"group_id": "g", "generation_id": 1, "member_id": "m"}, version=3
            )
            assert answer.error_code in (ErrorCode.unknown_member_id, ErrorCode.not_coordinator)
            await asyncio.sleep(0.02)

    beating = asyncio.create_task(beat())
    try:
        yield connection
        assert not beating.done(), beating
    finally:
        beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beating
        connection.close()
        await connection.wait_closed()


async def filled(broker: LimitedBroker, mib: int) -> None:
    """Create a topic with so many MiB in one partition."""
    client = ClusterClient([(broker.host, broker.port)], "filler")
    try:
        await client.refresh(["t"], create=True)

        async def is_led() -> bool:
            await client.refresh(["t"])
            return client.leader_of(TP) is not None

        await until(is_led, 60, "the topic to be led")
        connection = await client.connection(1)
        records = build_batch([NewRecord(bytes(MIB - 1000), None, 0)])

        async def is_stored() -> bool:
            return await produce(connection, records) == ("", 0)

        await until(is_stored, 60, "the leader to take records")
        for _ in range(mib - 1):
            assert (await produce(connection, records))[0] == ""
    finally:
        await client.close()


class Attackers:
    """Raw connections that read nothing."""

    def __init__(self, broker: LimitedBroker) -> None:
        self._broker = broker
        self._writers: list[asyncio.StreamWriter] = []
        self._sending: list[asyncio.Task[None]] = []

    async def send(self, data: bytes) -> None:
        reader, writer = await asyncio.open_connection(self._broker.host, self._broker.port)
        reader._transport.pause_reading()  # type: ignore[attr-defined]  # asyncio has no public way to it
        self._writers.append(writer)
        self._sending.append(asyncio.create_task(self._send(writer, data)))

    @staticmethod
    async def _send(writer: asyncio.StreamWriter, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):
            for at in range(0, len(data), MIB):
                writer.write(data[at : at + MIB])
                await writer.drain()

    async def close(self) -> None:
        for task in self._sending:
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._sending, return_exceptions=True)


@contextlib.asynccontextmanager
async def attackers_of(broker: LimitedBroker) -> AsyncIterator[Attackers]:
    attackers = Attackers(broker)
    try:
        yield attackers
    finally:
        await attackers.close()


async def served(broker: LimitedBroker, request: Callable[[BrokerConnection], Awaitable[T]]) -> T:
    """What a well-behaved client is answered. It may be closed once as a slow one, because this process was paused."""
    for is_last in (False, True):
        connection = await BrokerConnection.open(broker.host, broker.port, "good", timeout_ms=60_000)
        try:
            return await request(connection)
        except Disconnected:
            if is_last:
                raise
        finally:
            connection.close()
            await connection.wait_closed()
    raise AssertionError("unreachable")


def play(scene: object) -> None:
    asyncio.run(asyncio.wait_for(scene, 300))  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", SCALES)
async def test_unfinished_requests_use_at_most_the_budget_and_are_ended(
    chroot: str, tmp_path: Path, scale: Scale
) -> None:
    async with limited_broker(chroot, tmp_path, scale.settings, stall_s=scale.stall_s) as broker:
        await filled(broker, 1)
        before = broker.peak_bytes()
        size = scale.frame_mib * MIB
        unfinished = struct.pack(">ihh", size, Api.Produce, 9) + bytes(size - MIB)
        async with attackers_of(broker) as attackers, bystander(broker):
            for _ in range(20):
                await attackers.send(unfinished)
            # Refused, because it is not a batch; but read as a whole while the others still hold their memory.
            answer = await served(broker, lambda connection: produce(connection, bytes(4 * MIB)))
            assert answer == ("INVALID_RECORD", -1)
        grown = broker.peak_bytes() - before
        print(f"unfinished requests: {grown / MIB:.0f} MiB")  # noqa: T201
        # For a moment there are two copies of one whole frame, when it is taken out of the receive buffer.
        assert grown < (scale.requests_mib + scale.frame_mib + SLACK_MIB) * MIB


@pytest.mark.parametrize("scale", SCALES)
async def test_unread_responses_use_at_most_the_budget_and_are_ended(chroot: str, tmp_path: Path, scale: Scale) -> None:
    async with limited_broker(chroot, tmp_path, scale.settings, stall_s=scale.stall_s) as broker:
        await filled(broker, scale.stored_mib)
        before = broker.peak_bytes()
        async with attackers_of(broker) as attackers, bystander(broker):
            for _ in range(40):
                await attackers.send(greedy_fetch(min_bytes=1))
            at = 0
            while at < scale.stored_mib:
                at = (await served(broker, lambda connection, at=at: fetch(connection, {TP: at})))[TP].next_offset
        grown = broker.peak_bytes() - before
        print(f"answers that no client reads: {grown / MIB:.0f} MiB")  # noqa: T201
        assert grown < (scale.answers_mib + min(scale.stored_mib, 55) + SLACK_MIB) * MIB


@pytest.mark.parametrize("scale", SCALES)
async def test_waiting_fetches_hold_no_records(chroot: str, tmp_path: Path, scale: Scale) -> None:
    async with limited_broker(chroot, tmp_path, scale.settings, stall_s=scale.stall_s) as broker:
        # Less than fetch.max.bytes: a fetch for which so much is stored is answered, whatever its min_bytes.
        await filled(broker, min(scale.stored_mib, WAITED_FOR_MIB))
        before = broker.peak_bytes()
        async with attackers_of(broker) as attackers, bystander(broker) as connection:
            for _ in range(20):
                await attackers.send(greedy_fetch(min_bytes=2**31 - 1, max_bytes=2**31 - 1))
            for _ in range(5):
                await produce(connection, build_batch([NewRecord(bytes(MIB // 2), None, 0)]))
        grown = broker.peak_bytes() - before
        print(f"fetches that wait: {grown / MIB:.0f} MiB")  # noqa: T201
        assert grown < SLACK_MIB * MIB


def greedy_fetch(*, min_bytes: int, max_bytes: int = 57_671_680) -> bytes:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": max_bytes}
    topics = [{"topic": "t", "partitions": [partition]}]
    body = {"max_wait": 100_000, "min_bytes": min_bytes, "max_bytes": max_bytes, "topics": topics}
    return codec.encode_request(Api.Fetch, 11, 1, "greedy", body)


@pytest.mark.parametrize("number", [1, 2])
async def test_unfinished_requests_of_honest_clients_are_all_served(chroot: str, tmp_path: Path, number: int) -> None:
    """More at once than fit, each in small pieces: one at a time is read to its end, and no connection is closed."""
    scale = Scale(frame_mib=4, requests_mib=4 * number, answers_mib=4, stored_mib=1, stall_s=60.0)
    async with limited_broker(chroot, tmp_path, scale.settings, stall_s=scale.stall_s) as broker:
        await filled(broker, 1)
        connections = [await BrokerConnection.open(broker.host, broker.port, f"c{n}") for n in range(10)]
        answers = await asyncio.gather(*(produce(connection, bytes(3 * MIB)) for connection in connections))
        assert answers == [("INVALID_RECORD", -1)] * 10
        for connection in connections:
            connection.close()
            await connection.wait_closed()
