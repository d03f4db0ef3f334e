"""What every design guarantees to users of a `GroupConsumer`; what only one design does is tested in its folder."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import cast

import pytest

from comparison.consumers import CONSUMERS
from kernel.consumer import GroupConsumer
from kernel.designs import DESIGNS
from kernel.errors import ConfigurationError, StreamsExist, Unavailable, UserError
from kernel.platform.ports import free_ports
from kernel.values import TopicPartition, partitions_field
from kernel.waiting import until
from tests.contract.conftest import Bench
from tests.support.brokers.topics import topics_of
from tests.support.consumers.consuming import Listener, Running, committed_all, partitions_of, producing, shared_out


@asynccontextmanager
async def members(bench: Bench, *topics: Mapping[str, int]) -> AsyncIterator[list[Running]]:
    """Consumers that poll, one for each subscription; all are closed at the end."""
    async with AsyncExitStack() as stack:
        running = []
        for subscription in topics:
            member = bench.consumer()
            stack.push_async_callback(member.close)
            running.append(await member.begin(subscription))
        yield running


async def test_single_member_gets_every_partition_and_every_record_in_order(bench: Bench) -> None:
    await bench.create(4)
    async with producing(bench.bootstrap) as producer, members(bench, {bench.topic: 1}) as (member,):
        await producer.send(bench.topic, 25)
        await shared_out([member], partitions_of(bench.topic, 4))
        await until(lambda: len(member.records) >= 100, 60, lambda: f"100 records, got {len(member.records)}")
    for n in range(4):
        own = [record for record in member.records if record.partition == n]
        assert [record.offset for record in own] == list(range(25))
        assert [record.value for record in own] == [b"%d:" % serial for serial in range(25)]


async def test_members_that_join_share_the_partitions(bench: Bench) -> None:
    await bench.create(6)
    everything = partitions_of(bench.topic, 6)
    async with members(bench, {bench.topic: 1}) as (first,):
        await shared_out([first], everything)
        async with members(bench, {bench.topic: 1}, {bench.topic: 1}) as (second, third):
            # Members of `consumer` give up and take over one by one: all may be owned before the shares are even.
            await until(
                lambda: [len(member.owned) for member in (first, second, third)] == [2, 2, 2],
                60,
                lambda: f"two each: {[sorted(member.owned) for member in (first, second, third)]}",
            )
            await shared_out([first, second, third], everything)
            ids = {member_id for member in (first, second, third) for member_id in member.consumer.member_ids}
            assert len(ids) == 3


async def test_streams_of_one_consumer_share_its_partitions_and_know_their_places(bench: Bench) -> None:
    design = DESIGNS[bench.design]
    await bench.create(4)
    async with members(bench, {bench.topic: 2}) as (member,):
        await shared_out([member], partitions_of(bench.topic, 4))
        # Until then one stream may own everything while the other has not joined yet.
        await until(
            lambda: sorted(map(len, member.consumer.assignment().values())) == [2, 2],
            60,
            lambda: f"two partitions for each stream: {member.consumer.assignment()}",
        )
        assert len(member.consumer.member_ids) == (1 if member.consumer.capabilities.streams else 2)
        places = member.consumer.places()
        assert set(places) == set(member.consumer.assignment()) == {0, 1}
        assert {place.member_id for place in places.values()} == set(member.consumer.member_ids)
        assert all(bool(place.coordinator) is design.coordinator for place in places.values())
        assert all((place.generation is not None) is design.coordinator for place in places.values())
        leaders = {place.leader for place in places.values()}
        assert leaders <= set(member.consumer.member_ids) if design.classic else leaders == {""}


async def test_partitions_of_a_member_that_leaves_are_taken_over(bench: Bench) -> None:
    await bench.create(4)
    everything = partitions_of(bench.topic, 4)
    async with members(bench, {bench.topic: 1}, {bench.topic: 1}) as (stays, leaves):
        await shared_out([stays, leaves], everything)
        await leaves.close()
        assert leaves.owned == frozenset()
        await shared_out([stays], everything)


async def test_member_goes_on_at_the_committed_position(bench: Bench) -> None:
    await bench.create(2)
    async with producing(bench.bootstrap) as producer:
        await producer.send(bench.topic, 10)
        async with members(bench, {bench.topic: 1}) as (first,):
            await until(lambda: len(first.records) == 20, 60, lambda: f"20 records, got {len(first.records)}")
            outcome = await committed_all(first)
            assert outcome.accepted == {TopicPartition(bench.topic, n): 10 for n in range(2)}
        await producer.send(bench.topic, 3)
        async with members(bench, {bench.topic: 1}) as (second,):
            await until(lambda: len(second.records) >= 6, 60, lambda: f"6 records, got {len(second.records)}")
            assert Counter(record.offset for record in second.records) == {10: 2, 11: 2, 12: 2}


async def test_position_is_the_next_offset_to_be_delivered(bench: Bench) -> None:
    await bench.create(1)
    tp = TopicPartition(bench.topic, 0)
    member = bench.consumer()
    try:
        async with producing(bench.bootstrap) as producer:
            await producer.send(bench.topic, 10)
        await member.consumer.start()
        assert member.consumer.position(tp) is None
        await member.consumer.subscribe({bench.topic: 1})
        taken = 0
        while taken < 10:
            for batch in await member.consumer.getmany(timeout_ms=1000, max_records=4):
                assert len(batch.records) <= 4
                taken += len(batch.records)
                assert member.consumer.position(tp) == batch.records[-1].offset + 1 == taken
        assert member.consumer.position(TopicPartition("elsewhere", 0)) is None
    finally:
        await member.close()


async def test_topics_are_subscribed_together(bench: Bench) -> None:
    other = f"{bench.topic}-other"
    await bench.create(2)
    await bench.create(3, topic=other)
    async with members(bench, {bench.topic: 1, other: 1}) as (member,):
        await shared_out([member], partitions_of(bench.topic, 2) | partitions_of(other, 3))


async def test_listener_is_notified_before_partitions_start_and_stop(bench: Bench) -> None:
    await bench.create(4)
    everything = partitions_of(bench.topic, 4)
    async with members(bench, {bench.topic: 1}) as (first,):
        await shared_out([first], everything)
        async with members(bench, {bench.topic: 1}) as (second,):
            await shared_out([first, second], everything)
            held: frozenset[TopicPartition] = frozenset()
            for what, _, partitions in first.listener.heard:
                assert (held & partitions == frozenset()) if what == "assigned" else (partitions <= held)
                held = held | partitions if what == "assigned" else held - partitions
            assert held == first.owned
            assert first.listener.of("assigned")[0] == everything
        assert second.listener.heard[-1][0] == "revoked"
        assert not first.listener.of("lost")


async def test_nothing_is_delivered_twice_in_orderly_joins_and_leaves(bench: Bench) -> None:
    await bench.create(4)
    everything = partitions_of(bench.topic, 4)
    async with producing(bench.bootstrap) as producer, members(bench, {bench.topic: 1}) as (first,):
        await producer.send(bench.topic, 50)
        await until(lambda: len(first.records) == 200, 60, lambda: f"200 records, got {len(first.records)}")
        async with members(bench, {bench.topic: 1}) as (second,):
            await shared_out([first, second], everything)
            await producer.send(bench.topic, 50)
            both = [first, second]
            await until(lambda: sum(len(m.records) for m in both) >= 400, 60, "the other half of the records")
        await shared_out([first], everything)
        await producer.send(bench.topic, 10)
        await until(lambda: sum(len(m.records) for m in both) >= 440, 60, "the last records")
    seen = Counter((record.partition, record.offset) for member in both for record in member.records)
    assert len(seen) == 440
    assert set(seen.values()) == {1}


async def test_cancelled_poll_delivers_nothing(bench: Bench) -> None:
    await bench.create(2)
    everything = partitions_of(bench.topic, 2)
    async with producing(bench.bootstrap) as producer:
        await producer.send(bench.topic, 100)
    member = bench.consumer()
    consumer = member.consumer
    try:
        await consumer.start()
        await consumer.subscribe({bench.topic: 1})
        polls = got = 0
        while sum(consumer.position(tp) or 0 for tp in everything) < 200:
            poll = asyncio.create_task(consumer.getmany(timeout_ms=1000, max_records=7))
            for _ in range(polls % 5):
                await asyncio.sleep(0)
            polls += 1
            if polls % 2:
                poll.cancel()
            await asyncio.wait({poll})
            got += 0 if poll.cancelled() else sum(len(batch.records) for batch in poll.result())
        assert got == 200
    finally:
        await member.close()


async def test_seek_goes_on_elsewhere_or_says_that_this_is_unsupported(bench: Bench) -> None:
    """In on_assigned it replaces the committed offset; later, what was fetched already is not returned."""
    first, second = sorted(partitions_of(bench.topic, 2))
    await bench.create(2)
    async with producing(bench.bootstrap) as producer:
        await producer.send(bench.topic, 10)
    member = bench.consumer()
    consumer = member.consumer

    class Seeking(Listener):
        async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
            consumer.seek(first, 7)

    try:
        await consumer.start()
        if not consumer.capabilities.seek:
            with pytest.raises(UserError, match=f"cannot seek {first} to 7"):
                consumer.seek(first, 7)
            return
        with pytest.raises(UserError, match=f"{first} is not assigned"):
            consumer.seek(first, 7)
        await consumer.subscribe({bench.topic: 1}, Seeking())
        assert await offsets_of(consumer, 13) == {first: [7, 8, 9], second: list(range(10))}
        consumer.seek(second, 8)
        assert consumer.position(second) == 8
        assert await offsets_of(consumer, 2) == {second: [8, 9]}
        with pytest.raises(UserError, match="no offset -1"):
            consumer.seek(second, -1)
    finally:
        await member.close()


async def test_paused_partition_is_owned_and_returns_nothing_until_it_is_resumed(bench: Bench) -> None:
    """It may be paused before it has a position; what was fetched before the pause is returned after it."""
    first, second = sorted(partitions_of(bench.topic, 2))
    await bench.create(2)
    member = bench.consumer()
    consumer = member.consumer

    class Pausing(Listener):
        async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
            consumer.pause([first])

    async with producing(bench.bootstrap) as producer:
        await producer.send(bench.topic, 10)
        try:
            await consumer.start()
            if not consumer.capabilities.pause:
                for asked in (consumer.pause, consumer.resume):
                    with pytest.raises(UserError, match="cannot pause"):
                        asked([first])
                assert consumer.paused() == frozenset()
                return
            await consumer.subscribe({bench.topic: 1}, Pausing())
            assert await offsets_of(consumer, 10) == {second: list(range(10))}
            assert (consumer.paused(), consumer.position(first)) == ({first}, 0)
            with pytest.raises(UserError, match=r"elsewhere-0 is not assigned .* pause"):
                consumer.pause([second, TopicPartition("elsewhere", 0)])
            consumer.resume([second])
            assert consumer.paused() == {first}
            consumer.resume([first])
            (batch,) = await consumer.getmany(timeout_ms=60_000, max_records=1)
            consumer.pause([first, second])
            await producer.send(bench.topic, 5)
            assert not await consumer.getmany(timeout_ms=300)
            assert consumer.position(first) == batch.records[-1].offset + 1 == 1
            consumer.resume([first, second])
            assert await offsets_of(consumer, 19) == {first: list(range(1, 15)), second: list(range(10, 15))}
            told = member.tracer.of("partitions_paused", "partitions_resumed")
            assert [(e["kind"], e["cause"], len(cast("list[object]", e["partitions"]))) for e in told] == [
                ("partitions_paused", "", 1),
                ("partitions_resumed", "asked", 1),
                ("partitions_paused", "", 2),
                ("partitions_resumed", "asked", 2),
            ]
        finally:
            await member.close()


async def test_pause_outlasts_a_rebalance_where_partitions_stay_with_their_member(bench: Bench) -> None:
    """Designs that stop everything drop every pause, also of partitions that the same member gets back, as in Kafka."""
    everything = partitions_of(bench.topic, 4)
    await bench.create(4)
    async with members(bench, {bench.topic: 1}) as (first,):
        await shared_out([first], everything)
        if not first.consumer.capabilities.pause:
            return
        first.consumer.pause(everything)
        async with members(bench, {bench.topic: 1}) as (second,), producing(bench.bootstrap) as producer:
            await until(lambda: len(first.owned) == len(second.owned) == 2, 60, "two partitions each")
            await producer.send(bench.topic, 5)
            kept = first.owned if DESIGNS[bench.design].incremental else frozenset()
            assert first.consumer.paused() == kept
            (dropped,) = first.tracer.of("partitions_resumed")
            assert (dropped["cause"], dropped["partitions"]) == ("rebalance", partitions_field(everything - kept))
            await until(lambda: len(second.records) == 10, 60, "what the second one owns")
            assert not {record.partition for record in first.records} & {tp.partition for tp in kept}
            first.consumer.resume(kept)
            await until(lambda: len(first.records) == 10, 60, "what the first one owns")


async def offsets_of(consumer: GroupConsumer, number: int) -> dict[TopicPartition, list[int]]:
    """The next `number` records' offsets."""
    found: dict[TopicPartition, list[int]] = {}
    async with asyncio.timeout(30):
        while sum(map(len, found.values())) < number:
            for batch in await consumer.getmany(timeout_ms=100):
                found.setdefault(batch.topic_partition, []).extend(record.offset for record in batch.records)
    return found


