"""Our members and original consumers of 0.8.2.2 and 1.1.1 in one group, over a real broker, under load.

After each change the owner nodes hold what the range rule gives for the registered ids, whichever member computed it.
At the end `verify` checks every ownership: it begins at the committed offset, it has no gap, and nothing is lost.
"""

from __future__ import annotations

import asyncio

import pytest

from comparison.originals.hosts import Pattern
from kernel.assignors.thread_roundrobin import roundrobin_0_8_2, roundrobin_1_1
from kernel.values import TopicPartition
from tests.support.java.mixed_groups import MixedGroup, mixed_group
from tests.support.java.originals import original_host
from zkconsumer.znodes.filters import TopicFilter

HOSTS = {"0.8.2.2": "host_0_8", "1.1.1": "host_1_1"}


@pytest.mark.parametrize("version", HOSTS)
def test_joins_leaves_and_kills_of_either_kind_leave_one_owner_by_the_range_rule(
    request, broker_1_1, tmp_path, version
):
    shared = request.getfixturevalue(HOSTS[version])
    topic = f"kills-{version}"

    async def story(own):
        async with mixed_group(broker_1_1, f"kills-{version}", {topic: 7}, tmp_path) as group:
            group.load()
            await group.join_ours_as_process("a", {topic: 2})
            await group.settled()
            b = await group.join_original(shared, "b", {topic: 2})
            await group.settled()
            c = await group.join_ours("c", {topic: 1})
            await group.settled()
            await group.join_original(own, "d", {topic: 1})
            assert len(set((await group.settled()).values())) == 6
            await group.leaves(b)
            await group.settled()
            await group.dies(group.members[f"{group.name}_d"])
            await group.settled()
            await group.join_original(shared, "e", {topic: 1})
            await group.settled()
            await group.dies(group.members[f"{group.name}_a"])
            await group.settled()
            await group.leaves(c)
            owned = await group.settled()
            assert set(owned.values()) == {f"{group.name}_e-0"}
            await group.drained()
            group.verify()

    with original_host(version, tmp_path / "own") as own:
        asyncio.run(story(own))


async def test_static_and_wildcard_members_of_three_kinds_share_created_and_grown_topics(
    broker_1_1, host_0_8, host_1_1, tmp_path
):
    async with mixed_group(broker_1_1, "wild", {"wild-a": 4, "wild-b": 3}, tmp_path) as group:
        group.load()
        await group.join_original(host_0_8, "o8", Pattern("white_list", "wild-.*", 2))
        await group.settled()
        mine = await group.join_ours("us", TopicFilter.white("wild-a,wild-c"), 2)
        await group.settled()
        await group.join_original(host_1_1, "o1", Pattern("white_list", "wild-(b|c)"))
        await group.settled()
        await group.join_ours("st", {"wild-a": 3, "wild-b": 1})
        await group.settled()
        await group.create_topic("wild-c", 6)
        owned = await group.settled()
        assert {thread for tp, thread in owned.items() if tp.topic == "wild-c"} == {
            "wild_o8-0", "wild_o8-1", "wild_us-0", "wild_us-1", "wild_o1-0",
        }  # fmt: skip
        await group.leaves(mine)
        await group.settled()
        await group.drained()
        group.verify()


async def test_eleven_threads_of_one_member_sort_before_the_second_one_of_another_kind(
    broker_1_1, host_0_8, host_1_1, tmp_path
):
    """Thread ids sort as text: -10 comes before -2, for all kinds alike."""
    async with mixed_group(broker_1_1, "text", {"text": 17}, tmp_path) as group:
        group.load()
        await group.join_ours("c1", {"text": 11})
        await group.join_original(host_0_8, "c10", {"text": 2})
        await group.join_original(host_1_1, "c2", {"text": 1})
        owned = await group.settled()
        in_order = [owned[TopicPartition("text", p)] for p in range(17)]
        assert in_order[:6] == ["text_c1-0", "text_c1-0", "text_c1-1", "text_c1-1", "text_c1-10", "text_c1-10"]
        assert in_order[-3:] == ["text_c10-0", "text_c10-1", "text_c2-0"]
        await group.drained()
        group.verify()


async def test_a_mass_start_of_all_kinds_settles_and_so_does_the_leave_of_half_of_them(
    broker_1_1, host_0_8, host_1_1, tmp_path
):
    async with mixed_group(broker_1_1, "mass", {"mass": 9}, tmp_path) as group:
        group.load()
        topics = {"mass": 1}
        parties = await asyncio.gather(
            *(group.join_ours(f"a{n}", topics) for n in range(3)),
            *(group.join_original(host_0_8, f"b{n}", topics) for n in range(2)),
            *(group.join_original(host_1_1, f"c{n}", topics) for n in range(2)),
        )
        assert len(set((await group.settled()).values())) == 7
        await asyncio.gather(*(group.leaves(party) for party in parties[1::2]))
        assert len(set((await group.settled()).values())) == 4
        await group.drained()
        group.verify()


async def test_expired_members_of_either_kind_return_under_their_ids(broker_1_1, host_0_8, host_1_1, tmp_path):
    async with mixed_group(broker_1_1, "expiry", {"expiry": 6}, tmp_path) as group:
        group.load()
        parties = [
            await group.join_ours("a", {"expiry": 1}),
            await group.join_original(host_0_8, "b", {"expiry": 1}),
            await group.join_original(host_1_1, "c", {"expiry": 1}),
        ]
        before = await group.settled()
        for party in parties:
            await group.expire(party)
            assert await group.settled() == before
        await group.drained()
        group.verify()


def rule_of(assign):
    def rule(threads, partitions):
        assigned = assign({topic: range(partitions[topic]) for topic in threads}, threads)
        return {tp: thread for thread, its in assigned.items() for tp in its}

    return rule


async def round_robin(group: MixedGroup, host, rule, subscriptions, release) -> None:
    group.load()
    first, second, third = subscriptions
    await group.join_ours("a", first, roundrobin_release=release)
    await group.join_original(host, "b", second)
    await group.settled(rule)
    mine = await group.join_ours("c", third, roundrobin_release=release)
    theirs = await group.join_original(host, "d", third)
    await group.settled(rule)
    await group.leaves(mine)
    await group.settled(rule)
    await group.leaves(theirs)
    await group.settled(rule)
    await group.drained()
    group.verify()


async def test_round_robin_of_0_8_2_is_equal_in_both_kinds(broker_1_1, host_0_8, tmp_path):
    topics = {"rr8-a": 4, "rr8-b": 3, "rr8-c": 12}
    async with mixed_group(broker_1_1, "rr8", topics, tmp_path, partition_assignment_strategy="roundrobin") as group:
        await round_robin(group, host_0_8, rule_of(roundrobin_0_8_2), [dict.fromkeys(topics, 2)] * 3, "0.8.2")


async def test_round_robin_of_1_1_is_equal_in_both_kinds_for_unequal_topics(broker_1_1, host_1_1, tmp_path):
    topics = {"rr1-a": 4, "rr1-b": 3, "rr1-c": 12}
    unequal = [dict.fromkeys(topics, 2), {"rr1-a": 1, "rr1-c": 1}, {"rr1-b": 2, "rr1-c": 3}]
    async with mixed_group(broker_1_1, "rr1", topics, tmp_path, partition_assignment_strategy="roundrobin") as group:
        await round_robin(group, host_1_1, rule_of(roundrobin_1_1), unequal, "1.1")
