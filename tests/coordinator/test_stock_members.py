"""Stock consumers in groups of our coordinator: among themselves, and beside ours, led by either."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from coordinator.service import mount
from kernel.waiting import until
from tests.support.brokers import broker_thread
from tests.support.consuming import partitions_of, producing
from tests.support.eager import eager
from tests.support.stock_members import CLIENTS, stock_member

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from kernel.values import TopicPartition
    from tests.support.consuming import Running
    from tests.support.stock_members import StockMember

    Member = Running | StockMember

EVERYTHING = partitions_of("t", 4)

_groups = itertools.count(1)


@pytest.fixture
def bootstrap(chroot: str, tmp_path: Path) -> Iterator[str]:
    with broker_thread(chroot, tmp_path, mount=(mount,), topics={"t": 4}) as address:
        yield address


async def shared(members: Sequence[Member], sizes: Sequence[int]) -> None:
    """Until the members own everything between them, in pieces of these sizes."""

    def done() -> bool:
        for member in members:
            assert member.failure is None, member.failure
        owned: list[frozenset[TopicPartition]] = [member.owned for member in members]
        return sorted(map(len, owned)) == sorted(sizes) and frozenset().union(*owned) == EVERYTHING

    await until(done, 20, lambda: f"pieces of {sizes}: {[sorted(member.owned) for member in members]}", every_s=0.05)


@pytest.mark.parametrize("kind", CLIENTS)
def test_two_stock_members_share_commit_and_take_over(bootstrap: str, kind: str) -> None:
    async def test() -> None:
        async with producing(bootstrap) as producer:
            await producer.send("t", 20)
            with stock_member(kind, bootstrap, "g", "t") as first:
                with stock_member(kind, bootstrap, "g", "t") as second:
                    await shared([first, second], [2, 2])
                    await producer.send("t", 5)
                    both = (first, second)
                    await until(lambda: len({r for m in both for r in m.read}) == 100, 15, "a hundred records")
                await shared([first], [4])
            with stock_member(kind, bootstrap, "g", "t") as later:
                await producer.send("t", 1)
                await until(lambda: len(later.read) >= 4, 15, lambda: f"the newest four, have {later.read}")
                assert sorted(later.read) == [(n, 25) for n in range(4)]

    asyncio.run(test())


@pytest.mark.parametrize("leader", ["ours", "theirs"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_our_member_and_a_stock_one_share_a_group(bootstrap: str, kind: str, leader: str) -> None:
    """Whoever comes first leads: it reads the other's subscription, the other its assignment."""

    async def test() -> None:
        ours = eager(bootstrap)
        async with producing(bootstrap) as producer:
            await producer.send("t", 10)
            with ExitStack() as stack:
                theirs: StockMember | None = None
                if leader == "theirs":
                    theirs = stack.enter_context(stock_member(kind, bootstrap, "g", "t"))
                    await shared([theirs], [4])
                await ours.begin({"t": 1})
                if theirs is None:
                    await shared([ours], [4])
                    theirs = stack.enter_context(stock_member(kind, bootstrap, "g", "t"))
                await shared([ours, theirs], [2, 2])
                await producer.send("t", 5)

                def read() -> int:
                    ours_read = {(record.partition, record.offset) for record in ours.records}
                    return len(ours_read | set(theirs.read))

                await until(lambda: read() == 60, 15, lambda: f"sixty records, have {read()}")
                theirs.stop()
                await shared([ours], [4])
        decided = [event for event in ours.tracer.of("phase_entered") if event["phase"] == "decide"]
        assert len(decided) >= 1 if leader == "ours" else len(decided) <= 1  # at most when theirs had left
        await ours.close()

    asyncio.run(test())


def test_all_kinds_of_members_share_one_group(bootstrap: str) -> None:
    async def test() -> None:
        with ExitStack() as stack:
            ours = await eager(bootstrap).begin({"t": 1})
            members: list[Member] = [ours]
            members += [stack.enter_context(stock_member(kind, bootstrap, "g", "t")) for kind in CLIENTS]
            await shared(members, [1, 1, 1, 1])
            await ours.close()
            await shared(members[1:], [1, 1, 2])

    asyncio.run(test())
