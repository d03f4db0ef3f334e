"""Our KIP-848 members on a real broker 4.1.1, which assigns to them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.errors import GroupRefused
from kernel.waiting import until
from tests.support.consumers.consuming import committed_all, partitions_of, producing, shared_out
from tests.support.consumers.reconciling import QUICK_GROUPS, reconciling
from tests.support.java.originals import real_broker, require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comparison.originals.brokers import RealBroker
    from tests.support.consumers.consuming import Running

EVERYTHING = partitions_of("t", 6)
QUIET = {"auto.commit.interval.ms": "600000"}


@pytest.fixture(scope="module")
def broker_4_1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    require("4.1.1")
    with real_broker("4.1.1", tmp_path_factory.mktemp("broker-4.1"), settings=QUICK_GROUPS) as broker:
        broker.create_topic("t", 6)
        yield broker


def delivered(*members: Running) -> int:
    return sum(len(member.records) for member in members)


async def test_members_join_hand_over_and_leave_without_a_duplicate(broker_4_1: RealBroker) -> None:
    async with AsyncExitStack() as stack, producing(broker_4_1.bootstrap) as producer:

        async def joined(**settings: str) -> Running:
            given = {**QUIET, **{name.replace("_", "."): value for name, value in settings.items()}}
            member = reconciling(broker_4_1.bootstrap, "hand-over", given)
            stack.push_async_callback(member.close)
            return await member.begin({"t": 1})

        await producer.send("t", 10)
        first = await joined()
        await shared_out([first], EVERYTHING)
        await until(lambda: delivered(first) == 60, 60, "the first records")
        second, third = await joined(), await joined(group_instance_id="third")
        await shared_out([first, second, third], EVERYTHING)
        assert len(first.owned) == 2
        await producer.send("t", 10)
        await until(lambda: delivered(first, second, third) >= 120, 60, "the next records")
        for member in (first, second, third):
            await committed_all(member)
        had, revoked = third.owned, len(second.listener.of("revoked"))
        await third.close()
        again = await joined(group_instance_id="third")
        await until(lambda: again.owned == had, 60, "the static member's own partitions")
        assert len(second.listener.of("revoked")) == revoked
        await first.close()
        await shared_out([second, again], EVERYTHING)
        await producer.send("t", 10)
        await until(lambda: delivered(first, second, third, again) >= 180, 60, "the last records")
        assert delivered(first, second, third, again) == 180


async def test_member_that_does_not_poll_is_told_of_its_loss_and_joins_again(broker_4_1: RealBroker) -> None:
    idle = await reconciling(broker_4_1.bootstrap, "idle", {"max.poll.interval.ms": "1500"}).begin({"t": 1})
    busy = await reconciling(broker_4_1.bootstrap, "idle").begin({"t": 1})
    await shared_out([idle, busy], EVERYTHING)
    (before,) = idle.consumer.member_ids
    await idle.pause()
    await shared_out([busy], EVERYTHING)
    idle.resume()
    await shared_out([idle, busy], EVERYTHING)
    assert idle.listener.of("lost")
    assert idle.consumer.member_ids == (before,)
    await idle.close()
    await busy.close()


async def test_taken_instance_id_and_unknown_assignor_are_refused_as_by_our_broker(broker_4_1: RealBroker) -> None:
    named = {"group.instance.id": "one"}
    first = await reconciling(broker_4_1.bootstrap, "refused", named).begin({"t": 1})
    await shared_out([first], EVERYTHING)
    for settings, error in ((named, "UNRELEASED_INSTANCE_ID"), ({"group.remote.assignor": "nearest"}, "ASSIGNOR")):
        second = await reconciling(broker_4_1.bootstrap, "refused", settings).begin({"t": 1})
        await until(lambda m=second: m.failure, 60, "the refusal")
        with pytest.raises(GroupRefused, match=error):
            await second.pause()
        await second.close()
    assert first.owned == EVERYTHING
    await first.close()


async def test_regular_expression_is_matched_by_the_broker(broker_4_1: RealBroker) -> None:
    """The member knows only the ids of the topics that it is given, and looks their names up."""
    broker_4_1.create_topic("r-1", 2)
    broker_4_1.create_topic("r-2", 1)
    member = reconciling(broker_4_1.bootstrap, "matched")
    assert isinstance(member.consumer, Kip848Consumer)
    await member.consumer.start()
    await member.consumer.subscribe_regex("r-[0-9]", listener=member.listener)
    member.resume()
    await shared_out([member], partitions_of("r-1", 2) | partitions_of("r-2", 1))
    await member.resubscribe({"t": 1})
    await shared_out([member], EVERYTHING)
    await member.pause()
    await member.consumer.subscribe_regex("r-2(", listener=member.listener)
    member.resume()
    await until(lambda: member.failure, 60, "the refusal")
    with pytest.raises(GroupRefused, match=r"INVALID_REGULAR_EXPRESSION.*RE2"):
        await member.pause()
    await member.close()
