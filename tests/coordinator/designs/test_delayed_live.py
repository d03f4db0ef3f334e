"""Article 002's three rounds with a short delay: our members, our broker, a real ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from coordinator.service.mount import mount
from kernel.clock import NS_PER_MS, SystemClock
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import Owned, Running, partitions_of, producing, shared_out
from tests.support.consumers.eager import bootstrap_of, eager, rebalancing

#: Long enough for a member to return within it, on a busy machine too.
DELAY_MS = 12_000
EVERYTHING = partitions_of("t", 4)
GONE = ("partitions_revoked", "partitions_lost")


@dataclass
class Article002:
    """C1 has led from the beginning; C2 has just left, and its partitions wait for it."""

    bootstrap: str
    c1: Running
    c3: Running
    lost: Owned
    kept: dict[str, Owned]
    before: dict[str, int]  #: {member: how many events its trace had when C2 left}
    left_ns: int  #: a little before C2 left

    @property
    def staying(self) -> tuple[Running, Running]:
        return self.c1, self.c3

    def since(self, member: Running, *kinds: str) -> list[dict[str, object]]:
        """The member's trace since C2 left."""
        return [e for e in member.tracer.events[self.before[name(member)] :] if e["kind"] in kinds]

    def rounds(self, member: Running) -> list[int]:
        """When rebalances succeeded for the member, since C2 left; nanoseconds."""
        return [int(str(e["ns"])) for e in self.since(member, "rebalance_ended") if e["outcome"] == "ok"]

    def described(self) -> str:
        """For the message of a wait that failed."""
        what = ("rebalance_triggered", "rebalance_started", "attempt_ended", "rebalance_ended", *GONE)
        return "; ".join(
            f"{name(m)}: "
            + ", ".join(
                f"{e['kind']} {e.get('trigger') or e.get('outcome') or ''}{e.get('error') or ''}"
                for e in self.since(m, *what)
            )
            for m in self.staying
        )

    def delivered_between(self, member: Running, after_ns: int, before_ns: int) -> set[int]:
        events = self.since(member, "records_delivered")
        return {int(str(e["partition"])) for e in events if after_ns < int(str(e["ns"])) < before_ns}


def name(member: Running) -> str:
    return str(member.tracer.events[0]["process"])


def member_of(bootstrap: str) -> Running:
    settings = {"partition.assignment.strategy": "delayed", "scheduled.rebalance.max.delay.ms": str(DELAY_MS)}
    return eager(bootstrap, settings=settings)


@asynccontextmanager
async def without_c2(chroot: str, tmp_path: Path) -> AsyncIterator[Article002]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path, mount=(mount,)))
        await create_topics(broker, {"t": 4})
        bootstrap = bootstrap_of(broker)
        producer = await stack.enter_async_context(producing(bootstrap))
        sending = asyncio.create_task(send_forever(producer))
        stack.callback(sending.cancel)
        members = []
        for _ in range(3):
            members.append(await member_of(bootstrap).begin({"t": 1}))
            stack.push_async_callback(members[-1].close)
            await shared_out(members, EVERYTHING)
        c1, c2, c3 = members
        await until(lambda: sorted(len(m.owned) for m in members) == [1, 1, 2], 60, "an even share")
        await until(lambda: not any(map(rebalancing, members)), 60, "all members to finish the last round")
        kept = {name(member): member.owned for member in (c1, c3)}
        before = {name(member): len(member.tracer.events) for member in (c1, c3)}
        story = Article002(bootstrap, c1, c3, c2.owned, kept, before, SystemClock().monotonic_ns())
        await c2.close()
        yield story


async def send_forever(producer) -> None:  # type: ignore[no-untyped-def]
    while True:
        await producer.send("t", 1)
        await asyncio.sleep(0.05)


def goes_on(story: Article002, member: Running, ended_ns: int) -> bool:
    """None of its partitions has stopped, and all of them were delivered between its first round and the last."""
    kept = story.kept[name(member)]
    delivered = story.delivered_between(member, story.rounds(member)[0], ended_ns)
    return not story.since(member, *GONE) and kept <= member.owned and delivered == numbers(kept)


def assigned_at_ns(events: list[dict[str, object]], partitions: Owned) -> int:
    """When `partitions_assigned` events have named all of these for the first time."""

    def came(event: dict[str, object]) -> set[tuple[str, int]]:
        return {(row["topic"], row["partition"]) for row in event["partitions"]}  # type: ignore[attr-defined]

    wanted = {(tp.topic, tp.partition) for tp in partitions}
    return next(int(str(e["ns"])) for e in events if wanted <= came(e))


async def test_member_that_returns_gets_its_partitions_back_at_the_end_of_the_delay(
    chroot: str, tmp_path: Path
) -> None:
    """Three rounds: it leaves, it returns, the delay ends. The others deliver during all of them."""
    async with AsyncExitStack() as stack:
        story = await stack.enter_async_context(without_c2(chroot, tmp_path))
        await until(lambda: all(map(story.rounds, story.staying)), 60, "the first round")
        returned = await member_of(story.bootstrap).begin({"t": 1})
        stack.push_async_callback(returned.close)
        await until(lambda: returned.owned == story.lost, 60, lambda: f"{returned.owned} to be {story.lost}")
        await until(
            lambda: all(len(story.rounds(m)) == 3 for m in story.staying),
            60,
            lambda: f"three rounds: {story.described()}",
        )
        await until(lambda: {r.partition for r in returned.records} == numbers(story.lost), 60, "records again")

        ended_ns = assigned_at_ns(returned.tracer.of("partitions_assigned"), story.lost)
        assert ended_ns - story.left_ns >= DELAY_MS * NS_PER_MS
        await until(lambda: len(returned.tracer.of("rebalance_ended")) == 2, 60, "its two rounds to end")
        first, second = (int(str(e["ns"])) for e in returned.tracer.of("rebalance_ended"))
        assert first < ended_ns < second, "it returned without partitions, and got its own a round later"
        triggers = [str(e["trigger"]) for m in story.staying for e in story.since(m, "rebalance_started")]
        triggers += [str(e["trigger"]) for e in returned.tracer.of("rebalance_started")]
        assert "scheduled" in triggers
        for member in story.staying:
            assert member.owned == story.kept[name(member)]
            assert goes_on(story, member, ended_ns)
            assert len(story.rounds(member)) == 3


async def test_partitions_of_a_member_that_stays_away_go_to_the_others_at_the_end_of_the_delay(
    chroot: str, tmp_path: Path
) -> None:
    async with without_c2(chroot, tmp_path) as story:
        await until(lambda: all(map(story.rounds, story.staying)), 60, "the first round")
        await shared_out(story.staying, EVERYTHING, timeout_s=60)
        await until(
            lambda: all(len(story.rounds(m)) == 2 for m in story.staying),
            60,
            lambda: f"two rounds: {story.described()}",
        )
        takers = [member for member in story.staying if member.owned & story.lost]
        ended_ns = min(
            assigned_at_ns(story.since(member, "partitions_assigned"), member.owned & story.lost) for member in takers
        )
        assert ended_ns - story.left_ns >= DELAY_MS * NS_PER_MS, "no member waited for C2"
        assert all(goes_on(story, member, ended_ns) for member in story.staying)


def numbers(partitions: frozenset[TopicPartition]) -> set[int]:
    return {tp.partition for tp in partitions}
