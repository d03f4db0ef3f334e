"""Members whose topics change under them, on a live broker: topics that grow, come, go, or match a pattern."""

from __future__ import annotations

import pytest

from kernel.errors import UserError
from kernel.waiting import until
from tests.coordinator.client.conftest import Places
from tests.support.consumers.consuming import Running, partitions_of, producing, shared_out
from tests.support.consumers.eager import generation_of, settled

COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky"}


def triggers(member: Running) -> list[object]:
    return [event["trigger"] for event in member.tracer.of("rebalance_started")]


def looks(member: Running) -> int:
    return sum(event["api"] == "Metadata" for event in member.tracer.of("request_answered"))


async def test_topic_that_grows_costs_one_rebalance_begun_by_the_leader(places: Places) -> None:
    async with places.place() as place:
        t = place.topic("t")
        await place.topics.create({t: 4})
        leader = await place.member().begin({t: 1})
        await shared_out([leader], partitions_of(t, 4))
        follower = await place.member().begin({t: 1})
        await shared_out([leader, follower], partitions_of(t, 4))
        before = generation_of(leader)
        await place.topics.grow(t, 6)
        await shared_out([leader, follower], partitions_of(t, 6))
        assert triggers(leader)[-1] == "metadata-changed"
        assert triggers(follower)[-1] == "group-rebalancing"
        seen = looks(leader)
        await until(lambda: looks(leader) > seen + 2, 60, "the leader to look again")
        assert generation_of(leader) == generation_of(follower) == before + 1
        async with producing(places.bootstrap) as producer:
            await producer.send(t, 1)
            both = [leader, follower]
            await until(lambda: sum(len(member.records) for member in both) == 6, 60, "a record of each partition")


async def test_topic_that_grows_stops_no_kept_partition(places: Places) -> None:
    async with places.place() as place:
        t = place.topic("t")
        await place.topics.create({t: 4})
        members = [await place.member(**COOPERATIVE).begin({t: 1}) for _ in range(2)]
        await settled(members, partitions_of(t, 4))
        before, had = generation_of(members[0]), [member.owned for member in members]
        notifications = [len(member.listener.heard) for member in members]
        await place.topics.grow(t, 6)
        await settled(members, partitions_of(t, 6))
        assert [generation_of(member) for member in members] == [before + 1] * 2
        for member, owned, heard in zip(members, had, notifications, strict=True):
            assert owned < member.owned
            assert member.listener.heard[heard:] == [("assigned", 0, member.owned - owned)]


async def test_follower_that_sees_a_topic_grow_leaves_it_to_the_leader(places: Places) -> None:
    async with places.place() as place:
        t, u = place.topic("t"), place.topic("u")
        await place.topics.create({t: 2, u: 2})
        leader = await place.member(metadata_max_age_ms="600000").begin({t: 1})
        await shared_out([leader], partitions_of(t, 2))
        follower = await place.member().begin({t: 1, u: 1})
        everything = partitions_of(t, 2) | partitions_of(u, 2)
        await shared_out([leader, follower], everything)
        before = generation_of(follower), follower.owned
        await place.topics.grow(t, 3)
        seen = looks(follower)
        await until(lambda: looks(follower) > seen + 2, 60, "the follower to look again")
        assert (generation_of(follower), follower.owned) == before
        assert follower.consumer.capabilities.resubscribe
        await leader.close()
        # It leads now, and assigns the new partition with the group's other topics.
        await shared_out([follower], everything | partitions_of(t, 3))


async def test_restarted_static_leader_goes_on_watching_topics(places: Places) -> None:
    async with places.place() as place:
        t = place.topic("t")
        await place.topics.create({t: 4})
        leader = await place.member(group_instance_id="a").begin({t: 1})
        await settled([leader], partitions_of(t, 4))
        follower = await place.member(group_instance_id="b", metadata_max_age_ms="600000").begin({t: 1})
        await settled([leader, follower], partitions_of(t, 4))
        before = generation_of(leader)
        await leader.close()
        back = await place.member(group_instance_id="a").begin({t: 1})
        await settled([back, follower], partitions_of(t, 4))
        assert generation_of(back) == before
        await place.topics.grow(t, 6)
        await settled([back, follower], partitions_of(t, 6))
        assert generation_of(back) == before + 1
        assert triggers(back)[-1] == "metadata-changed"


