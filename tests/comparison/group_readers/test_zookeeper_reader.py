"""A group as its znodes have it: what is there, what cannot be read, and what reading costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from comparison.group_readers.columns import GroupSeen, MemberRow, Subscribed
from comparison.group_readers.zookeeper import ZooKeeperReader
from kernel.values import TopicPartition
from kernel.zookeeper import paths
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import opened
from zkconsumer.znodes.payloads import registration_payload

T = [TopicPartition("t", number) for number in range(3)]


def read(chroot: str, nodes: Mapping[str, bytes], *, times: int = 1) -> tuple[GroupSeen, ListTracer]:
    """The group g with these znodes, as last read, and what was sent for all readings."""

    async def run() -> tuple[GroupSeen, ListTracer]:
        async with opened(chroot) as session:
            for path, data in nodes.items():
                await session.create(path, data, makepath=True)
        tracer = ListTracer()
        reader = await ZooKeeperReader.open(chroot, "g", tracer=tracer)
        try:
            for _ in range(times):
                found = await reader.read()
        finally:
            await reader.close()
        return found, tracer

    return asyncio.run(run())


NODES = {
    paths.topic("t"): b'{"version":1,"partitions":{"0":[1],"1":[1],"2":[1]}}',
    paths.member_id("g", "g_host-1"): registration_payload({"t": 2}, 0),
    paths.member_id("g", "g_host-2"): registration_payload({"t": 1}, 0),
    paths.owner("g", "t", 0): b"g_host-1-0",
    paths.owner("g", "t", 1): b"g_host-1-1",
    paths.offset("g", "t", 0): b"7",
}


def test_members_owners_and_offsets_are_those_of_the_znodes(chroot: str) -> None:
    seen, _ = read(chroot, NODES)
    assert [(row.partition, row.current, row.owner) for row in seen.partitions] == [
        (T[0], 7, "g_host-1-0"),
        (T[1], None, "g_host-1-1"),
        (T[2], None, ""),
    ]
    assert seen.members == (
        MemberRow(member="g_host-1", owned=(T[0], T[1]), subscribed=Subscribed(topics=("t",)), streams=2),
        MemberRow(member="g_host-2", subscribed=Subscribed(topics=("t",)), streams=1),
    )
    assert seen.state == "1 of 3 unowned"
    assert seen.problem == "log ends are unknown: no broker is registered"


def test_znodes_that_cannot_be_read_are_named_and_the_others_shown(chroot: str) -> None:
    broken = {
        **NODES,
        paths.offset("g", "t", 1): b"many",
        paths.member_id("g", "g_host-3"): b"{}",
        f"{paths.BROKER_IDS}/1": b"[]",
    }
    seen, _ = read(chroot, broken)
    assert [row.current for row in seen.partitions] == [7, None, None]
    assert [member.member for member in seen.members] == ["g_host-1", "g_host-2", "g_host-3"]
    for name in ("offsets/t/1", "ids/g_host-3", "brokers/ids/1"):
        assert name in seen.problem


def test_group_that_does_not_exist_has_nothing(chroot: str) -> None:
    seen, _ = read(chroot, {})
    assert not seen.members
    assert not seen.partitions
    assert seen.state == "Empty"


def test_reading_sends_reads_only_and_reads_registrations_once(chroot: str) -> None:
    _, tracer = read(chroot, NODES, times=2)
    sent = [(event["op"], event["path"]) for event in tracer.of("zk_op")]
    assert {op for op, _ in sent} <= {"getChildren", "getData", "exists"}
    ids = [path for _, path in sent if path.startswith(paths.member_ids("g") + "/")]
    assert len(ids) == 2
    # ids, owners, offsets and brokers; the topic; three owners and three offsets; whether offsets are in Kafka.
    assert len(sent) - len(ids) <= 2 * (4 + 1 + 6 + 1)
    assert not tracer.of("zk_notified")
