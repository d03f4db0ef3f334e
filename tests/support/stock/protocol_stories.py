"""What stock members that let the coordinator assign (KIP-848) go through on one of our brokers, by kinds of client.

The broker has a topic `t` of six partitions, and the settings of the story.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.consumers.consuming import partitions_of
from tests.support.consumers.reconciling import reconciling
from tests.support.stock.members import BROKERS, stock_member
from tests.support.wire.clients import WireConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    #: With bootstrap servers and two kinds of client.
    Story = Callable[[str, str, str], Coroutine[Any, Any, None]]

SETTINGS = {
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
}
EVERYTHING = partitions_of("t", 6)
PATIENCE_S = 60


async def share_and_leave(bootstrap: str, first_kind: str, second_kind: str) -> None:
    """Two share a topic that grows; one leaves."""
    async with stock_member(first_kind, bootstrap, "shared", "t", strategy=BROKERS) as first:
        await until(lambda: first.owned == EVERYTHING, PATIENCE_S, "the first to own everything")
        async with stock_member(second_kind, bootstrap, "shared", "t", strategy=BROKERS) as second:
            await until(lambda: len(first.owned) == len(second.owned) == 3, PATIENCE_S, "them to share")
            assert first.owned | second.owned == EVERYTHING
            await ask(bootstrap, Api.CreatePartitions, 3, topics=[{"name": "t", "count": 8}], timeout=10_000)
            await until(lambda: len(first.owned | second.owned) == 8, PATIENCE_S, "the new partitions to be shared out")
        await until(lambda: len(first.owned) == 8, PATIENCE_S, "the first to own everything again")
        assert first.failure is None


async def restart_static(bootstrap: str, first_kind: str, second_kind: str) -> None:
    """A static member that stops and starts again gets its partitions back, and the group keeps its epoch."""
    async with stock_member(first_kind, bootstrap, "static", "t", strategy=BROKERS, instance="one") as first:
        async with stock_member(second_kind, bootstrap, "static", "t", strategy=BROKERS, instance="two") as second:
            await until(lambda: len(first.owned) == len(second.owned) == 3, PATIENCE_S, "them to share")
            had, epoch = second.owned, await epoch_of(bootstrap, "static")
        async with stock_member(second_kind, bootstrap, "static", "t", strategy=BROKERS, instance="two") as second:
            await until(lambda: len(second.owned) == 3, PATIENCE_S, "it to have its partitions again")
            assert second.owned == had
            assert len(first.owned) == 3
            assert await epoch_of(bootstrap, "static") == epoch


async def freeze_and_wake(bootstrap: str, first_kind: str, second_kind: str) -> None:
    """A member that is frozen for longer than its session loses its partitions; awake, it is fenced and joins again."""
    async with (
        stock_member(first_kind, bootstrap, "frozen", "t", strategy=BROKERS) as first,
        stock_member(second_kind, bootstrap, "frozen", "t", strategy=BROKERS) as second,
    ):
        await until(lambda: len(first.owned) == len(second.owned) == 3, PATIENCE_S, "them to share")
        second.pause()
        try:
            await until(lambda: first.owned == EVERYTHING, PATIENCE_S, "the first to take over")
            epoch = await epoch_of(bootstrap, "frozen")
        finally:
            second.resume()
        await until(lambda: len(first.owned) == 3, PATIENCE_S, "the second to take part again")
        assert await epoch_of(bootstrap, "frozen") > epoch
        # It may not have reported the loss of its former part yet, and the first may have kept just that.
        await until(
            lambda: len(second.owned) == 3 and first.owned | second.owned == EVERYTHING,
            PATIENCE_S,
            lambda: f"the second to have the other part: {sorted(first.owned)}, {sorted(second.owned)}",
        )
        assert second.failure is None


async def share_with_ours(bootstrap: str, first_kind: str, second_kind: str) -> None:
    """Two share a topic with one of our members, which leaves and comes back; then one of them leaves."""
    ours = await reconciling(bootstrap, "mixed").begin({"t": 1})
    try:
        await until(lambda: ours.owned == EVERYTHING, PATIENCE_S, "ours to own everything")
        async with stock_member(first_kind, bootstrap, "mixed", "t", strategy=BROKERS) as first:
            async with stock_member(second_kind, bootstrap, "mixed", "t", strategy=BROKERS) as second:
                members = (ours, first, second)
                await until(lambda: [len(each.owned) for each in members] == [2, 2, 2], PATIENCE_S, "them to share")
                assert ours.owned | first.owned | second.owned == EVERYTHING
                await ours.close()
                await until(lambda: len(first.owned) == len(second.owned) == 3, PATIENCE_S, "the others to take over")
                assert first.owned | second.owned == EVERYTHING
                ours = await reconciling(bootstrap, "mixed").begin({"t": 1})
                await until(lambda: len(ours.owned) == len(first.owned) == 2, PATIENCE_S, "ours to have a part again")
            await until(lambda: len(ours.owned) == len(first.owned) == 3, PATIENCE_S, "the two left to share")
            assert ours.owned | first.owned == EVERYTHING
            assert first.failure is None
        await until(lambda: ours.owned == EVERYTHING, PATIENCE_S, "ours to own everything again")
        assert ours.failure is None
    finally:
        await ours.close()


#: With the settings of their broker. Kafka's own session timeout gives a JVM time to start.
STORIES: dict[Story, dict[str, str]] = {
    share_and_leave: SETTINGS,
    restart_static: SETTINGS,
    share_with_ours: SETTINGS,
    freeze_and_wake: {**SETTINGS, "group.consumer.session.timeout.ms": "3000"},
}


async def epoch_of(bootstrap: str, group: str) -> int:
    return int((await described(bootstrap, group)).group_epoch)


async def described(bootstrap: str, group: str) -> Any:
    """The group's row of ConsumerGroupDescribe."""
    return (await ask(bootstrap, Api.ConsumerGroupDescribe, 0, group_ids=[group])).groups[0]


async def ask(bootstrap: str, api: Api, version: int, **body: Any) -> Any:
    host, port = bootstrap.split(":")
    connection = await WireConnection.open(host, int(port), "admin")
    try:
        return await connection.send(api, version, body)
    finally:
        connection.close()