async def test_commit_in_on_revoked_is_accepted_in_a_rebalance_and_while_closing(bench: Bench) -> None:
    """The next owner begins behind everything that was delivered."""
    everything = partitions_of(bench.topic, 4)
    await bench.create(4)
    async with producing(bench.bootstrap) as producer:
        await producer.send(bench.topic, 10)
    leaving, outcomes = bench.consumer(**manual(bench)), []

    class Committing(Listener):
        async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
            outcomes.append(await leaving.consumer.commit())

    leaving.listener = Committing()
    await leaving.begin({bench.topic: 1})
    await until(lambda: len(leaving.records) == 40, 60, lambda: f"40 records, got {len(leaving.records)}")
    joining = await bench.consumer(**manual(bench)).begin({bench.topic: 1})
    await until(lambda: len(joining.owned) == 2, 60, lambda: f"two partitions, got {joining.owned}")
    await until(lambda: len(leaving.owned) == 2, 60, lambda: f"two partitions, got {leaving.owned}")
    await leaving.close()
    await shared_out([joining], everything)
    assert len(outcomes) >= 2
    assert not any(outcome.refused for outcome in outcomes), outcomes
    assert not joining.records
    await joining.close()


def manual(bench: Bench) -> dict[str, str]:
    """The setting that switches automatic commits off."""
    return {("auto_commit_enable" if bench.design == "zookeeper" else "enable_auto_commit"): "false"}


