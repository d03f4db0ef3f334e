"""Original consumers read from our broker, as it registers itself: Fetch 0 and 3, ListOffsets 0, Metadata 0, offsets in
ZooKeeper or at the coordinator (OffsetCommit 1 and 2), no ApiVersions, and what they read in ZooKeeper.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from comparison.originals.hosts import Message, OriginalHost, OriginalMember, Pattern
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.records.records import NewRecord, build_batch
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.kernel.broker.apis.test_data_plane import produce
from tests.support.brokers.live import client_of, create_topics, running_cluster
from tests.support.consumers.zookeeper import member as our_member
from tests.support.consumers.zookeeper import owners, settled, shared
from tests.support.java.originals import PROPERTIES
from tests.support.zookeeper.sessions import opened

#: The codecs of the old formats, one for each partition.
CODECS = ("none", "gzip", "snappy", "lz4")
NUMBER = 60

Test = Callable[["OriginalHost", "Sequence[Broker]"], Awaitable[None]]


@pytest.fixture(params=["0.8.2.2", "1.1.1"])
def host(request: pytest.FixtureRequest) -> OriginalHost:
    """A JVM with consumers of each of the two versions."""
    found: OriginalHost = request.getfixturevalue({"0.8.2.2": "host_0_8", "1.1.1": "host_1_1"}[request.param])
    return found


@asynccontextmanager
async def our_brokers(chroot: str, tmp_path: Path, number: int = 1) -> AsyncIterator[list[Broker]]:
    async with running_cluster(number, chroot, tmp_path, mount=(mount,)) as brokers:
        await create_topics(brokers[0], {"t": len(CODECS)}, replication_factor=number)
        yield brokers


@asynccontextmanager
async def joined(host: OriginalHost, chroot: str, name: str, **properties: str) -> AsyncIterator[OriginalMember]:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    member = await host.join(name, zookeeper=chroot, group="g", topics={"t": 1}, properties={**PROPERTIES, **given})
    try:
        yield member
    finally:
        await member.leave()


def record(number: int) -> NewRecord:
    """Keys and values of all kinds, none of them twice; headers, which no original can read."""
    value = None if number % 10 == 9 else b"%d" % number * (number + 1)
    return NewRecord(value, None if number % 3 else b"key", 1_700_000_000_000 + number, (("h", b"x"),))


async def fill(brokers: Sequence[Broker], first: int, last: int, *, per_batch: int = 7) -> None:
    """Records `first` to `last` - 1 into each partition, each with its codec, in batches."""
    partitions = [TopicPartition("t", number) for number in range(len(CODECS))]
    # A broker may hear from another one that it leads, before it has read so itself.
    await until(
        lambda: all(any(broker.cluster.leads(tp) for broker in brokers) for tp in partitions), 60, "brokers to lead all"
    )
    async with client_of(*brokers) as client:
        await client.refresh(["t"])
        for tp, codec in zip(partitions, CODECS, strict=True):
            leader = client.leader_of(tp)
            assert leader is not None
            connection = await client.connection(leader)
            for start in range(first, last, per_batch):
                records = [record(number) for number in range(start, min(start + per_batch, last))]
                assert await produce(connection, build_batch(records, codec=codec), tp) == ("", start)


def read(messages: Sequence[Message]) -> dict[int, list[tuple[int, bytes | None]]]:
    """{partition: [(offset, value)]} in the order of delivery."""
    found: dict[int, list[tuple[int, bytes | None]]] = {}
    for message in messages:
        found.setdefault(message.partition, []).append((message.offset, message.value))
    return found


def expected(first: int, last: int) -> dict[int, list[tuple[int, bytes | None]]]:
    return {
        partition: [(number, record(number).value) for number in range(first, last)] for partition in range(len(CODECS))
    }


async def test_original_reads_every_record_of_every_codec_in_order(
    host: OriginalHost, chroot: str, tmp_path: Path
) -> None:
    """Records that exist when it joins, and those that arrive while it waits in a fetch."""
    async with our_brokers(chroot, tmp_path) as brokers:
        await fill(brokers, 0, NUMBER)
        async with joined(host, chroot, "c") as member:
            await member.read_until(len(CODECS) * NUMBER)
            await fill(brokers, NUMBER, 2 * NUMBER)
            await member.read_until(2 * len(CODECS) * NUMBER)
            assert read(member.messages) == expected(0, 2 * NUMBER)


async def test_original_continues_at_its_groups_offset(host: OriginalHost, chroot: str, tmp_path: Path) -> None:
    """In the middle of a batch: it gets all of a compressed one and drops what it has read."""
    async with our_brokers(chroot, tmp_path) as brokers:
        await fill(brokers, 0, NUMBER, per_batch=NUMBER)
        async with opened(chroot) as session:
            for partition in range(len(CODECS)):
                path = paths.offset("g", "t", partition)
                await session.create(path, b"%d" % (NUMBER - 11), makepath=True)
        async with joined(host, chroot, "c") as member:
            await member.read_until(len(CODECS) * 11)
            assert read(member.messages) == expected(NUMBER - 11, NUMBER)


async def test_original_keeps_its_offsets_at_our_coordinator(host: OriginalHost, chroot: str, tmp_path: Path) -> None:
    """offsets.storage=kafka: 0.8.2.2 sends OffsetFetch 1 and OffsetCommit 1, 1.1.1 version 2 of both."""
    in_kafka = {"offsets_storage": "kafka", "dual_commit_enabled": "false", "offsets_channel_backoff_ms": "100"}
    async with our_brokers(chroot, tmp_path) as brokers:
        await fill(brokers, 0, NUMBER)
        async with joined(host, chroot, "c1", **in_kafka) as first:
            await first.read_until(len(CODECS) * NUMBER)
            await first.commit()
        await fill(brokers, NUMBER, NUMBER + 5)
        async with joined(host, chroot, "c2", **in_kafka) as second, opened(chroot) as session:
            await second.read_until(len(CODECS) * 5)
            assert read(second.messages) == expected(NUMBER, NUMBER + 5)
            assert await session.exists(paths.offsets("g")) is None


@pytest.mark.parametrize(("reset", "first"), [("smallest", 0), ("largest", NUMBER)])
async def test_original_out_of_range_asks_where_the_log_begins_or_ends(
    host: OriginalHost, chroot: str, tmp_path: Path, reset: str, first: int
) -> None:
    async with our_brokers(chroot, tmp_path) as brokers:
        await fill(brokers, 0, NUMBER)
        async with opened(chroot) as session:
            for partition in range(len(CODECS)):
                await session.create(paths.offset("g", "t", partition), b"1000000", makepath=True)
            async with joined(host, chroot, "c", auto_offset_reset=reset) as member:

                async def reset_everywhere() -> bool:
                    await member.commit()
                    found = [
                        (await session.get(paths.offset("g", "t", partition)))[0] for partition in range(len(CODECS))
                    ]
                    return all(int(offset) <= NUMBER for offset in found)

                await until(reset_everywhere, 60, "offsets inside the log")
                await fill(brokers, NUMBER, NUMBER + 5)
                await member.read_until(len(CODECS) * (NUMBER + 5 - first))
                assert read(member.messages) == expected(first, NUMBER + 5)


async def test_original_0_8_raises_for_a_batch_above_its_limit_and_1_1_reads_it(
    host: OriginalHost, chroot: str, tmp_path: Path
) -> None:
    """With Fetch 0 it is truncated, as by Kafka; since Fetch 3 there is at least one whole batch (KIP-74)."""
    async with our_brokers(chroot, tmp_path) as brokers:
        async with client_of(*brokers) as client:
            await client.refresh(["t"])
            connection = await client.connection(1)
            large = build_batch([NewRecord(b"x" * 5000, None, 0)])
            assert await produce(connection, large, TopicPartition("t", 0)) == ("", 0)
        async with joined(host, chroot, "c", fetch_message_max_bytes="2000") as member:
            if host.version == "1.1.1":
                await member.read_until(1)
            else:
                await until(lambda: bool(member.events), 60, "an error at the stream")
                assert member.events[0]["java_class"] == "MessageSizeTooLargeException"
                assert member.messages == []


async def test_originals_share_our_brokers_and_follow_a_leader_that_moved(
    host: OriginalHost, chroot: str, tmp_path: Path
) -> None:
    """Two brokers, two members; one broker stops, the other leads everything, and there is no rebalance."""
    async with our_brokers(chroot, tmp_path, 2) as brokers:
        await fill(brokers, 0, NUMBER)
        async with joined(host, chroot, "c1") as one, joined(host, chroot, "c2") as two:

            def delivered() -> int:
                return len({(m.partition, m.offset) for m in (*one.messages, *two.messages)})

            await until(lambda: delivered() == len(CODECS) * NUMBER, 60, lambda: f"the records, got {delivered()}")
            async with opened(chroot) as session:
                # All records may have been delivered before the first member has claimed its partitions again.
                threads = (f"{one.consumer_id}-0", [0, 1]), (f"{two.consumer_id}-0", [2, 3])
                await settled(session, shared("t", *threads))
                before = await owners(session)
                await brokers[0].stop()
                await fill(brokers[1:], NUMBER, NUMBER + 10)
                total = len(CODECS) * (NUMBER + 10)
                await until(lambda: delivered() == total, 60, lambda: f"{total} records, got {delivered()}")
                assert await owners(session) == before


async def test_originals_of_both_versions_and_ours_share_a_group_on_our_brokers(
    host_0_8: OriginalHost, host_1_1: OriginalHost, chroot: str, tmp_path: Path
) -> None:
    """By name and by pattern, and a topic created meanwhile: every record is delivered to a member, in order."""
    async with running_cluster(2, chroot, tmp_path) as brokers, opened(chroot) as session:
        await create_topics(brokers[0], {"t": len(CODECS)})
        await fill(brokers, 0, NUMBER)
        described = {"zookeeper": chroot, "group": "g", "properties": PROPERTIES}
        one = await host_0_8.join("o8", topics=Pattern("white_list", "t|new"), **described)
        mine: set[tuple[int, int]] = set()
        async with our_member(chroot, "us", {"t": 1}) as us:
            two = await host_1_1.join("o1", topics=Pattern("white_list", "t.*,new"), **described)
            threads = ("g_o1-0", "g_o8-0", "g_us-0")
            await settled(session, shared("t", (threads[0], [0, 1]), (threads[1], [2]), (threads[2], [3])))
            await create_topics(brokers[0], {"new": 2})
            await settled(
                session,
                {
                    **shared("t", (threads[0], [0, 1]), (threads[1], [2]), (threads[2], [3])),
                    **shared("new", (threads[0], [0]), (threads[1], [1])),
                },
            )
            await fill(brokers, NUMBER, NUMBER + 20)

            def delivered() -> set[tuple[int, int]]:
                return mine | {(m.partition, m.offset) for m in (*one.messages, *two.messages) if m.topic == "t"}

            async def everything() -> bool:
                for got in await us.consumer.getmany(timeout_ms=50):
                    mine.update((one.partition, one.offset) for one in got.records)
                return len(delivered()) == len(CODECS) * (NUMBER + 20)

            await until(everything, 60, lambda: f"all records, got {len(delivered())}")
            for original in (one, two):
                for partition, records in read(original.messages).items():
                    assert all(value == record(offset).value for offset, value in records), partition
            await one.leave()
            await two.leave()
