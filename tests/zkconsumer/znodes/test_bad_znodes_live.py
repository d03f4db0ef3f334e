"""Bad znodes in a live group: the error names the node, and everything recovers afterwards."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kernel.waiting import until
from kernel.zookeeper import paths
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.consumers.weak_members import at_rest, fetches, gives_up_soon
from tests.support.consumers.zookeeper import Member, member, owners, running_broker, settled, shared
from tests.support.zookeeper.sessions import opened

INTRUDER = paths.member_id("g", "intruder")
VALID = {"version": 1, "subscription": {"t": 1}, "pattern": "static", "timestamp": "1416000000000"}
UNREADABLE = {
    "empty": b"",
    "not JSON": b"t1",
    "not UTF-8": b"\xff\xfe{}",
    "no object": b'["t"]',
    "no pattern": b'{"subscription":{"t":1}}',
    "no subscription": b'{"pattern":"static"}',
    "streams as text": b'{"pattern":"static","subscription":{"t":"1"}}',
    "streams as a fraction": b'{"pattern":"static","subscription":{"t":1.5}}',
    "topics as a list": b'{"pattern":"static","subscription":["t"]}',
    "huge": b'{"pattern":"static","subscription":' + b"[" * 900_000,
    "a pattern that is none": b'{"pattern":"white_list","subscription":{"(":1}}',
}
BOTH = shared("t", ("g_c1-0", range(2)), ("g_c2-0", [2]))


@asynccontextmanager
async def group(chroot: str, folder: Path, **settings: str) -> AsyncIterator[tuple[ZooKeeperSession, list[Member]]]:
    """Two settled members that give up soon, and a session that writes bad znodes."""
    async with (
        running_broker(chroot, folder, {"t": 3}),
        opened(chroot) as session,
        member(chroot, "c1", {"t": 1}, **settings) as c1,
        member(chroot, "c2", {"t": 1}, **settings) as c2,
    ):
        await settled(session, BOTH)
        await at_rest(c1, c2)
        for each in (c1, c2):
            gives_up_soon(each, attempts=3, backoff_ms=30)
        yield session, [c1, c2]
        for each in (c1, c2):
            assert not each.tracer.of("member_failed")


async def everybody_fails(members: list[Member], named: str, before: list[int]) -> None:
    """Wait until every member's rebalance has failed since, with an error of its last attempt that names the node."""

    def failed() -> bool:
        return all(each.rebalances("failed") > number for each, number in zip(members, before, strict=True))

    await until(failed, 60, lambda: f"failures because of {named}: {[e.tracer.events[-1] for e in members]}")
    for each in members:
        assert named in str(each.tracer.of("attempt_ended")[-1].get("error"))


def failures(members: list[Member]) -> list[int]:
    return [each.rebalances("failed") for each in members]


async def touch(session: ZooKeeperSession) -> None:
    """A change that notifies every member."""
    data, _ = await session.get(paths.topic("t"))
    await session.set(paths.topic("t"), data)


async def test_unreadable_member_fails_all_members_by_name_until_removed(chroot, tmp_path):
    async with group(chroot, tmp_path) as (session, members):
        for data in UNREADABLE.values():
            before = failures(members)
            await session.create(INTRUDER, data)
            await everybody_fails(members, INTRUDER, before)
            assert {str(each.tracer.of("attempt_ended")[-2]["error"]) for each in members} == {
                str(each.tracer.of("attempt_ended")[-1]["error"]) for each in members
            }, "every attempt fails alike"
            assert await owners(session) == {}
            await session.delete(INTRUDER)
            await settled(session, BOTH)


async def test_unreadable_member_is_skipped_on_request(chroot, tmp_path):
    async with group(chroot, tmp_path, fix_skip_unreadable_members="true") as (session, members):
        for data in UNREADABLE.values():
            before = [each.rebalances() for each in members]
            await session.create(INTRUDER, data)
            await until(
                lambda b=before: all(each.rebalances() > n for each, n in zip(members, b, strict=True)),
                60,
                "all members to rebalance",
            )
            await settled(session, BOTH)
            await session.delete(INTRUDER)
            await settled(session, BOTH)
        assert failures(members) == [0, 0]