async def test_trace_has_deliveries_and_commits(bench: Bench) -> None:
    await bench.create(2)
    async with producing(bench.bootstrap) as producer, members(bench, {bench.topic: 1}) as (member,):
        await producer.send(bench.topic, 20)
        await until(lambda: len(member.records) == 40, 60, lambda: f"40 records, got {len(member.records)}")
        await committed_all(member)
    tracer = member.tracer
    delivered = {
        (event["partition"], offset)
        for event in tracer.of("records_delivered")
        for offset in range(int(str(event["first"])), int(str(event["last"])) + 1)
    }
    assert delivered == {(record.partition, record.offset) for record in member.records}
    for event in tracer.of("records_delivered"):
        assert (event["serial_first"], event["serial_last"]) == (event["first"], event["last"])
    committed = {
        (event["partition"], event["offset"])
        for event in tracer.of("commit_answered")
        if event["outcome"] == "accepted"
    }
    assert {(0, 20), (1, 20)} <= committed
    assert tracer.of("member_started")
    assert tracer.of("member_closed")
    # A START names the partitions, and so does a heartbeat of the consumer design: nothing is left to claim.
    phases = {"join", "resume"} if bench.design in ("server", "consumer") else {"join", "claim", "resume"}
    assert {event["phase"] for event in tracer.of("phase_entered")} >= phases
    assigned = tracer.of("partitions_assigned")[0]
    assert assigned["all"] == [{"topic": bench.topic, "partition": n} for n in range(2)]
    revoked = tracer.of("partitions_revoked")[-1]
    assert revoked["all"] == []


