"""Cooperative members on a live broker: partitions that move stop, the others are delivered all the time (KIP-429)."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from coordinator.service.mount import mount
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import Listener, NumberedProducer, Owned, Running, partitions_of, producing
from tests.support.consumers.eager import bootstrap_of, eager, generation_of, joining, settled

COOPERATIVE = {"partition.assignment.strategy": "cooperative-sticky"}
EVERYTHING = partitions_of("t", 12)


class HeldListener(Listener):
    """While it is held, a member that takes partitions over has to wait."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()
        self.free.set()

    async def on_assigned(self, stream: int, partitions: Owned) -> None:
        await super().on_assigned(stream, partitions)
        await self.free.wait()


def requests(members: list[Running]) -> Counter[str]:
    return Counter(str(event["api"]) for member in members for event in member.tracer.of("request_answered"))


def stopped(members: list[Running]) -> int:
    gone = [*(event for m in members for kind in ("revoked", "lost") for event in m.tracer.of(f"partitions_{kind}"))]
    return sum(len(event["partitions"]) for event in gone)


def delivered(members: list[Running]) -> int:
    return sum(len(member.records) for member in members)


async def delivered_while_joining(members: list[Running], producer: NumberedProducer) -> None:
    await until(lambda: all(map(joining, members)), 60, "the Joins to be parked")
    expected = [len(member.records) + 5 * len(member.owned) for member in members]
    await producer.send("t", 5)
    await until(lambda: [len(member.records) for member in members] == expected, 60, "records of the kept partitions")
    outcome = await members[0].consumer.commit()
    assert set(outcome.refused.values()) == {"REBALANCE_IN_PROGRESS"}
    assert all(map(joining, members))


async def test_join_moves_two_of_twelve_partitions_while_the_others_are_delivered_in_both_rounds(
    chroot: str, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path, mount=(mount,)))
        await create_topics(broker, {"t": 12})
        producer = await stack.enter_async_context(producing(bootstrap_of(broker)))

        async def joined(name: str, listener: Listener) -> Running:
            member = eager(bootstrap_of(broker), settings={**COOPERATIVE, "client.id": name})
            member.listener = listener
            stack.push_async_callback(member.close)
            return await member.begin({"t": 1})

        slow = HeldListener()
        members = [await joined("a", slow), *[await joined(name, Listener()) for name in "bcd"]]
        await settled(members, EVERYTHING)
        generation, had, asked = generation_of(members[0]), [m.owned for m in members], requests(members)
        before = stopped(members)

        late, others = members[0], members[1:]
        await late.pause()  # it has yet to join: the others' joins are parked
        joiner = await joined("e", Listener())
        await delivered_while_joining(others, producer)
        slow.free.clear()
        late.resume()
        await until(lambda: generation_of(late) == generation + 1, 60, "the first round to be over")
        await until(lambda: all(generation_of(m) == generation + 1 for m in others), 60, "all members to finish")
        await delivered_while_joining(others, producer)
        slow.free.set()
        everyone = [*members, joiner]
        await settled(everyone, EVERYTHING)

        assert generation_of(joiner) == generation + 2
        assert sorted(len(member.owned) for member in everyone) == [2, 2, 2, 3, 3]
        assert stopped(members) - before == 2
        assert all(member.owned <= owned for member, owned in zip(members, had, strict=True))
        spent = requests(everyone) - asked
        assert (spent["JoinGroup"], spent["SyncGroup"]) == (11, 10)

        before = stopped(members)
        await joiner.close()
        await settled(members, EVERYTHING)
        assert generation_of(members[0]) == generation + 3
        assert stopped(members) == before

        await until(lambda: delivered(everyone) >= 120, 60, "the rest to be read")
        assert delivered(everyone) == 120  # nothing twice: partitions that moved were committed first
        assert not any(member.listener.of("lost") for member in everyone)
