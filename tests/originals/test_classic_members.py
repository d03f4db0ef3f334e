"""Our classic members on a real broker 4.1.1: a join costs the same as for librdkafka's members."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import NamedTuple

import pytest

from comparison.originals.brokers import RealBroker
from tests.support.consumers.consuming import Owned, Running, partitions_of
from tests.support.consumers.eager import eager, generation_of, settled
from tests.support.java.originals import real_broker, require

EVERYTHING = partitions_of("t", 12)


class Cost(NamedTuple):
    """The cost of one join: of the owned partitions, how many stopped, and how many have another owner afterwards."""

    generations: int
    stopped: int
    moved: int
    joins: int
    syncs: int


#: Measured with librdkafka 2.x on a real broker 4.1.1, four members joined by one, identical in all repeats.
COSTS = {"eager": Cost(1, 12, 3, 6, 5), "static": Cost(1, 12, 3, 5, 5), "cooperative": Cost(2, 2, 2, 11, 10)}


@pytest.fixture(scope="module")
def broker_4_1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    require("4.1.1")
    with real_broker("4.1.1", tmp_path_factory.mktemp("broker-4.1")) as broker:
        broker.create_topic("t", 12)
        yield broker


def settings_of(design: str, name: str) -> dict[str, str]:
    strategy = "cooperative-sticky" if design == "cooperative" else "range"
    static = {"group.instance.id": name} if design == "static" else {}
    return {"partition.assignment.strategy": strategy, "client.id": name, **static}


def owners(members: list[Running]) -> dict[object, int]:
    return {tp: number for number, member in enumerate(members) for tp in member.owned}


def stopped(members: list[Running]) -> int:
    """Counted in partitions, over all members."""
    heard: list[Owned] = [gone for m in members for what in ("revoked", "lost") for gone in m.listener.of(what)]
    return sum(map(len, heard))


def asked(members: list[Running], api: str) -> int:
    return sum(event["api"] == api for member in members for event in member.tracer.of("request_answered"))


@pytest.mark.parametrize("design", COSTS)
async def test_join_on_a_real_broker_costs_the_same_as_for_stock_members(broker_4_1: RealBroker, design: str) -> None:
    async with AsyncExitStack() as stack:
        members: list[Running] = []
        for name in "abcde":
            had, generation = owners(members), generation_of(members[0]) if members else 0
            before = stopped(members), asked(members, "JoinGroup"), asked(members, "SyncGroup")
            member = eager(broker_4_1.bootstrap, design, settings_of(design, name))
            stack.push_async_callback(member.close)
            members.append(await member.begin({"t": 1}))
            await settled(members, EVERYTHING, timeout_s=30)
        now = owners(members)
        assert COSTS[design] == Cost(
            generation_of(members[0]) - generation,
            stopped(members) - before[0],
            sum(now[tp] != owner for tp, owner in had.items()),
            asked(members, "JoinGroup") - before[1],
            asked(members, "SyncGroup") - before[2],
        )


async def test_static_member_of_ours_restarts_on_a_real_broker_without_a_rebalance(broker_4_1: RealBroker) -> None:
    async with AsyncExitStack() as stack:

        async def joined(name: str) -> Running:
            member = eager(broker_4_1.bootstrap, "restarts", settings_of("static", name))
            stack.push_async_callback(member.close)
            return await member.begin({"t": 1})

        members = [await joined("a")]
        await settled(members, EVERYTHING, timeout_s=30)
        members.append(await joined("b"))
        await settled(members, EVERYTHING)
        generation, had = generation_of(members[0]), owners(members)
        for number, name in enumerate("ab"):  # the leader first: its response says to skip the assignment
            await members[number].close()
            members[number] = await joined(name)
            await settled(members, EVERYTHING)
        assert [generation_of(member) for member in members] == [generation] * 2
        assert owners(members) == had
        assert (asked(members, "JoinGroup"), asked(members, "SyncGroup"), stopped(members)) == (2, 2, 0)