async def test_close_is_idempotent_and_ends_a_consumer_in_any_state(bench: Bench) -> None:
    await bench.create(1)
    never_started = bench.consumer()
    await never_started.consumer.close()
    started = bench.consumer()
    await started.consumer.start()
    await started.consumer.close()
    await started.consumer.close()
    async with members(bench, {bench.topic: 1}) as (member,):
        await shared_out([member], partitions_of(bench.topic, 1))
        await member.close()
        await member.consumer.close()


async def test_start_without_a_server_names_it(bench: Bench) -> None:
    nowhere = f"127.0.0.1:{free_ports(1)[0]}"
    names = {"zookeeper_connection_timeout_ms", "socket_connection_setup_timeout_ms"}
    quick = {name: "300" for name in names if name.replace("_", ".") in CONSUMERS[bench.design].settings}
    member = bench.consumer(zookeeper=nowhere, bootstrap=nowhere, **quick)
    with pytest.raises(Unavailable, match=nowhere.partition(":")[2]):
        await member.consumer.start()
    await member.consumer.close()


async def test_member_changes_its_topics_or_says_that_this_is_unsupported(bench: Bench) -> None:
    other = f"{bench.topic}-other"
    await bench.create(2)
    await bench.create(2, topic=other)
    async with members(bench, {bench.topic: 1}, {bench.topic: 1}) as (stays, changes):
        await shared_out([stays, changes], partitions_of(bench.topic, 2))
        if not changes.consumer.capabilities.resubscribe:
            with pytest.raises(StreamsExist):
                await changes.consumer.subscribe({other: 1})
            return
        await changes.resubscribe({other: 1})
        await shared_out([stays, changes], partitions_of(bench.topic, 2) | partitions_of(other, 2))
        assert changes.owned == partitions_of(other, 2)
        assert not changes.listener.of("lost")