async def test_random_bytes_as_a_registration_crash_no_member(chroot, tmp_path):
    """A valid registration with random changes: it is read or refused, and the group recovers each time."""
    chosen = random.Random(1989)

    def damaged() -> bytes:
        data = bytearray(json.dumps(VALID).encode())
        for _ in range(chosen.randrange(1, 4)):
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        return bytes(data[: chosen.randrange(len(data))] if chosen.random() < 0.3 else data)

    async with group(chroot, tmp_path) as (session, _):
        for _ in range(15):
            await session.create(INTRUDER, damaged())
            await session.delete(INTRUDER)

        async def recovered() -> bool:
            # Also a member that gave up in the meantime, because another one had not released its partitions.
            await touch(session)
            return await owners(session) == BOTH

        await until(recovered, 60, "the group to recover", every_s=1)


async def test_unknown_owner_is_a_conflict_until_removed_and_the_next_change(chroot, tmp_path):
    async with group(chroot, tmp_path) as (session, members):
        taken = paths.owner("g", "t", 3)
        before = failures(members)
        await session.create(taken, b"nobody-0")
        await session.set(paths.topic("t"), b'{"version":1,"partitions":{"0":[0],"1":[0],"2":[0],"3":[0]}}')
        await everybody_fails(members[1:], "t-3", before[1:])
        assert members[1].tracer.of("attempt_ended")[-1]["outcome"] == "conflict"
        await session.delete(taken)
        await touch(session)
        await settled(session, shared("t", ("g_c1-0", range(2)), ("g_c2-0", (2, 3))))


@pytest.mark.parametrize("data", [b"", b"many", b"1.5", b"\xff"], ids=["empty", "a word", "a fraction", "not ASCII"])
async def test_malformed_offset_fails_its_owner_by_name(chroot, tmp_path, data):
    async with group(chroot, tmp_path) as (session, members):
        before = failures(members)
        path = paths.offset("g", "t", 0)
        await fetches(members[0])
        await members[0].consumer.commit()  # otherwise its rebalance may overwrite what follows with its reset
        await session.ensure_path(path)
        await session.set(path, data)
        await touch(session)
        await everybody_fails(members[:1], path, before[:1])
        await session.set(path, b"0")

        async def recovered() -> bool:
            # Also a member that gave up in the meantime, because another one had not released its partitions.
            await touch(session)
            return await owners(session) == BOTH

        await until(recovered, 60, "the group to recover", every_s=1)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"partitions":{"first":[0]}}', b'{"partitions":[0,1]}'],
    ids=["empty", "no object", "a partition without a number", "partitions as a list"],
)
async def test_unreadable_topic_fails_all_members_by_name(chroot, tmp_path, data):
    async with group(chroot, tmp_path) as (session, members):
        good, _ = await session.get(paths.topic("t"))
        before = failures(members)
        await session.set(paths.topic("t"), data)
        await everybody_fails(members, paths.topic("t"), before)
        await session.set(paths.topic("t"), good)
        await settled(session, BOTH)


async def test_topic_without_json_or_partitions_has_none_and_fails_no_member(chroot, tmp_path):
    """As in the original, no member owns anything until there are partitions again."""
    async with group(chroot, tmp_path) as (session, members):
        good, _ = await session.get(paths.topic("t"))
        for data in (b"t", b'{"version":1}'):
            await session.set(paths.topic("t"), data)
            await settled(session, {})
            await session.set(paths.topic("t"), good)
            await settled(session, BOTH)
        assert failures(members) == [0, 0]


async def test_partitions_map_with_gaps_is_read_as_it_is(chroot, tmp_path):
    async with group(chroot, tmp_path) as (session, _):
        good, _ = await session.get(paths.topic("t"))
        await session.set(paths.topic("t"), b'{"version":1,"partitions":{"7":[0],"0":[0],"10":[0]}}')
        await settled(session, shared("t", ("g_c1-0", [0, 7]), ("g_c2-0", [10])))
        await session.set(paths.topic("t"), good)
        await settled(session, BOTH)


async def test_unreadable_broker_fails_all_members_by_name(chroot, tmp_path):
    async with group(chroot, tmp_path) as (session, members):
        path = f"{paths.BROKER_IDS}/99"
        for data in (b"", b"h:9092", b'{"host":"h"}', b'{"host":1,"port":2}'):
            before = failures(members)
            await session.create(path, data)
            await touch(session)
            await everybody_fails(members, path, before)
            await session.delete(path)
            await touch(session)
            await settled(session, BOTH)
