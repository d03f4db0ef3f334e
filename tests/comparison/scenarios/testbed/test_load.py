"""The load numbers its records in each partition and reports what is stored."""

from __future__ import annotations

import asyncio

import pytest

from comparison.scenarios.testbed.load import Load
from kernel.errors import Unavailable
from kernel.serials import serial_of
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.trace.tracers import ListTracer

PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]


class Log:
    """Stores what is sent; after the third record of a partition, `gap` offsets belong to another producer."""

    def __init__(self, *, gap: int = 0, fails: bool = False) -> None:
        self.stored: dict[TopicPartition, list[bytes]] = {tp: [] for tp in PARTITIONS}
        self._gap = gap
        self._fails = fails

    async def send(self, tp: TopicPartition, value: bytes) -> int:
        if self._fails:
            raise Unavailable("nobody leads")
        self.stored[tp].append(value)
        await asyncio.sleep(0)
        number = len(self.stored[tp]) - 1
        return number if number < 3 else number + self._gap


def produced(log: Log, at_least: int, rate: int = 2000) -> tuple[Load, ListTracer]:
    async def scenario() -> tuple[Load, ListTracer]:
        tracer = ListTracer()
        load = Load(log, PARTITIONS, rate, tracer)
        running = asyncio.create_task(load.run())
        await until(
            lambda: running.done() or sum(map(len, log.stored.values())) >= at_least, 60, "records to be produced"
        )
        load.stop()
        await running
        return load, tracer

    return asyncio.run(scenario())


def test_records_are_numbered_from_0_in_each_partition() -> None:
    log = Log()
    load, _ = produced(log, 50)
    for tp in PARTITIONS:
        assert [serial_of(value) for value in log.stored[tp]] == list(range(len(log.stored[tp])))
        assert load.acknowledged[tp] == load.ends[tp] == len(log.stored[tp])
    assert abs(len(log.stored[PARTITIONS[0]]) - len(log.stored[PARTITIONS[1]])) <= 1


def test_every_stored_record_is_reported_once() -> None:
    log = Log()
    _, tracer = produced(log, 50)
    reported = [
        (event["partition"], serial)
        for event in tracer.of("records_acked")
        for serial in range(event["serial_first"], event["serial_last"] + 1)  # type: ignore[operator, call-overload]  # integers by the table
    ]
    assert sorted(reported) == [(tp.partition, n) for tp in PARTITIONS for n in range(len(log.stored[tp]))]


def test_offsets_with_a_gap_are_reported_as_two_ranges() -> None:
    _, tracer = produced(Log(gap=5), 40)
    ranges = [(e["first"], e["last"]) for e in tracer.of("records_acked") if e["partition"] == 0]
    assert all(not (first <= 2 and last >= 8) for first, last in ranges)  # type: ignore[operator]  # integers by the table


def test_a_send_that_fails_ends_the_load_with_its_error() -> None:
    with pytest.raises(Unavailable, match="nobody leads"):
        produced(Log(fails=True), 1)


async def test_added_partitions_get_records_from_then_on() -> None:
    added = TopicPartition("t", 2)
    log = Log()
    log.stored[added] = []
    load = Load(log, PARTITIONS, 2000, ListTracer())
    running = asyncio.create_task(load.run())
    await until(lambda: log.stored[PARTITIONS[0]], 60, "records to be produced")
    load.grow([added])
    await until(lambda: len(log.stored[added]) > 3, 60, "records in the new partition")
    load.stop()
    await running
    assert [serial_of(value) for value in log.stored[added]] == list(range(len(log.stored[added])))
    assert load.ends[added] == len(log.stored[added])


async def test_topic_that_is_left_out_gets_no_more_records_and_its_serials_go_on_when_it_is_back() -> None:
    other = TopicPartition("u", 0)
    log = Log()
    log.stored[other] = []
    load = Load(log, [*PARTITIONS, other], 2000, ListTracer())
    running = asyncio.create_task(load.run())
    await until(lambda: len(log.stored[other]) > 3, 60, "records to be produced")
    ends = await load.leave_out("u")
    assert ends == {other: len(log.stored[other])}
    assert other not in load.ends
    before, log.stored[other] = log.stored[other], []  # deleted, and created again
    further = len(log.stored[PARTITIONS[0]]) + 10
    await until(lambda: len(log.stored[PARTITIONS[0]]) > further, 60, "records in the other topic")
    assert log.stored[other] == []
    load.grow([other])
    await until(lambda: log.stored[other], 60, "records in the new one")
    load.stop()
    await running
    assert serial_of(log.stored[other][0]) == serial_of(before[-1]) + 1
    assert load.ends[other] == len(log.stored[other])


async def test_load_without_a_topic_waits_for_one() -> None:
    log, loop = Log(), asyncio.get_running_loop()
    load = Load(log, PARTITIONS, 2000, ListTracer())
    running = asyncio.create_task(load.run())
    await until(lambda: all(log.stored[tp] for tp in PARTITIONS), 60, "records to be produced")
    await load.leave_out("t")
    assert load.ends == {}
    log.stored = {tp: [] for tp in PARTITIONS}
    left_out_s = loop.time()
    await until(lambda: loop.time() > left_out_s + 0.2, 60, "some turns without a topic")
    load.grow(PARTITIONS)
    await until(lambda: all(log.stored.values()), 60, "records to be produced again")
    load.stop()
    await running


async def test_added_partition_gets_a_record_whatever_the_rate() -> None:
    added = [TopicPartition("t", number) for number in range(2, 200)]

    log = Log()
    log.stored |= {tp: [] for tp in added}
    load = Load(log, PARTITIONS, 1, ListTracer())
    running = asyncio.create_task(load.run())
    load.grow(added)
    await until(lambda: all(log.stored[tp] for tp in added), 60, "a record of each new partition")
    load.rate = 2000
    await until(lambda: len(log.stored[added[0]]) > 2, 60, "more records")
    load.stop()
    await running
    for tp in added:
        assert [serial_of(value) for value in log.stored[tp]] == list(range(len(log.stored[tp])))