async def test_member_that_unsubscribes_releases_everything_and_may_subscribe_again(bench: Bench) -> None:
    await bench.create(2)
    everything = partitions_of(bench.topic, 2)
    async with producing(bench.bootstrap) as producer, members(bench, {bench.topic: 1}) as (member,):
        await producer.send(bench.topic, 10)
        await until(lambda: len(member.records) == 20, 60, lambda: f"20 records, got {len(member.records)}")
        if not member.consumer.capabilities.resubscribe:
            with pytest.raises(UserError, match="cannot unsubscribe"):
                await member.consumer.unsubscribe()
            assert member.owned == everything
            return
        assert not (await member.consumer.commit()).refused  # unsubscribing need not commit
        await member.unsubscribe()
        assert member.owned == frozenset()
        assert sorted(tp for gone in member.listener.of("revoked") for tp in gone) == sorted(everything)
        with pytest.raises(UserError, match="subscribe before you poll"):
            await member.consumer.getmany(timeout_ms=0)
        await member.resubscribe({bench.topic: 1})
        await producer.send(bench.topic, 1)
        await until(lambda: len(member.records) >= 22, 60, lambda: f"22 records, got {len(member.records)}")
        assert max(Counter((record.partition, record.offset) for record in member.records).values()) == 1


async def test_member_with_a_pattern_gets_current_and_later_matches(bench: Bench) -> None:
    now, later, never = (f"{bench.topic}-{name}" for name in ("a", "b", "other"))
    await bench.create(2, topic=now)
    await bench.create(2, topic=never)
    member = bench.consumer()
    try:
        if not member.consumer.capabilities.patterns:
            with pytest.raises(UserError):
                await member.begin_pattern(f"{bench.topic}-[a-f]")
            return
        await member.consumer.start()
        with pytest.raises(UserError, match=r"a\(b is an invalid regex"):
            await member.consumer.subscribe_pattern("a(b")
        await member.consumer.subscribe_pattern(f"{bench.topic}-[a-f]", 1, member.listener)
        member.resume()
        await shared_out([member], partitions_of(now, 2))
        await bench.create(2, topic=later)
        await shared_out([member], partitions_of(now, 2) | partitions_of(later, 2))
    finally:
        await member.close()


async def test_added_partitions_are_assigned(bench: Bench) -> None:
    await bench.create(2)
    async with members(bench, {bench.topic: 1}, {bench.topic: 1}) as (first, second):
        await shared_out([first, second], partitions_of(bench.topic, 2))
        async with topics_of(bench.bootstrap) as topics:
            await topics.grow(bench.topic, 4)
        await shared_out([first, second], partitions_of(bench.topic, 4))


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ({"no_such_setting": "1"}, "unknown setting"),
        ({"auto_offset_reset": "sometimes"}, "must be one of"),
        ({"auto_commit_interval_ms": "soon"}, "must be a whole number"),
    ],
)
def test_bad_settings_are_refused_before_anything_is_connected(
    bench: Bench, setting: dict[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        bench.consumer(**setting)
