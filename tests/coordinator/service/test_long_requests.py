"""Requests that take long to answer: a bystander's heartbeats are answered meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kernel.client.connection import BrokerConnection
from kernel.waiting import until
from kernel.wire.bounds import REQUEST_ELEMENTS_MAX
from kernel.wire.codec import decode_response, encode_request
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.limited import LimitedBroker, limited_broker
from tests.support.wire.frames import read_frame

#: The least number of heartbeats answered to a bystander during a long request; in one turn it would be one.
HEARTBEATS_MIN = 10
REPEATS_MAX = 10
#: Groups that are listed and described: in CI, and as many as an attacker created.
GROUPS, GROUPS_LONG = 5_000, 100_000
#: Names in one request: in CI, and as many as are allowed.
NAMES, NAMES_LONG = 15_000, REQUEST_ELEMENTS_MAX - 10


def long_requests(number: int) -> dict[str, tuple[Api, int, Mapping[str, Any]]]:
    """{description: request with so many names}."""
    return {
        "DescribeGroups of empty names": (Api.DescribeGroups, 5, {"groups": [""] * number}),
        "FindCoordinator of empty names": (Api.FindCoordinator, 4, {"coordinator_keys": [""] * number}),
        "FindCoordinator of distinct names": (
            Api.FindCoordinator,
            4,
            {"coordinator_keys": [f"{n}" for n in range(number)]},
        ),
        "Metadata of distinct names": (
            Api.Metadata,
            9,
            {"topics": [{"name": f"{n}"} for n in range(number)], "allow_auto_topic_creation": False},
        ),
        "OffsetFetch of one topic": (
            Api.OffsetFetch,
            8,
            {"groups": [{"group_id": "g", "topics": [{"name": "t", "partition_indexes": [*range(number)]}]}]},
        ),
        "ListOffsets of one topic": (
            Api.ListOffsets,
            7,
            {"topics": [{"name": "t", "partitions": [{"partition_index": n, "timestamp": -1} for n in range(number)]}]},
        ),
        "DeleteGroups of distinct names": (Api.DeleteGroups, 2, {"groups_names": [f"{n}" for n in range(number)]}),
    }


class Bystander:
    """Sends the next heartbeat when the last one is answered."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self.answered = 0
        self.longest_s = 0.0

    async def beat_while(self, request: asyncio.Future[Any]) -> None:
        while not request.done():
            before = time.perf_counter()
            beat = {"group_id": "bystanders", "generation_id": 1, "member_id": "m"}
            answer = await self._connection.call(Api.Heartbeat, beat, version=3)
            assert answer.error_code is ErrorCode.unknown_member_id
            self.answered += 1
            self.longest_s = max(self.longest_s, time.perf_counter() - before)


async def connect(broker: LimitedBroker) -> BrokerConnection:
    return await BrokerConnection.open(broker.host, broker.port, "c")


async def coordinating(connection: BrokerConnection) -> None:
    """Wait until the broker is the coordinator of all groups."""

    async def is_coordinator() -> bool:
        await connection.call(Api.FindCoordinator, {"key": "g"}, version=0)
        return (await connection.call(Api.ListGroups, {}, version=0)).error_code is ErrorCode.none

    await until(is_coordinator, 60, "the coordinator")


async def created(connection: BrokerConnection, name: str) -> None:
    """Let a metadata request create the topic, and wait until its offsets can be committed."""

    async def is_led() -> bool:
        answer = await connection.call(Api.Metadata, {"topics": [{"name": name}]}, version=1)
        return answer.topics[0].error_code is ErrorCode.none

    await until(is_led, 60, f"topic {name} to be led")


async def observed(broker: LimitedBroker, what: str, api: Api, version: int, body: Mapping[str, Any]) -> Any:
    """The answer to a long request, after a check that the bystander was served. Coding the messages is not timed.

    One that is over too soon to show it is repeated.
    """
    request = encode_request(api, version, 1, "c", body)
    beating = await connect(broker)
    bystander = Bystander(beating)
    reader, writer = await asyncio.open_connection(broker.host, broker.port)
    begun = time.perf_counter()
    for _ in range(REPEATS_MAX):
        writer.write(request)
        asking = asyncio.ensure_future(read_frame(reader))
        await bystander.beat_while(asking)
        if bystander.answered >= HEARTBEATS_MIN:
            break
    took_s = time.perf_counter() - begun
    longest_ms = bystander.longest_s * 1000
    print(f"{what}: {took_s:.1f} s, {bystander.answered} heartbeats, the longest {longest_ms:.0f} ms")  # noqa: T201
    writer.close()
    await writer.wait_closed()
    beating.close()
    await beating.wait_closed()
    assert bystander.answered >= HEARTBEATS_MIN, what
    return decode_response(api, version, asking.result())[1]


@asynccontextmanager
async def coordinator_of_all(chroot: str, data_dir: Path) -> AsyncIterator[tuple[LimitedBroker, BrokerConnection]]:
    """A broker that coordinates all groups in one partition, and a connection to it."""
    async with limited_broker(chroot, data_dir, {"offsets.topic.num.partitions": "1"}) as broker:
        connection = await connect(broker)
        await coordinating(connection)
        yield broker, connection
        connection.close()
        await connection.wait_closed()


@pytest.mark.parametrize("number", [NAMES, pytest.param(NAMES_LONG, marks=pytest.mark.long)])
async def test_bystander_is_served_during_requests_with_very_many_names(
    chroot: str, tmp_path: Path, number: int
) -> None:
    async with coordinator_of_all(chroot, tmp_path) as (broker, _):
        for what, (api, version, body) in long_requests(number).items():
            await observed(broker, what, api, version, body)


@pytest.mark.parametrize("number", [GROUPS, pytest.param(GROUPS_LONG, marks=pytest.mark.long)])
async def test_bystander_is_served_during_listing_and_describing_of_many_groups(
    chroot: str, tmp_path: Path, number: int
) -> None:
    async with coordinator_of_all(chroot, tmp_path) as (broker, connection):
        await created(connection, "t")
        groups = [f"group-{n}" for n in range(number)]
        offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
        for at in range(0, number, 500):
            commits = (
                connection.call(Api.OffsetCommit, {"group_id": group, "topics": offsets}, version=2)
                for group in groups[at : at + 500]
            )
            answers = await asyncio.gather(*commits)
            assert all(a.topics[0].partitions[0].error_code is ErrorCode.none for a in answers)
        listed = await observed(broker, "ListGroups", Api.ListGroups, 4, {})
        assert sorted(group.group_id for group in listed.groups) == sorted(groups)
        described = await observed(broker, "DescribeGroups", Api.DescribeGroups, 5, {"groups": groups})
        assert [group.group_id for group in described.groups] == groups
        assert {group.group_state for group in described.groups} == {"Empty"}
