"""Unexpected exceptions, injected into a coordinator: its partition stops, the others go on."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.groups.machine import Machine
from coordinator.groups.offsets.committed_offsets import CommitWrite
from coordinator.groups.placement import partition_of
from coordinator.service import led_partition as partition_module
from coordinator.service.mount import mount
from coordinator.service.record_codec import encode
from coordinator.service.timers import Timers
from coordinator.service.transaction_markers import TransactionMarkers
from coordinator.service.watcher import Watcher
from kernel.broker.storage.internal_errors import log_stopped
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import create_topics, running_broker
from tests.support.conversations.recorded import ConnectionEnded
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.time.manual_clock import ManualClock
from tests.support.time.virtual_time import run_virtually
from tests.support.wire.clients import WireConnection, wait_for_coordinator

SETTINGS = {
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
}
SICK = "sick"
#: Groups of the same partition, and one of another.
NEAR, BESIDE = [n for n in map("near-{}".format, range(99)) if partition_of(n, 4) == partition_of(SICK, 4)][:2]
SOUND = next(name for name in map("sound-{}".format, range(99)) if partition_of(name, 4) != partition_of(SICK, 4))
BUGS = [MemoryError(), sqlite3.ProgrammingError("closed"), struct.error("argument out of range")]
SESSION_MS = 1_000


def commit(group: str, offset: int = 5) -> dict[str, Any]:
    partitions = [{"partition_index": 0, "committed_offset": offset}]
    return {"group_id": group, "generation_id_or_member_epoch": -1, "topics": [{"name": "t", "partitions": partitions}]}


def join(group: str) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout": SESSION_MS,
        "rebalance_timeout": 60_000,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }


class Scene:
    """A coordinator over logs in memory. Partitions that stop are given up as by `kernel.broker.cluster.leading`."""

    def __init__(self, coordinator: LoneCoordinator) -> None:
        self.coordinator = coordinator

    async def commit(self, group: str, offset: int = 5) -> str:
        connection = await self.coordinator.connect("c")
        answer = await asyncio.wait_for(connection.send(Api.OffsetCommit, 8, commit(group, offset)), 10)
        return str(answer.topics[0].partitions[0].error_code.name)

    async def member(self, group: str) -> str:
        """A group with one member, which never returns; its id."""
        connection = await self.coordinator.connect("m")
        member_id = (await connection.call(Api.JoinGroup, 5, **join(group))).member_id
        await connection.call(Api.JoinGroup, 5, **join(group), member_id=member_id)
        return str(member_id)

    async def parked(self, group: str) -> asyncio.Future[Any]:
        """A JoinGroup that waits for a member that never joins."""
        await self.member(group)
        connection = await self.coordinator.connect("p")
        waiting = connection.send(Api.JoinGroup, 3, join(group))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        return waiting

    async def give_up_what_has_stopped(self) -> set[int]:
        for tp in self.coordinator.storage.stopped:
            await asyncio.wait_for(self.coordinator.listener.on_resign(tp), 10)
        return {tp.partition for tp in self.coordinator.storage.stopped}

    def sizes(self) -> dict[int, int]:
        return {tp.partition: len(log.pairs) for tp, log in self.coordinator.storage.logs.items()}


@asynccontextmanager
async def playing(clock: ManualClock) -> AsyncIterator[Scene]:
    coordinator = LoneCoordinator(clock, SETTINGS, {"t": 1})
    await coordinator.lead_all()
    try:
        yield Scene(coordinator)
    finally:
        await asyncio.wait_for(coordinator.stop(), 10)


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[BaseException]:
    return [r.exc_info[1] for r in caplog.records if r.levelno == logging.CRITICAL and r.exc_info and r.exc_info[1]]


def failing(instead_of: Callable[..., Any], bug: BaseException, when: Callable[..., bool]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if when(*arguments, **named):
            raise bug
        return instead_of(*arguments, **named)

    return call


def is_of(group: str) -> Callable[..., bool]:
    """Whether any of the arguments is about the group."""
    return lambda *arguments: any(repr(group) in repr(argument) for argument in arguments)


@pytest.mark.parametrize("bug", BUGS, ids=lambda m: type(m).__name__)
async def test_records_that_cannot_be_encoded_stop_their_partition_and_its_requests_are_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bug: Exception, virtual_clock: ManualClock
):
    async with playing(virtual_clock) as scene:
        parked = await scene.parked(NEAR)
        monkeypatch.setattr(partition_module, "encode", failing(encode, bug, is_of(SICK)))
        before = scene.sizes()
        commits = [scene.commit(SICK), scene.commit(BESIDE), scene.commit(SOUND)]
        assert await asyncio.gather(*commits) == ["unknown_server_error", "unknown_server_error", "none"]
        assert (await asyncio.wait_for(parked, 10)).error_code.name == "not_coordinator"
        assert await scene.commit(SICK) == "not_coordinator"
        assert await scene.commit(SOUND) == "none"
        number = partition_of(SICK, 4)
        assert scene.sizes()[number] == before[number]
        assert await scene.give_up_what_has_stopped() == {number}
        assert tracebacks(caplog) == [bug]


@pytest.mark.parametrize("bug", BUGS, ids=lambda m: type(m).__name__)
async def test_timer_that_fails_stops_its_partition_and_timers_of_others_fire(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bug: Exception, virtual_clock: ManualClock
):
    async with playing(virtual_clock) as scene:
        await scene.member(SICK)
        parked = await scene.parked(NEAR)
        await scene.member(SOUND)
        monkeypatch.setattr(Machine, "timer_fired", failing(Machine.timer_fired, bug, is_of(SICK)))
        answer = await asyncio.wait_for(parked, 10)
        assert answer.error_code.name == "not_coordinator"
        await asyncio.sleep(2 * SESSION_MS / 1000)
        connection = await scene.coordinator.connect("d")
        described = await connection.call(Api.DescribeGroups, 5, groups=[SOUND])
        assert described.groups[0].group_state == "Empty", "its member's session has ended"
        assert await scene.give_up_what_has_stopped() == {partition_of(SICK, 4)}
        assert tracebacks(caplog) == [bug]


def test_timers_after_a_failing_one_still_fire():
    """Their owner stops a partition on an error; the heap itself does not depend on that."""

    async def main() -> None:
        fired: list[str] = []

        def fire(key: Any) -> None:
            fired.append(key)
            if key == "bad":
                raise MemoryError

        timers = Timers(clock, fire)
        met: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: met.append(repr(context["exception"])))
        for at_ms, key in enumerate(["first", "bad", "third"]):
            timers.set(key, at_ms)  # type: ignore[arg-type]  # any key will do
        timers.set("late", 5_000)  # type: ignore[arg-type]
        await asyncio.sleep(6)
        assert fired == ["first", "bad", "third", "late"]
        assert met == ["MemoryError()"]

    clock = ManualClock()
    run_virtually(main(), clock)


async def test_failing_report_of_a_write_stops_the_partition_and_others_of_the_batch_are_answered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
):
    """The machine cannot answer the one that fails; its connection is closed."""
    async with playing(virtual_clock) as scene:
        monkeypatch.setattr(CommitWrite, "stored", failing(CommitWrite.stored, KeyError("lost"), is_of(SICK)))
        lost = asyncio.create_task(scene.commit(SICK))
        assert await scene.commit(NEAR) == "none", "it was stored"
        assert await scene.give_up_what_has_stopped() == {partition_of(SICK, 4)}
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(lost, 10)
        assert len(tracebacks(caplog)) == 1


async def test_request_that_fails_inside_the_machine_stops_the_partition_and_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
):
    async with playing(virtual_clock) as scene:
        parked = await scene.parked(NEAR)
        monkeypatch.setattr(Machine, "handle", failing(Machine.handle, AssertionError("impossible"), is_of(SICK)))
        with pytest.raises(asyncio.CancelledError):
            await scene.commit(SICK)
        assert (await asyncio.wait_for(parked, 10)).error_code.name == "not_coordinator"
        assert await scene.commit(SOUND) == "none"
        assert await scene.give_up_what_has_stopped() == {partition_of(SICK, 4)}
        assert len(tracebacks(caplog)) == 1


async def test_machine_that_cannot_be_unloaded_leaves_no_request_waiting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
):
    async with playing(virtual_clock) as scene:
        parked = await scene.parked(NEAR)
        monkeypatch.setattr(Machine, "handle", failing(Machine.handle, AssertionError("impossible"), is_of(SICK)))
        monkeypatch.setattr(Machine, "unload", failing(Machine.unload, KeyError("worse"), lambda *_: True))
        with pytest.raises(asyncio.CancelledError):
            await scene.commit(SICK)
        assert await scene.commit(NEAR) == "not_coordinator"
        assert await scene.give_up_what_has_stopped() == {partition_of(SICK, 4)}
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(parked, 10)
        assert [type(error) for error in tracebacks(caplog)] == [AssertionError, KeyError]
        monkeypatch.undo()


async def test_stopped_storage_is_answered_with_an_unknown_error(
    caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
):
    async with playing(virtual_clock) as scene:
        log = scene.coordinator.storage.logs[scene.coordinator.tp(partition_of(SICK, 4))]
        log.broken = log_stopped("the log", MemoryError())
        assert await scene.commit(SICK) == "unknown_server_error"
        assert await scene.commit(SOUND) == "none"


async def test_marker_that_fails_with_an_internal_error_stops_the_partition(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, virtual_clock: ManualClock
):
    """Its transaction would never end."""
    async with playing(virtual_clock) as scene:
        deliver = failing(TransactionMarkers._deliver_once, RuntimeError("oops"), lambda *_: True)
        monkeypatch.setattr(TransactionMarkers, "_deliver_once", deliver)
        connection = await scene.coordinator.connect("t")
        given = await connection.call(
            Api.InitProducerId, 4, transactional_id=SICK, transaction_timeout=60_000, producer_id=-1, producer_epoch=-1
        )
        producer = {"transactional_id": SICK, "producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
        await connection.call(Api.AddOffsetsToTxn, 3, **producer, group_id=SOUND)
        ended = await connection.call(Api.EndTxn, 3, **producer, committed=True)
        assert ended.error_code is ErrorCode.none, "it was decided, and is stored"
        await asyncio.sleep(0.1)
        assert await scene.give_up_what_has_stopped() == {partition_of(SICK, 4)}
        assert await scene.commit(SICK) == "not_coordinator"
        assert await scene.commit(SOUND) == "none"
        assert len(tracebacks(caplog)) == 1


async def test_internal_error_in_following_topics_stops_every_partition_that_relies_on_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    class Watches:
        def watch(self, *_: Any) -> None: ...

        async def stop(self) -> None: ...

    class Services:
        class cluster:  # noqa: N801 - the name of an attribute
            snapshot = None

    class Partition:
        met: BaseException | None = None

        def stop(self, bug: BaseException) -> None:
            self.met = bug

    partition: Any = Partition()
    monkeypatch.setattr("coordinator.service.watcher.MemberWatches", lambda _: Watches())
    watcher = Watcher(Services(), lambda: [partition])  # type: ignore[arg-type]  # all that it uses of them
    watcher.follow_topics()
    await until(lambda: partition.met is not None, 60, "the partition to be stopped")
    assert isinstance(partition.met, AttributeError)
    await watcher.stop()


# -- a real broker ---------------------------------------------------------------------------------------------------


async def test_partition_that_stops_is_resigned_and_the_rest_of_the_broker_goes_on(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    place = TopicPartition(OFFSETS_TOPIC, partition_of(SICK, 4))
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 1})
        connections = [await WireConnection.open("127.0.0.1", broker.address.port, "c") for _ in range(3)]
        one, near, sound = connections
        await wait_for_coordinator(one, SICK, SOUND)

        async def committed(connection: WireConnection, group: str) -> str:
            answer = await asyncio.wait_for(connection.send(Api.OffsetCommit, 8, commit(group)), 10)
            return str(answer.topics[0].partitions[0].error_code.name)

        assert await committed(one, SICK) == "none"
        with monkeypatch.context() as patch:
            patch.setattr(partition_module, "encode", failing(encode, struct.error("short"), is_of(SICK)))
            assert await committed(one, SICK) == "unknown_server_error"
        await until(lambda: broker.cluster.leads(place) is None, 60, "the partition to be resigned")
        assert await committed(one, SICK) == "not_coordinator"
        assert await committed(near, NEAR) == "not_coordinator"
        assert await committed(sound, SOUND) == "none"
        await asyncio.wait_for(broker.cluster._leading.settled(), 10)  # no retry is pending
        assert broker.cluster.leads(place) is None, "it would fail again"
        with monkeypatch.context() as patch:
            patch.setattr(Machine, "handle", failing(Machine.handle, KeyError("lost"), is_of(SOUND)))
            with pytest.raises(ConnectionEnded):
                await committed(sound, SOUND)
        assert [type(error) for error in tracebacks(caplog)] == [struct.error, KeyError]
        for connection in connections:
            connection.close()
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
        again = await WireConnection.open("127.0.0.1", broker.address.port, "c")
        await wait_for_coordinator(again, SICK, SOUND)
        wanted = {"group_id": SICK, "topics": [{"name": "t", "partition_indexes": [0]}]}
        found = await again.send(Api.OffsetFetch, 7, wanted)
        assert found.topics[0].partitions[0].committed_offset == 5, "nothing acknowledged is lost"
        again.close()