async def test_deleted_topic_is_revoked_and_assigned_again_when_recreated(places: Places) -> None:
    async with places.place() as place:
        t, u = place.topic("t"), place.topic("u")
        await place.topics.create({t: 2, u: 2})
        member = await place.member().begin({t: 1, u: 1})
        await shared_out([member], partitions_of(t, 2) | partitions_of(u, 2))
        await place.topics.delete(u)
        await shared_out([member], partitions_of(t, 2))
        assert triggers(member)[-1] == "metadata-changed"
        await place.topics.create({u: 3})
        await shared_out([member], partitions_of(t, 2) | partitions_of(u, 3))


async def test_missing_topic_is_looked_up_soon_and_assigned_when_created(places: Places) -> None:
    async with places.place() as place:
        late = place.topic("late")
        member = await place.member(metadata_max_age_ms="600000").begin({late: 1})
        await until(lambda: member.tracer.of("rebalance_ended"), 60, "the member to join without effect")
        assert member.owned == frozenset()
        await place.topics.create({late: 2})
        await shared_out([member], partitions_of(late, 2))


async def test_pattern_follows_topics_that_are_created_and_deleted(places: Places) -> None:
    async with places.place() as place:
        a, b, other = (place.topic(name) for name in ("p.a", "p.b", "other"))
        pattern = place.topic(r"\Qp.\E[a-z]")
        first = await place.member().begin_pattern(pattern)
        second = await place.member().begin_pattern(pattern)
        await until(lambda: first.consumer.member_ids and second.consumer.member_ids, 60, "both to join")
        assert not first.owned | second.owned
        await place.topics.create({a: 2, other: 2})
        await shared_out([first, second], partitions_of(a, 2))
        before = generation_of(first)
        await place.topics.create({b: 2})
        await shared_out([first, second], partitions_of(a, 2) | partitions_of(b, 2))
        assert "subscription-changed" in {triggers(first)[-1], triggers(second)[-1]}
        await place.topics.delete(a)
        await shared_out([first, second], partitions_of(b, 2))
        # A member refreshes metadata before it rejoins, so that both subscribe to the same when the group joins:
        # mostly one rebalance for each change, and two when the second has asked the brokers too recently to ask
        # again.
        after = generation_of(first)
        assert before + 2 <= after <= before + 4


async def test_member_with_a_pattern_refreshes_metadata_before_it_rejoins(places: Places) -> None:
    """One topic, one rebalance: the second member would not refresh by itself in the next ten minutes."""
    async with places.place() as place:
        a, b = place.topic("p.a"), place.topic("p.b")
        await place.topics.create({a: 2})
        members = [
            await place.member(metadata_max_age_ms=age).begin_pattern(place.topic("p[.].")) for age in ("200", "600000")
        ]
        await settled(members, partitions_of(a, 2))
        before = generation_of(members[0])
        await place.topics.create({b: 2})
        await settled(members, partitions_of(a, 2) | partitions_of(b, 2))
        assert generation_of(members[0]) == before + 1
        assert [triggers(member)[-1] for member in members] == ["subscription-changed", "group-rebalancing"]


async def test_pattern_and_names_replace_each_other_and_exclude_internal_topics(places: Places) -> None:
    async with places.place() as place:
        t, u = place.topic("t"), place.topic("u")
        await place.topics.create({t: 2, u: 2})
        member = await place.member().begin({t: 1})
        await shared_out([member], partitions_of(t, 2))
        with pytest.raises(UserError, match=r"a\(b is an invalid regex"):
            await member.consumer.subscribe_pattern("a(b")
        with pytest.raises(UserError, match="topic pattern is empty"):
            await member.consumer.subscribe_pattern("")
        with pytest.raises(UserError, match="may hold only ASCII"):
            await member.consumer.subscribe({"no topic": 1})
        assert member.owned == partitions_of(t, 2)
        await member.resubscribe(place.topic("(?!t).*"))
        await shared_out([member], partitions_of(u, 2))
        await member.resubscribe(".*")
        await until(lambda: partitions_of(t, 2) <= member.owned, 60, "all topics")
        assert not {tp.topic for tp in member.owned if tp.topic.startswith("__")}
        await member.resubscribe({t: 1})
        await shared_out([member], partitions_of(t, 2))
