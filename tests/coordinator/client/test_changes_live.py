"""Members that change their subscriptions on a live broker: to other topics, to none, and to topics again."""

from __future__ import annotations

from collections import Counter

import pytest

from kernel.errors import UserError
from kernel.waiting import until
from tests.coordinator.client.conftest import Places
from tests.support.consumers.consuming import Listener, partitions_of, producing, shared_out
from tests.support.consumers.eager import generation_of, settled


async def test_change_of_topics_costs_one_rebalance_and_others_take_over_the_old_partitions(places: Places) -> None:
    async with places.place() as place:
        t, u = place.topic("t"), place.topic("u")
        await place.topics.create({t: 4, u: 2})
        stays = await place.member().begin({t: 1})
        goes = await place.member().begin({t: 1})
        await shared_out([stays, goes], partitions_of(t, 4))
        before = generation_of(stays), goes.owned
        await goes.resubscribe({u: 1})
        await shared_out([stays, goes], partitions_of(t, 4) | partitions_of(u, 2))
        assert goes.owned == partitions_of(u, 2)
        assert generation_of(stays) == generation_of(goes) == before[0] + 1
        assert goes.listener.heard[-2:] == [("revoked", 0, before[1]), ("assigned", 0, partitions_of(u, 2))]
        assert goes.tracer.of("rebalance_started")[-1]["trigger"] == "subscription-changed"


async def test_cooperative_member_that_changes_its_topics_keeps_common_ones(places: Places) -> None:
    async with places.place() as place:
        t, u = place.topic("t"), place.topic("u")
        await place.topics.create({t: 2, u: 2})
        member = await place.member(partition_assignment_strategy="cooperative-sticky").begin({t: 1, u: 1})
        await settled([member], partitions_of(t, 2) | partitions_of(u, 2))
        before = generation_of(member)
        await member.resubscribe({t: 1})
        await settled([member], partitions_of(t, 2))
        await member.resubscribe({t: 1, u: 1})
        await settled([member], partitions_of(t, 2) | partitions_of(u, 2))
        assert generation_of(member) == before + 2
        changes = [(what, partitions) for what, _, partitions in member.listener.heard[1:] if partitions]
        assert changes == [("revoked", partitions_of(u, 2)), ("assigned", partitions_of(u, 2))]


async def test_member_that_unsubscribes_resumes_at_its_offsets_when_it_subscribes_again(places: Places) -> None:
    async with places.place() as place, producing(places.bootstrap) as producer:
        t = place.topic("t")
        await place.topics.create({t: 2})
        await producer.send(t, 10)
        member = place.member(auto_commit_interval_ms="600000")
        with pytest.raises(UserError, match="subscribe before you poll"):
            await member.consumer.getmany(timeout_ms=0)
        await member.consumer.unsubscribe()  # from nothing
        await member.begin({t: 1})
        await until(lambda: len(member.records) == 20, 60, lambda: f"20 records, got {len(member.records)}")
        (old,) = member.consumer.member_ids
        assert not (await member.consumer.commit()).refused
        await member.unsubscribe()
        await member.consumer.unsubscribe()
        assert member.owned == frozenset()
        assert member.consumer.member_ids == ()
        assert member.listener.heard[-1] == ("revoked", 0, partitions_of(t, 2))
        left = [event["error"] for event in member.tracer.of("request_answered") if event["api"] == "LeaveGroup"]
        assert left == [""]
        with pytest.raises(UserError, match="subscribe before you poll"):
            await member.consumer.getmany(timeout_ms=0)
        await producer.send(t, 1)
        await member.resubscribe({t: 1})
        await until(lambda: len(member.records) >= 22, 60, lambda: f"22 records, got {len(member.records)}")
        assert set(Counter((record.partition, record.offset) for record in member.records).values()) == {1}
        assert member.consumer.member_ids != (old,)
        assert next(event["member"] for event in member.tracer.of("member_started")) == old


async def test_listener_that_raises_while_the_member_unsubscribes_reaches_the_caller(places: Places) -> None:
    class Raises(Listener):
        async def on_revoked(self, stream: int, partitions: object) -> None:
            raise LookupError("the application's own")

    async with places.place() as place:
        t = place.topic("t")
        await place.topics.create({t: 1})
        member = place.member()
        member.listener = Raises()
        await member.begin({t: 1})
        await shared_out([member], partitions_of(t, 1))
        with pytest.raises(LookupError, match="the application's own"):
            await member.unsubscribe()
        assert member.owned == frozenset()
        member.listener = Listener()
        await member.resubscribe({t: 1})
        await shared_out([member], partitions_of(t, 1))
        assert member.listener.of("assigned") == [partitions_of(t, 1)]


async def test_streams_come_and_go_with_the_subscription(places: Places) -> None:
    async with places.place() as place:
        t, u = place.topic("t"), place.topic("u")
        await place.topics.create({t: 4, u: 2})
        member = await place.member().begin({t: 1})
        await shared_out([member], partitions_of(t, 4))
        everything = partitions_of(t, 4) | partitions_of(u, 2)

        async def sharing(streams: int) -> None:
            def done() -> bool:
                mine = member.consumer.assignment().values()
                return len(mine) == streams and all(mine) and sum(map(len, mine)) == 6 and member.owned == everything

            await until(
                done, 10, lambda: f"{streams} streams to share the partitions, got {member.consumer.assignment()}"
            )

        await member.resubscribe({t: 2, u: 1})
        await sharing(2)
        assert partitions_of(u, 2) <= member.consumer.assignment()[0]
        assert len(member.consumer.member_ids) == 2
        await member.resubscribe({u: 1})
        await shared_out([member], partitions_of(u, 2))
        assert set(member.consumer.assignment()) == {0}
        await member.pause()
        await member.consumer.subscribe_pattern(place.topic("[tu]"), 3, member.listener)
        member.resume()
        await sharing(3)
        assert len(member.consumer.member_ids) == 3
