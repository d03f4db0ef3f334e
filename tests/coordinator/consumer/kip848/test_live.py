"""Our KIP-848 consumer on a live broker of ours: joining, sharing, committing, leaving, and being fenced."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from coordinator.groups.consumer.requests import ConsumerSettings
from coordinator.service.mount import mount
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.brokers import create_topics, running_broker
from tests.support.consuming import committed_all, partitions_of, producing, shared_out
from tests.support.eager import bootstrap_of
from tests.support.reconciling import reconciling

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from kernel.broker.broker import Broker
    from tests.support.consuming import Running

EVERYTHING = partitions_of("t", 4)
MOUNT = partial(mount, consumer=ConsumerSettings(heartbeat_interval_ms=100))


@asynccontextmanager
async def laboratory(
    chroot: str, data_dir: Path, *settings: dict[str, str]
) -> AsyncIterator[tuple[Broker, list[Running]]]:
    """A broker with topic t of four partitions, and members that poll, one for each given settings."""
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, data_dir, mount=(MOUNT,)))
        await create_topics(broker, {"t": 4})
        running = []
        for given in settings:
            member = reconciling(bootstrap_of(broker), settings=given)
            stack.push_async_callback(member.close)
            running.append(await member.begin({"t": 1}))
        yield broker, running


def test_members_share_partitions_and_the_rest_take_over_those_of_one_that_leaves(chroot: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with laboratory(chroot, tmp_path, {}, {}, {}) as (_, members):
            await shared_out(members, EVERYTHING)
            await members[0].close()
            assert members[0].listener.of("revoked")
            await shared_out(members[1:], EVERYTHING)

    asyncio.run(test())


def test_what_a_member_keeps_is_neither_revoked_nor_assigned_again(chroot: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with laboratory(chroot, tmp_path, {}) as (broker, (first,)):
            await shared_out([first], EVERYTHING)
            second = await reconciling(bootstrap_of(broker)).begin({"t": 1})
            await shared_out([first, second], EVERYTHING)
            (revoked,) = first.listener.of("revoked")
            assert (len(revoked), first.owned) == (2, EVERYTHING - revoked)
            await until(lambda: len(first.listener.of("assigned")) == 2, 10, "the second assignment")
            assert first.listener.of("assigned") == [EVERYTHING, frozenset()]
            await second.close()

    asyncio.run(test())


def test_records_are_delivered_once_across_a_handover(chroot: str, tmp_path: Path) -> None:
    async def test() -> None:
        async with laboratory(chroot, tmp_path, {}) as (broker, (first,)), producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 10)
            await until(lambda: len(first.records) == 40, 30, "the first records")
            second = await reconciling(bootstrap_of(broker)).begin({"t": 1})
            await shared_out([first, second], EVERYTHING)
            await producer.send("t", 10)
            await until(lambda: len(first.records) + len(second.records) >= 80, 30, "the next records")
            assert (len(first.records), len(second.records)) == (60, 20)
            await second.close()

    asyncio.run(test())


def test_commits_carry_the_epoch_and_the_next_member_goes_on_from_them(chroot: str, tmp_path: Path) -> None:
    async def test() -> None:
        off = {"enable.auto.commit": "false"}
        async with laboratory(chroot, tmp_path, off) as (broker, (first,)), producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 5)
            await until(lambda: len(first.records) == 20, 30, "the records")
            await committed_all(first)
            assert (await first.consumer.commit({TopicPartition("t", 0): 3})).accepted
            epoch = first.tracer.of("partitions_assigned")[-1]["generation"]
            assert {event["generation"] for event in first.tracer.of("commit_answered")} == {epoch}
            await first.close()
            second = await reconciling(bootstrap_of(broker), settings=off).begin({"t": 1})
            await until(lambda: len(second.records) == 2, 30, "the two records after the commit")
            await second.close()

    asyncio.run(test())
