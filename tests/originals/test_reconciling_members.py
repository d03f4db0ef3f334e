"""Our members that let the coordinator assign (KIP-848), on a real broker 4.1.1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest

from comparison.originals.brokers import RealBroker
from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.errors import GroupRefused
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.consumers.consuming import Running, committed_all, partitions_of, producing, shared_out
from tests.support.consumers.reconciling import QUICK_GROUPS, reconciling
from tests.support.java.originals import real_broker, require
from tests.support.stock.members import BROKERS, stock_member
from tests.support.stock.protocol_stories import ask, epoch_of

EVERYTHING = partitions_of("t", 12)


@pytest.fixture(scope="module")
def broker_4_1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    require("4.1.1")
    with real_broker("4.1.1", tmp_path_factory.mktemp("broker-4.1"), settings=QUICK_GROUPS) as broker:
        broker.create_topic("t", 12)
        yield broker


class Group:
    """Members of one group, closed in the end."""

    def __init__(self, broker: RealBroker, name: str, stack: AsyncExitStack) -> None:
        self.broker, self.name, self.stack = broker, name, stack
        self.members: list[Running] = []

    async def join(self, **settings: str) -> Running:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        member = reconciling(self.broker.bootstrap, self.name, given)
        self.stack.push_async_callback(member.close)
        self.members.append(await member.begin({"t": 1}))
        return member

    async def settle(self) -> int:
        """The epoch when all partitions are owned again."""
        await shared_out(self.members, EVERYTHING)
        return await epoch_of(self.broker.bootstrap, self.name)

    def owners(self) -> dict[object, int]:
        return {tp: number for number, member in enumerate(self.members) for tp in member.owned}

    def stopped(self) -> int:
        """Partitions that were taken from members."""
        heard = [gone for m in self.members for what in ("revoked", "lost") for gone in m.listener.of(what)]
        return sum(map(len, heard))


async def test_join_on_a_real_broker_costs_the_same_as_for_stock_members(broker_4_1: RealBroker) -> None:
    """Measured with librdkafka: one epoch, two partitions stop and move, when a fifth joins four."""
    async with AsyncExitStack() as stack:
        group = Group(broker_4_1, "costs", stack)
        for _ in range(4):
            await group.join()
            epoch = await group.settle()
        had, stopped = group.owners(), group.stopped()
        await group.join()
        assert await group.settle() == epoch + 1
        now = group.owners()
        assert (group.stopped() - stopped, sum(now[tp] != owner for tp, owner in had.items())) == (2, 2)
        leaver = group.members.pop(0)
        await leaver.close()
        assert await group.settle() == epoch + 2


async def test_static_member_restarts_without_a_new_epoch(broker_4_1: RealBroker) -> None:
    async with AsyncExitStack() as stack:
        group = Group(broker_4_1, "restarts", stack)
        await group.join(group_instance_id="one")
        await group.settle()
        await group.join(group_instance_id="two")
        epoch, had = await group.settle(), group.owners()
        await group.members.pop().close()
        await group.join(group_instance_id="two")
        assert await group.settle() == epoch
        assert group.owners() == had


async def test_expelled_member_comes_back_under_its_id(broker_4_1: RealBroker) -> None:
    async with AsyncExitStack() as stack:
        group = Group(broker_4_1, "expelled", stack)
        member = await group.join(enable_auto_commit="false")
        epoch = await group.settle()
        (before,) = member.consumer.member_ids
        named = [{"member_id": before, "group_instance_id": None}]
        answer = await ask(broker_4_1.bootstrap, Api.LeaveGroup, 5, group_id="expelled", members=named)
        assert answer.members[0].error_code.name == "none"
        await until(lambda: member.listener.of("lost") == [EVERYTHING], 30, "the notification of the loss")
        assert await group.settle() == epoch + 2
        assert member.consumer.member_ids == (before,)


@pytest.mark.parametrize(
    ("settings", "error"),
    [({"group_instance_id": "one"}, "UNRELEASED_INSTANCE_ID"), ({"group_remote_assignor": "nearest"}, "ASSIGNOR")],
    ids=["instance id that is taken", "unknown assignor"],
)
async def test_second_member_is_refused_as_by_our_broker_and_the_first_goes_on(
    broker_4_1: RealBroker, settings: dict[str, str], error: str
) -> None:
    async with AsyncExitStack() as stack:
        group = Group(broker_4_1, f"refused-{error}", stack)
        first = await group.join(group_instance_id="one")
        epoch = await group.settle()
        second = await group.join(**settings)
        await until(lambda: second.failure is not None, 60, "the second to fail")
        with pytest.raises(GroupRefused, match=error):
            await second.pause()
        group.members.remove(second)
        assert await group.settle() == epoch
        assert first.failure is None


async def test_ours_and_librdkafkas_share_a_group(broker_4_1: RealBroker) -> None:
    async with AsyncExitStack() as stack:
        group = Group(broker_4_1, "shared", stack)
        ours = await group.join()
        await group.settle()
        async with stock_member("confluent", broker_4_1.bootstrap, "shared", "t", strategy=BROKERS) as other:
            await until(lambda: len(ours.owned) == len(other.owned) == 6, 30, "them to share")
            assert ours.owned | other.owned == EVERYTHING
        await group.settle()


async def test_members_join_hand_over_and_leave_without_a_duplicate(broker_4_1: RealBroker) -> None:
    async with AsyncExitStack() as stack, producing(broker_4_1.bootstrap) as producer:
        group = Group(broker_4_1, "hand-over", stack)
        everyone: list[Running] = []

        async def joined(number: int) -> None:
            everyone.extend([await group.join(auto_commit_interval_ms="600000") for _ in range(number)])
            await group.settle()

        async def delivered(number: int) -> None:
            """Ten more records in each partition."""
            await producer.send("t", 10)
            await until(lambda: sum(len(member.records) for member in everyone) >= number, 60, f"{number} records")

        await joined(1)
        await delivered(120)
        await joined(2)
        assert {len(member.owned) for member in everyone} == {4}
        await delivered(240)
        for member in everyone:
            await committed_all(member)
        await group.members.pop(0).close()
        await group.settle()
        await delivered(360)
        assert sum(len(member.records) for member in everyone) == 360


async def test_member_that_does_not_poll_is_told_of_its_loss_and_joins_again(broker_4_1: RealBroker) -> None:
    async with AsyncExitStack() as stack:
        group = Group(broker_4_1, "idle", stack)
        idle, busy = await group.join(max_poll_interval_ms="1500"), await group.join()
        await group.settle()
        (before,) = idle.consumer.member_ids
        await idle.pause()
        await shared_out([busy], EVERYTHING)
        idle.resume()
        await group.settle()
        assert idle.listener.of("lost")
        assert idle.consumer.member_ids == (before,)


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
