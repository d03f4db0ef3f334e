"""The coordinator around its machine: loading, moving, fencing, stopping, and when it acknowledges."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from coordinator.groups.consumer_records import ClientKey, EpochKey, TargetEpochKey
from coordinator.groups.placement import partition_of
from coordinator.service.consumer_records import decode_consumer_key
from coordinator.service.led_partition import LedPartition
from coordinator.service.record_codec import decode_all
from kernel.broker.storage.errors import Fenced, StorageFailed
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.coordinators.in_memory import HandlerConnection, LoneCoordinator, MemoryStorage
from tests.support.time.manual_clock import ManualClock

GROUP = "g"
SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "50",
    "group.min.session.timeout.ms": "100",
}
TOPICS = {"t": 2}
NUMBER = partition_of(GROUP, 4)

JOIN = {
    "group_id": GROUP,
    "session_timeout": 10_000,
    "rebalance_timeout": 10_000,
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b""}],
}
COMMIT = {
    "group_id": GROUP,
    "generation_id_or_member_epoch": -1,
    "topics": [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 5}]}],
}
FETCH = {"group_id": GROUP, "topics": [{"name": "t", "partition_indexes": [0]}]}


@asynccontextmanager
async def coordinating(
    clock: ManualClock, *, led: bool = True
) -> AsyncIterator[tuple[LoneCoordinator, HandlerConnection]]:
    """A coordinator, which leads everything by default, and a connection to it."""
    coordinator = LoneCoordinator(clock, SETTINGS, TOPICS, MemoryStorage())
    if led:
        await coordinator.lead_all()
    try:
        yield coordinator, await coordinator.connect("c")
    finally:
        await coordinator.stop()


def named(code: ErrorCode) -> str:
    return code.name.upper()


def error_of(api: Api, body: Any) -> str:
    """The error in a response, wherever that API has it."""
    match api:
        case Api.OffsetCommit:
            return named(body.topics[0].partitions[0].error_code)
        case Api.DescribeGroups:
            return named(body.groups[0].error_code)
        case Api.DeleteGroups:
            return named(body.results[0].error_code)
    return named(body.error_code)


async def stable(connection: HandlerConnection) -> str:
    """A Stable group of one member; its id."""
    member_id = (await connection.call(Api.JoinGroup, 5, **JOIN)).member_id
    joined = await connection.call(Api.JoinGroup, 5, **JOIN, member_id=member_id)
    assert joined.error_code is ErrorCode.none, joined
    synced = await connection.call(
        Api.SyncGroup,
        3,
        group_id=GROUP,
        generation_id=1,
        member_id=member_id,
        assignments=[{"member_id": member_id, "assignment": b"mine"}],
    )
    assert synced.assignment == b"mine"
    return str(member_id)


#: api, version, request, the answer where the partition is led elsewhere, and while it is being loaded.
LED_PARTITION_CHECKS = [
    (Api.JoinGroup, 9, JOIN, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.SyncGroup, 3, {"group_id": GROUP}, "NOT_COORDINATOR", "REBALANCE_IN_PROGRESS"),
    (Api.Heartbeat, 4, {"group_id": GROUP}, "NOT_COORDINATOR", "NONE"),
    (Api.LeaveGroup, 0, {"group_id": GROUP}, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.LeaveGroup, 5, {"group_id": GROUP}, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.OffsetCommit, 8, COMMIT, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.OffsetFetch, 7, FETCH, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.DescribeGroups, 5, {"groups": [GROUP]}, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.ListGroups, 4, {}, "NONE", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.DeleteGroups, 2, {"groups_names": [GROUP]}, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
    (Api.OffsetDelete, 0, {"group_id": GROUP}, "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
]
IDS = [f"{row[0].name} v{row[1]}" for row in LED_PARTITION_CHECKS]


@pytest.mark.parametrize(("api", "version", "request_body", "elsewhere", "_loading"), LED_PARTITION_CHECKS, ids=IDS)
async def test_request_for_a_partition_led_elsewhere_is_refused(
    api, version, request_body, elsewhere, _loading, virtual_clock
):
    async with coordinating(virtual_clock, led=False) as (_, connection):
        answer = await connection.call(api, version, **request_body)
        assert error_of(api, answer) == elsewhere


@pytest.mark.parametrize(("api", "version", "request_body", "_elsewhere", "loading"), LED_PARTITION_CHECKS, ids=IDS)
async def test_request_while_the_partition_loads_gets_load_in_progress(
    api, version, request_body, _elsewhere, loading, virtual_clock
):
    async with coordinating(virtual_clock, led=False) as (coordinator, connection):
        log = await coordinator.storage.take_over_pairs(coordinator.tp(NUMBER), None, 0)
        log.gate.clear()
        leading = asyncio.create_task(coordinator.lead(NUMBER))
        await asyncio.sleep(0.01)
        answer = await connection.call(api, version, **request_body)
        assert error_of(api, answer) == loading
        log.gate.set()
        await leading
        assert error_of(Api.OffsetCommit, await connection.call(Api.OffsetCommit, 8, **COMMIT)) == "NONE"


async def test_offset_fetch_v1_has_its_error_at_each_partition_while_led_elsewhere(virtual_clock):
    async with coordinating(virtual_clock, led=False) as (_, connection):
        answer = await connection.call(Api.OffsetFetch, 1, **FETCH)
        (partition,) = answer.topics[0].partitions
        assert (named(partition.error_code), partition.committed_offset) == ("NOT_COORDINATOR", -1)


async def test_parked_requests_are_answered_when_the_partition_moves_away(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, leader):
        await stable(leader)
        joiner = await coordinator.connect("d")
        parked = joiner.send(Api.JoinGroup, 3, JOIN)
        await asyncio.sleep(0.02)
        assert not parked.done()
        await coordinator.resign_all()
        assert named((await parked).error_code) == "NOT_COORDINATOR"
        answer = await leader.call(Api.Heartbeat, 3, group_id=GROUP, generation_id=1)
        assert named(answer.error_code) == "NOT_COORDINATOR"


async def test_group_and_offsets_are_loaded_when_the_partition_returns(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, connection):
        member_id = await stable(connection)
        await connection.call(Api.OffsetCommit, 8, **COMMIT | {"generation_id_or_member_epoch": 1}, member_id=member_id)
        await coordinator.resign_all()
        await coordinator.lead_all(epoch=1)
        beat = await connection.call(Api.Heartbeat, 3, group_id=GROUP, generation_id=1, member_id=member_id)
        assert named(beat.error_code) == "NONE"
        fetched = await connection.call(Api.OffsetFetch, 7, **FETCH)
        assert fetched.topics[0].partitions[0].committed_offset == 5
        # Sessions restarted with the load, and expire without heartbeats.
        await asyncio.sleep(11)
        described = await connection.call(Api.DescribeGroups, 5, groups=[GROUP])
        assert described.groups[0].group_state == "Empty"


async def test_commit_is_acknowledged_and_visible_only_when_durable(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, connection):
        coordinator.storage.logs[coordinator.tp(NUMBER)].gate.clear()
        committing = connection.send(Api.OffsetCommit, 8, COMMIT)
        await asyncio.sleep(1)
        assert not committing.done()
        other = await coordinator.connect("d")
        fetched = await other.call(Api.OffsetFetch, 7, **FETCH)
        assert fetched.topics[0].partitions[0].committed_offset == -1
        assert not coordinator.tracer.of("offset_written")
        coordinator.storage.logs[coordinator.tp(NUMBER)].gate.set()
        assert error_of(Api.OffsetCommit, await committing) == "NONE"
        assert len(coordinator.tracer.of("offset_written")) == 1


async def test_fenced_write_is_refused_and_ends_the_coordination_at_once(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, connection):
        member_id = await stable(connection)
        joiner = await coordinator.connect("d")
        parked = joiner.send(Api.JoinGroup, 3, JOIN)
        await asyncio.sleep(0.02)
        coordinator.storage.logs[coordinator.tp(NUMBER)].broken = Fenced("led by broker 2 since epoch 1")
        request = COMMIT | {"generation_id_or_member_epoch": 1, "member_id": member_id}
        answer = await connection.call(Api.OffsetCommit, 8, **request)
        assert error_of(Api.OffsetCommit, answer) == "NOT_COORDINATOR"
        (refused,) = coordinator.tracer.of("offset_refused")
        assert refused["error"] == "NOT_COORDINATOR"
        # Other clients learn of it as well, before the cluster's view has changed.
        assert named((await parked).error_code) == "NOT_COORDINATOR"
        beat = await connection.call(Api.Heartbeat, 3, group_id=GROUP, generation_id=1, member_id=member_id)
        assert named(beat.error_code) == "NOT_COORDINATOR"


async def test_fenced_assignment_is_not_sent(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, connection):
        member_id = (await connection.call(Api.JoinGroup, 5, **JOIN)).member_id
        await connection.call(Api.JoinGroup, 5, **JOIN, member_id=member_id)
        coordinator.storage.logs[coordinator.tp(NUMBER)].broken = Fenced("led by broker 2 since epoch 1")
        sync = {"group_id": GROUP, "generation_id": 1, "member_id": member_id}
        answer = await connection.call(Api.SyncGroup, 3, **sync)
        assert (named(answer.error_code), answer.assignment) == ("NOT_COORDINATOR", b"")
        assert not coordinator.tracer.of("authority_named")


async def test_full_disk_refuses_writes_says_so_once_and_the_coordinator_goes_on(
    caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
):
    caplog.set_level(logging.INFO, "coordinator.service.led_partition")
    async with coordinating(virtual_clock) as (coordinator, connection):
        member_id = await stable(connection)
        log = coordinator.storage.logs[coordinator.tp(NUMBER)]
        log.broken = StorageFailed("no space left on device")
        request = COMMIT | {"generation_id_or_member_epoch": 1, "member_id": member_id}
        for _ in range(2):
            answer = await connection.call(Api.OffsetCommit, 8, **request)
            assert error_of(Api.OffsetCommit, answer) == "COORDINATOR_NOT_AVAILABLE"
        log.broken = None
        assert error_of(Api.OffsetCommit, await connection.call(Api.OffsetCommit, 8, **request)) == "NONE"
    said = [each for each in caplog.records if "write" in each.message]
    assert [each.levelname for each in said] == ["WARNING", "INFO"]
    assert said[0].message.endswith("cannot write: no space left on device")
    assert not said[0].exc_info


async def test_concurrent_writes_are_stored_together(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, _):
        log = coordinator.storage.logs[coordinator.tp(NUMBER)]
        connections = [await coordinator.connect(f"c{n}") for n in range(100)]
        answers = await asyncio.gather(*(c.call(Api.OffsetCommit, 8, **COMMIT) for c in connections))
        assert {error_of(Api.OffsetCommit, answer) for answer in answers} == {"NONE"}
        assert log.upserts <= 3


async def test_writes_that_arrive_turn_after_turn_are_stored_together(
    monkeypatch: pytest.MonkeyPatch, virtual_clock: ManualClock
):
    # It is real time even under a virtual clock, and could run out between two turns on a busy machine.
    monkeypatch.setattr("coordinator.service.led_partition.LINGER_S", 60.0)
    async with coordinating(virtual_clock) as (coordinator, _):
        log = coordinator.storage.logs[coordinator.tp(NUMBER)]
        connections = [await coordinator.connect(f"c{n}") for n in range(20)]
        commits = []
        for each in connections:
            commits.append(asyncio.ensure_future(each.call(Api.OffsetCommit, 8, **COMMIT)))
            await asyncio.sleep(0)
        answers = await asyncio.gather(*commits)
        assert {error_of(Api.OffsetCommit, answer) for answer in answers} == {"NONE"}
        assert log.upserts < 10


async def test_record_that_a_later_one_replaces_in_the_same_transaction_is_not_stored(virtual_clock):
    def join(member_id: str) -> dict[str, Any]:
        return {
            "group_id": GROUP,
            "member_id": member_id,
            "member_epoch": 0,
            "rebalance_timeout": 10_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        }

    def is_of_client(key: bytes) -> bool:
        return isinstance(decode_consumer_key(key), ClientKey)

    async with coordinating(virtual_clock) as (coordinator, _):
        log = coordinator.storage.logs[coordinator.tp(NUMBER)]
        members = [f"m{n}" for n in range(8)]
        connections = [await coordinator.connect(member) for member in members]
        answers = await asyncio.gather(
            *(
                each.call(Api.ConsumerGroupHeartbeat, 1, **join(member))
                for each, member in zip(connections, members, strict=True)
            )
        )
        assert sorted(answer.member_epoch for answer in answers) == list(range(1, 9))
        stored: dict[Any, Any] = dict(decode_all(log.pairs.items()))
        assert stored[EpochKey(GROUP)].epoch == stored[TargetEpochKey(GROUP)].epoch == 8
        assert {key.member_id for key in stored if isinstance(key, ClientKey)} == set(members)
        for keys in log.transactions:
            assert len(keys) == len(set(keys))
        shared = [keys for keys in log.transactions if sum(map(is_of_client, keys)) > 1]
        assert shared, "no two joins were stored together, so nothing was replaced"


async def test_stopping_answers_waiting_requests_and_refuses_new_ones(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, connection):
        parked = connection.send(Api.JoinGroup, 3, JOIN)
        await asyncio.sleep(0.01)
        await coordinator.stop()
        assert named((await parked).error_code) == "NOT_COORDINATOR"
        answer = await connection.call(Api.Heartbeat, 3, group_id=GROUP)
        assert named(answer.error_code) == "COORDINATOR_NOT_AVAILABLE"


async def test_damaged_log_is_not_led(virtual_clock):
    async with coordinating(virtual_clock, led=False) as (coordinator, connection):
        log = await coordinator.storage.take_over_pairs(coordinator.tp(NUMBER), None, 0)
        log.pairs[b"\0\x02\0\x01g"] = b"\0\x03nonsense"
        with pytest.raises(StorageFailed, match="cannot be loaded"):
            await coordinator.lead(NUMBER)
        answer = await connection.call(Api.Heartbeat, 3, group_id=GROUP)
        assert named(answer.error_code) == "NOT_COORDINATOR"


async def test_partition_that_could_not_be_loaded_to_the_end_is_closed(monkeypatch, virtual_clock):
    """Otherwise its timers would fire for groups that no broker leads."""
    begun: list[LedPartition] = []

    def fails(partition: LedPartition, _: object) -> None:
        begun.append(partition)
        raise ArithmeticError("a mistake of ours")

    monkeypatch.setattr(LedPartition, "notify", fails)
    async with coordinating(virtual_clock, led=False) as (coordinator, connection):
        with pytest.raises(ArithmeticError):
            await coordinator.lead(NUMBER)
        assert [partition.closed for partition in begun] == [True]
        answer = await connection.call(Api.Heartbeat, 3, group_id=GROUP)
        assert named(answer.error_code) == "NOT_COORDINATOR"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("group_id", "g" * 40_000),
        ("group_instance_id", "i" * 40_000),
        ("protocol_type", "p" * 40_000),
        ("protocols", [{"name": "n" * 40_000, "metadata": b""}]),
    ],
)
async def test_texts_too_long_for_a_record_are_refused_on_arrival(field, value, virtual_clock):
    async with coordinating(virtual_clock) as (_, connection):
        answer = await connection.call(Api.JoinGroup, 9, **JOIN | {field: value})
        assert named(answer.error_code) == "INVALID_REQUEST"


async def test_client_id_that_leaves_no_room_for_a_member_id_is_refused_on_arrival(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, _):
        answer = await (await coordinator.connect("c" * 32_767)).call(Api.JoinGroup, 9, **JOIN)
        assert named(answer.error_code) == "INVALID_REQUEST"


async def test_commit_for_a_group_with_too_long_a_name_is_refused(virtual_clock):
    async with coordinating(virtual_clock) as (_, connection):
        answer = await connection.call(Api.OffsetCommit, 8, **COMMIT | {"group_id": "g" * 40_000})
        assert error_of(Api.OffsetCommit, answer) == "INVALID_GROUP_ID"


async def test_member_without_client_id_gets_an_id(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, _):
        answer = await (await coordinator.connect("")).call(Api.JoinGroup, 5, **JOIN)
        assert answer.member_id.startswith("-")
        assert len(answer.member_id) == 37


async def test_trace_names_the_authority_of_a_group(virtual_clock):
    async with coordinating(virtual_clock) as (coordinator, connection):
        member_id = await stable(connection)
        states = [event["state"] for event in coordinator.tracer.of("group_changed")]
        assert states == ["PreparingRebalance", "CompletingRebalance", "Stable"]
        (joined,) = coordinator.tracer.of("group_member_joined")
        assert joined["id"] == member_id
