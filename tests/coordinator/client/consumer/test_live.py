"""Our KIP-848 consumer on a live broker of ours: sharing, committing, callbacks, subscriptions, leaving."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from coordinator.client.consumer.calls import Kip848Calls
from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.errors import GroupRefused
from coordinator.membership.effects import CommitPositions, Identity
from kernel.client.connection import BrokerConnection
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.brokers.live import create_topics
from tests.support.brokers.topics import topics_of
from tests.support.consumers.consuming import (
    Listener,
    Owned,
    Running,
    committed_all,
    partitions_of,
    producing,
    shared_out,
)
from tests.support.consumers.eager import bootstrap_of
from tests.support.consumers.laboratory import expel
from tests.support.consumers.reconciling import reconciling, reconciling_group

EVERYTHING = partitions_of("t", 4)
BY_HAND = {"enable.auto.commit": "false"}


def epoch_of(member: Running) -> int:
    return int(str(member.tracer.of("partitions_assigned")[-1]["generation"]))


async def test_what_a_member_keeps_is_neither_revoked_nor_assigned_again(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path, {}) as (broker, (first,)):
        await shared_out([first], EVERYTHING)
        second = await reconciling(bootstrap_of(broker)).begin({"t": 1})
        await shared_out([first, second], EVERYTHING)
        (revoked,) = first.listener.of("revoked")
        assert (len(revoked), first.owned) == (2, EVERYTHING - revoked)
        await until(lambda: len(first.listener.of("assigned")) == 2, 60, "the second assignment")
        assert first.listener.of("assigned") == [EVERYTHING, frozenset()]
        await second.close()


async def test_auto_commit_before_a_revocation_hands_over_without_a_duplicate(chroot: str, tmp_path: Path) -> None:
    quiet = {"auto.commit.interval.ms": "600000"}
    async with (
        reconciling_group(chroot, tmp_path, quiet) as (broker, (first,)),
        producing(bootstrap_of(broker)) as producer,
    ):
        await producer.send("t", 10)
        await until(lambda: len(first.records) == 40, 30, "the first records")
        second = await reconciling(bootstrap_of(broker), settings=quiet).begin({"t": 1})
        await shared_out([first, second], EVERYTHING)
        await producer.send("t", 10)
        await until(lambda: len(first.records) + len(second.records) >= 80, 30, "the next records")
        assert (len(first.records), len(second.records)) == (60, 20)
        await second.close()


async def test_commits_carry_the_epoch_and_the_next_member_goes_on_from_them(chroot: str, tmp_path: Path) -> None:
    async with (
        reconciling_group(chroot, tmp_path, BY_HAND) as (broker, (first,)),
        producing(bootstrap_of(broker)) as producer,
    ):
        await producer.send("t", 5)
        await until(lambda: len(first.records) == 20, 30, "the records")
        await committed_all(first)
        assert (await first.consumer.commit({TopicPartition("t", 0): 3})).accepted
        assert {event["generation"] for event in first.tracer.of("commit_answered")} == {epoch_of(first)}
        await first.close()
        second = await reconciling(bootstrap_of(broker), settings=BY_HAND).begin({"t": 1})
        await until(lambda: len(second.records) == 2, 30, "the two records after the commit")
        await second.close()


@pytest.mark.parametrize(("leaves", "delivered"), [("unsubscribe", 80), ("close", 40)])
async def test_closing_commits_and_unsubscribing_does_not_as_in_kafka(
    chroot: str, tmp_path: Path, leaves: str, delivered: int
) -> None:
    """Tried with kafka-clients 4.1.1 and a broker of the same release."""
    quiet = {"auto.commit.interval.ms": "600000"}
    async with (
        reconciling_group(chroot, tmp_path, quiet) as (broker, (first,)),
        producing(bootstrap_of(broker)) as producer,
    ):
        await producer.send("t", 10)
        await until(lambda: len(first.records) == 40, 30, "the records")
        await (first.unsubscribe() if leaves == "unsubscribe" else first.close())
        assert (first.owned, first.listener.has) == (frozenset(), frozenset())
        second = await reconciling(bootstrap_of(broker)).begin({"t": 1})
        await shared_out([second], EVERYTHING)
        await until(lambda: len(second.tracer.of("position_started")) == 4, 30, "its positions")
        await until(lambda: len(first.records) + len(second.records) == delivered, 30, f"{delivered} records")
        await second.close()


async def test_member_that_unsubscribed_joins_again_under_its_id(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path, {}) as (_, (member,)):
        await shared_out([member], EVERYTHING)
        (before,) = member.consumer.member_ids
        await member.unsubscribe()
        assert member.consumer.member_ids == ()
        await member.resubscribe({"t": 1})
        await shared_out([member], EVERYTHING)
        assert member.consumer.member_ids == (before,)


async def test_expelled_member_loses_its_partitions_and_comes_back_under_its_id(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path, BY_HAND) as (broker, (member,)):
        await shared_out([member], EVERYTHING)
        (before,) = member.consumer.member_ids
        await expel(broker, before)
        await until(lambda: member.listener.of("lost") == [EVERYTHING], 60, "the notification of the loss")
        await shared_out([member], EVERYTHING)
        assert member.consumer.member_ids == (before,)
        assert [event["outcome"] for event in member.tracer.of("rebalance_ended")] == ["ok", "ok"]


async def test_commit_of_an_expelled_member_is_refused_and_the_loss_waits_for_a_poll(
    chroot: str, tmp_path: Path
) -> None:
    async with reconciling_group(chroot, tmp_path, BY_HAND) as (broker, (member,)):
        await shared_out([member], EVERYTHING)
        await member.pause()
        await expel(broker, member.consumer.member_ids[0])
        tp = TopicPartition("t", 0)
        assert (await member.consumer.commit({tp: 1})).refused[tp] in ("UNKNOWN_MEMBER_ID", "DROPPED")
        await until(lambda: not member.owned, 60, "the heartbeat that is refused")
        assert not member.listener.of("lost")
        member.resume()
        await until(lambda: member.listener.of("lost") == [EVERYTHING], 60, "the notification of the loss")


async def test_auto_commit_that_was_due_before_a_loss_is_not_made_after_it(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path, BY_HAND) as (broker, (member,)):
        await shared_out([member], EVERYTHING)
        assert isinstance(member.consumer, Kip848Consumer)
        (stream,) = member.consumer._streams
        assert stream.member.identity is not None
        due = CommitPositions(stream.member.stamp, stream.member.identity, wait=True)
        await expel(broker, member.consumer.member_ids[0])
        await until(lambda: member.listener.of("lost"), 60, "the loss")
        await shared_out([member], EVERYTHING)
        await stream._commit_due(due, {TopicPartition("t", 0): 1})
        assert not member.tracer.of("commit_answered")
        now = CommitPositions(stream.member.stamp, stream.member.identity, wait=True)
        await stream._commit_due(now, {TopicPartition("t", 0): 1})
        assert [event["outcome"] for event in member.tracer.of("commit_answered")] == ["accepted"]


async def test_member_that_does_not_poll_leaves_and_joins_again_with_its_next_poll(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path, {"max.poll.interval.ms": "1000"}, {}) as (_, (idle, busy)):
        await shared_out([idle, busy], EVERYTHING)
        (before,) = idle.consumer.member_ids
        await idle.pause()
        told = len(idle.listener.of("lost"))  # it may have lost them before, in a pause of the machine
        await shared_out([busy], EVERYTHING)
        assert idle.owned == frozenset()
        assert len(idle.listener.of("lost")) == told  # it is told in a poll
        idle.resume()
        await shared_out([idle, busy], EVERYTHING)
        assert len(idle.listener.of("lost")) > told
        assert idle.consumer.member_ids == (before,)


class Raises(Listener):
    """Raises in the first call of one kind."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def _maybe(self, what: str) -> None:
        if what == self._what and len(self.of(what)) == 1:
            raise LookupError("the application's own")

    async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        await super().on_assigned(stream, partitions)
        self._maybe("assigned")

    async def on_revoked(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        await super().on_revoked(stream, partitions)
        self._maybe("revoked")

    async def on_lost(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
        await super().on_lost(stream, partitions)
        self._maybe("lost")


async def raised(member: Running) -> None:
    """Wait until a poll raises what the listener raised, and poll on."""
    await until(lambda: member.failure, 60, "the error")
    with pytest.raises(LookupError, match="the application's own"):
        await member.pause()
    member.resume()


async def test_after_assigned_raised_the_member_delivers_when_it_returns_from_an_empty_call(
    chroot: str, tmp_path: Path
) -> None:
    """Tried with kafka-clients 4.1.1, as the two tests below."""
    async with reconciling_group(chroot, tmp_path) as (broker, _), producing(bootstrap_of(broker)) as producer:
        await producer.send("t", 1)
        member = reconciling(bootstrap_of(broker))
        member.listener = Raises("assigned")
        await member.begin({"t": 1})
        await raised(member)
        await until(lambda: len(member.records) == 4, 60, "the records")
        assert member.listener.of("assigned") == [EVERYTHING, frozenset()]
        await member.close()


async def test_after_revoked_raised_it_is_called_again_and_the_partitions_move_then(
    chroot: str, tmp_path: Path
) -> None:
    async with reconciling_group(chroot, tmp_path) as (broker, _):
        member = reconciling(bootstrap_of(broker))
        member.listener = Raises("revoked")
        await member.begin({"t": 1})
        await shared_out([member], EVERYTHING)
        other = await reconciling(bootstrap_of(broker)).begin({"t": 1})
        await raised(member)
        await shared_out([member, other], EVERYTHING)
        first, second = member.listener.of("revoked")
        assert first == second == other.owned
        await other.close()
        await member.close()


async def test_after_lost_raised_the_member_joins_again(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path) as (broker, _):
        member = reconciling(bootstrap_of(broker), settings=BY_HAND)
        member.listener = Raises("lost")
        await member.begin({"t": 1})
        await shared_out([member], EVERYTHING)
        await expel(broker, member.consumer.member_ids[0])
        await raised(member)
        await shared_out([member], EVERYTHING)
        await member.close()


async def test_member_closed_within_a_callback_that_does_not_return_ends_in_time(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Sleeps(Listener):
        async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
            await super().on_assigned(stream, partitions)
            await asyncio.Event().wait()

    monkeypatch.setattr("coordinator.client.member_runner.CLOSE_TIMEOUT_S", 0.2)
    async with reconciling_group(chroot, tmp_path) as (broker, _):
        member = reconciling(bootstrap_of(broker))
        member.listener = Sleeps()
        await member.begin({"t": 1})
        await until(lambda: member.listener.of("assigned"), 60, "the callback")
        async with asyncio.timeout(10):
            await member.close()
        other = await reconciling(bootstrap_of(broker)).begin({"t": 1})
        await shared_out([other], EVERYTHING)  # it said that it leaves
        await other.close()


async def test_topics_that_appear_and_grow_are_shared_out_by_the_coordinator(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path) as (broker, _):
        given = {"allow.auto.create.topics": "false", "metadata.max.age.ms": "600000"}
        member = await reconciling(bootstrap_of(broker), settings=given).begin({"t": 1, "late": 1})
        await shared_out([member], EVERYTHING)
        await create_topics(broker, {"late": 2})
        await shared_out([member], EVERYTHING | partitions_of("late", 2))
        async with topics_of(bootstrap_of(broker)) as topics:
            await topics.grow("late", 3)
        await shared_out([member], EVERYTHING | partitions_of("late", 3))
        await member.close()


async def test_changed_subscription_and_pattern_take_effect_without_leaving(chroot: str, tmp_path: Path) -> None:
    given = {"metadata.max.age.ms": "200"}
    async with reconciling_group(chroot, tmp_path, given) as (broker, (member,)):
        await create_topics(broker, {"t2": 2, "other": 1})
        await shared_out([member], EVERYTHING)
        await member.resubscribe({"other": 1})
        await shared_out([member], partitions_of("other", 1))
        assert member.listener.of("revoked") == [EVERYTHING]
        await member.resubscribe("t.*")
        await shared_out([member], EVERYTHING | partitions_of("t2", 2))
        await create_topics(broker, {"t3": 1})
        await shared_out([member], EVERYTHING | partitions_of("t2", 2) | partitions_of("t3", 1))
        assert len(member.tracer.of("member_started")) == 1


async def test_unknown_assignor_is_fatal_and_says_what_to_set(chroot: str, tmp_path: Path) -> None:
    async with reconciling_group(chroot, tmp_path) as (broker, _):
        given = {"group.remote.assignor": "nearest"}
        member = await reconciling(bootstrap_of(broker), settings=given).begin({"t": 1})
        await until(lambda: member.failure, 60, "the refusal")
        with pytest.raises(GroupRefused, match=r"UNSUPPORTED_ASSIGNOR.*group\.remote\.assignor"):
            await member.pause()
        await member.close()


async def test_partitions_that_come_while_positions_are_looked_up_get_theirs_next(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second lookup waits until a third batch of partitions has come."""
    asked: list[int] = []
    going_on, fetched = asyncio.Event(), Kip848Calls.committed

    async def held(
        self: Kip848Calls,
        connection: BrokerConnection,
        identity: Identity | None,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> tuple[str, dict[TopicPartition, int]]:
        wanted = tuple(partitions)
        offsets = await fetched(self, connection, identity, wanted, timeout_ms=timeout_ms)
        if self.group == "stays":
            asked.append(len(wanted))
            if len(asked) == 2:
                await going_on.wait()
        return offsets

    def has_asked(times: int) -> bool:
        return len(asked) == times

    monkeypatch.setattr(Kip848Calls, "committed", held)
    async with reconciling_group(chroot, tmp_path) as (broker, _), AsyncExitStack() as stack:
        await create_topics(broker, {"more": 2, "yet-more": 2})
        stays = reconciling(bootstrap_of(broker), "stays")
        stack.push_async_callback(stays.close)
        wanted: Owned = frozenset()
        for lookups, topic, partitions in ((1, "t", 4), (2, "more", 2), (2, "yet-more", 2)):
            wanted |= partitions_of(topic, partitions)
            topics = dict.fromkeys({tp.topic for tp in wanted}, 1)
            await (stays.begin(topics) if topic == "t" else stays.resubscribe(topics))
            await shared_out([stays], wanted)
            await until(partial(has_asked, lookups), 60, lambda: f"lookups: {asked}")
        going_on.set()
        await until(partial(has_asked, 3), 60, lambda: f"lookups: {asked}, {stays.failure}")
        await shared_out([stays], wanted)
    assert asked == [4, 2, 2]
