"""Our eager consumer on a live broker: fencing, lost partitions, leaving by not polling, a coordinator that moves."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from comparison.scenarios.testbed.proxy import TcpProxy
from coordinator.client.commits import DROPPED
from coordinator.client.errors import GroupRefused
from coordinator.client.fetcher import PREFETCH_RECORDS, FetchFailed
from coordinator.groups.placement import partition_of
from coordinator.membership.classic.member import MemberState
from coordinator.service.mount import mount
from kernel.client.connection import BrokerConnection
from kernel.platform.ports import free_ports
from kernel.topic_names import OFFSETS_TOPIC
from kernel.values import TopicPartition
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker, running_cluster
from tests.support.consumers.consuming import Listener, Running, committed_all, partitions_of, producing, shared_out
from tests.support.consumers.eager import bootstrap_of, eager
from tests.support.consumers.laboratory import expel, laboratory
from tests.support.trace.tracers import ListTracer

EVERYTHING = partitions_of("t", 4)


async def test_expelled_member_loses_its_partitions_and_comes_back_under_a_new_id(chroot: str, tmp_path: Path) -> None:
    async with laboratory(chroot, tmp_path, {}) as (broker, (member,)):
        await shared_out([member], EVERYTHING)
        (old,) = member.consumer.member_ids
        await expel(broker, old)
        await until(lambda: member.listener.of("lost") == [EVERYTHING], 60, "the notification of the loss")
        await shared_out([member], EVERYTHING)
        assert member.consumer.member_ids != (old,)
        assert member.tracer.of("partitions_lost")[0]["member"] == old
        assert len(member.tracer.of("member_started")) == 2


async def test_commit_called_before_the_loss_is_fenced_and_one_called_later_is_dropped(
    chroot: str, tmp_path: Path
) -> None:
    async with laboratory(chroot, tmp_path, {"heartbeat.interval.ms": "5000"}) as (broker, (member,)):
        await shared_out([member], EVERYTHING)
        await member.pause()
        tp = TopicPartition("t", 0)
        assert (await member.consumer.commit({tp: 3})).accepted == {tp: 3}
        await expel(broker, member.consumer.member_ids[0])
        assert (await member.consumer.commit({tp: 1})).refused == {tp: "UNKNOWN_MEMBER_ID"}
        assert member.owned == frozenset()
        assert (await member.consumer.commit({tp: 2})).refused == {tp: DROPPED}
        outcomes = [(event["offset"], event["outcome"]) for event in member.tracer.of("commit_answered")]
        assert outcomes == [(3, "accepted"), (1, "refused"), (2, "dropped")]
        assert await member.consumer.getmany(timeout_ms=0) == []


async def test_commit_that_waits_for_the_coordinator_is_dropped_when_the_session_ends(
    chroot: str, tmp_path: Path
) -> None:
    """librdkafka would send it after the rejoin, under the new identity."""
    timers = {"session.timeout.ms": "600", "heartbeat.interval.ms": "100", "retry.backoff.ms": "20"}
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker(chroot, tmp_path, mount=(mount,)))
        await create_topics(broker, {"t": 4})
        member = await eager(bootstrap_of(broker), settings=timers).begin({"t": 1})
        await shared_out([member], EVERYTHING)
        await broker.stop()
        tp = TopicPartition("t", 0)
        outcome = await member.consumer.commit({tp: 1})
        assert outcome.refused[tp] in (DROPPED, "UNANSWERED")
        assert member.owned == frozenset()
        assert member.tracer.of("partitions_lost")
        await member.close()


async def test_join_to_a_group_of_n_costs_n_plus_2_join_requests_and_n_plus_1_sync_requests(
    chroot: str, tmp_path: Path
) -> None:
    def requests(members: list[Running]) -> Counter[str]:
        return Counter(str(event["api"]) for member in members for event in member.tracer.of("request_answered"))

    async with laboratory(chroot, tmp_path, {}, {}, {}) as (broker, members):
        await shared_out(members, EVERYTHING)
        await until(lambda: all(len(m.owned) > 0 for m in members), 60, "three owners")
        before = requests(members)
        joiner = await eager(bootstrap_of(broker)).begin({"t": 1})
        await shared_out([*members, joiner], EVERYTHING)
        after = requests([*members, joiner])
        assert after["JoinGroup"] - before["JoinGroup"] == len(members) + 2
        assert after["SyncGroup"] - before["SyncGroup"] == len(members) + 1
        await joiner.close()


async def test_member_that_does_not_poll_leaves_and_joins_again_with_its_next_poll(chroot: str, tmp_path: Path) -> None:
    async with laboratory(chroot, tmp_path, {"max.poll.interval.ms": "1000"}, {}) as (_, (idle, busy)):
        await shared_out([idle, busy], EVERYTHING)
        await idle.pause()
        await shared_out([busy], EVERYTHING)
        assert idle.owned == frozenset()
        assert idle.tracer.of("partitions_lost")
        idle.resume()
        await shared_out([idle, busy], EVERYTHING)
        assert idle.listener.of("lost")


async def test_members_keep_their_partitions_while_the_coordinator_moves(chroot: str, tmp_path: Path) -> None:
    async with running_cluster(2, chroot, tmp_path, mount=(mount,)) as brokers:
        await create_topics(brokers[0], {"t": 4}, replication_factor=2)
        member = await eager(bootstrap_of(*brokers)).begin({"t": 1})
        try:
            await shared_out([member], EVERYTHING)
            place = TopicPartition(OFFSETS_TOPIC, partition_of("g", 4))
            leader = brokers[0].cluster.snapshot.leader_of(place)
            assert leader is not None
            gone = next(broker for broker in brokers if broker.address.node_id == leader.node_id)
            stays = next(broker for broker in brokers if broker is not gone)
            async with producing(bootstrap_of(stays)) as producer:
                await producer.send("t", 10)
                await until(lambda: len(member.records) == 40, 60, lambda: f"40 records, got {len(member.records)}")
                await gone.stop()
                outcome = await committed_all(member)
                assert len(outcome.accepted) == 4
                await producer.send("t", 5)
                await until(lambda: len(member.records) == 60, 60, lambda: f"60 records, got {len(member.records)}")
            assert not member.tracer.of("partitions_lost")
            assert member.owned == EVERYTHING
        finally:
            await member.close()


async def test_member_with_another_strategy_than_the_groups_fails_with_the_remedy(chroot: str, tmp_path: Path) -> None:
    async with laboratory(chroot, tmp_path, {}) as (broker, (member,)):
        await shared_out([member], EVERYTHING)
        other = eager(bootstrap_of(broker), settings={"partition.assignment.strategy": "roundrobin"})
        await other.begin({"t": 1})
        await until(lambda: other.failure, 60, "the refusal")
        with pytest.raises(GroupRefused, match=r"INCONSISTENT_GROUP_PROTOCOL.*partition\.assignment\.strategy"):
            await other.pause()
        with pytest.raises(GroupRefused):
            await other.consumer.getmany(timeout_ms=0)
        await other.close()
        assert [each["error"] for each in other.tracer.of("member_refused")] == ["INCONSISTENT_GROUP_PROTOCOL"]


async def test_session_timeout_that_the_broker_does_not_allow_fails_with_the_remedy(
    chroot: str, tmp_path: Path
) -> None:
    timers = {"session.timeout.ms": "50", "heartbeat.interval.ms": "10"}
    async with laboratory(chroot, tmp_path) as (broker, _):
        member = eager(bootstrap_of(broker), settings=timers)
        await member.begin({"t": 1})
        await until(lambda: member.failure, 60, "the refusal")
        with pytest.raises(GroupRefused, match=r"keep session\.timeout\.ms within"):
            await member.pause()
        await member.close()


@pytest.mark.parametrize(("policy", "first"), [("earliest", 0), ("latest", 5)])
async def test_offset_out_of_range_is_reset_by_policy(chroot: str, tmp_path: Path, policy: str, first: int) -> None:
    async with laboratory(chroot, tmp_path) as (broker, _), producing(bootstrap_of(broker)) as producer:
        await producer.send("t", 5)
        settings = {"auto.offset.reset": policy}
        committer = await eager(bootstrap_of(broker), settings=settings).begin({"t": 1})
        await shared_out([committer], EVERYTHING)
        await committer.pause()
        await committer.consumer.commit(dict.fromkeys(EVERYTHING, 1000))
        # Without auto-commit's last commit: the member is expelled before it closes.
        await expel(broker, committer.consumer.member_ids[0])
        await committer.close()
        member = await eager(bootstrap_of(broker), settings=settings).begin({"t": 1})
        await until(lambda: len(member.tracer.of("position_reset")) == 4, 60, "four resets")
        assert {(event["offset"], event["reset"]) for event in member.tracer.of("position_reset")} == {(first, policy)}
        await producer.send("t", 1)
        expected = 4 * (6 - first)
        await until(
            lambda: len(member.records) == expected, 10, lambda: f"{expected} records, got {len(member.records)}"
        )
        await member.close()


async def test_no_offset_and_no_policy_is_an_error_for_the_application(chroot: str, tmp_path: Path) -> None:
    async with laboratory(chroot, tmp_path) as (broker, _):
        member = await eager(bootstrap_of(broker), settings={"auto.offset.reset": "none"}).begin({"t": 1})
        await until(lambda: member.failure, 60, "the failure")
        with pytest.raises(FetchFailed, match=r"auto\.offset\.reset is none"):
            await member.pause()
        await member.close()


async def test_auto_commit_covers_delivered_records_before_a_rebalance_and_at_close(
    chroot: str, tmp_path: Path
) -> None:
    quiet = {"auto.commit.interval.ms": "60000"}
    async with laboratory(chroot, tmp_path, quiet) as (broker, (first,)), producing(bootstrap_of(broker)) as producer:
        await producer.send("t", 10)
        await until(lambda: len(first.records) == 40, 60, "40 records")
        assert not first.tracer.of("commit_answered")
        second = await eager(bootstrap_of(broker), settings=quiet).begin({"t": 1})
        await shared_out([first, second], EVERYTHING)
        saved = first.tracer.of("commit_answered")
        assert {(event["partition"], event["offset"], event["outcome"]) for event in saved} == {
            (n, 10, "accepted") for n in range(4)
        }
        await until(lambda: len(second.tracer.of("position_started")) == 2, 60, "the second member's positions")
        assert not second.records
        await second.close()
        assert {event["outcome"] for event in second.tracer.of("commit_answered")} == {"accepted"}


async def test_close_while_the_broker_is_away_commits_and_leaves_when_it_is_back(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coordinator.client.member_runner.LEAVE_TIMEOUT_MS", 60_000)  # the broker may be slow to start
    port = {"port": str(free_ports(1)[0])}
    async with running_broker(chroot, tmp_path, settings=port, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 4})
        member = await eager(bootstrap_of(broker), settings={"auto.commit.interval.ms": "60000"}).begin({"t": 1})
        await shared_out([member], EVERYTHING)
        async with producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 5)
            await until(lambda: len(member.records) == 20, 60, "20 records")
    await until(lambda: not member.consumer.places()[0].coordinator, 60, "the coordinator to be missed")
    closing = asyncio.create_task(member.close())
    streams = member.consumer._streams  # type: ignore[attr-defined]  # nothing else shows that it closes
    await until(lambda: streams[0].member.state is MemberState.CLOSING, 60, "the close")
    async with running_broker(chroot, tmp_path, settings=port, mount=(mount,)):
        await closing
    answered = member.tracer.of("commit_answered")
    assert {(event["offset"], event["outcome"]) for event in answered} == {(5, "accepted")}
    assert [e["error"] for e in member.tracer.of("request_answered") if e["api"] == "LeaveGroup"] == [""]


async def test_fetcher_stops_reading_ahead_without_polls(chroot: str, tmp_path: Path) -> None:
    few = {"max.partition.fetch.bytes": "4000"}
    async with laboratory(chroot, tmp_path) as (broker, _), producing(bootstrap_of(broker)) as producer:
        for _ in range(8):
            await producer.send("t", PREFETCH_RECORDS // 4)  # twice what is read ahead
        member = eager(bootstrap_of(broker), settings=few)
        await member.consumer.start()
        await member.consumer.subscribe({"t": 1})
        (first,) = await member.consumer.getmany(timeout_ms=10_000, max_records=1)
        member.records += first.records
        asked = -1

        def quiet() -> bool:
            nonlocal asked
            fetches = [event for event in member.tracer.of("request_answered") if event["api"] == "Fetch"]
            before, asked = asked, len(fetches)
            return before == asked

        await until(quiet, 60, "the fetcher to be quiet", every_s=0.25)
        member.resume()
        await until(
            lambda: len(member.records) == 8 * PREFETCH_RECORDS, 60, lambda: f"more records, got {len(member.records)}"
        )
        await member.close()


async def test_listener_that_raises_reaches_the_poll_and_the_member_goes_on(chroot: str, tmp_path: Path) -> None:
    class Raises(Listener):
        async def on_assigned(self, stream: int, partitions: frozenset[TopicPartition]) -> None:
            await super().on_assigned(stream, partitions)
            if len(self.heard) == 1:
                raise LookupError("the application's own")

    async with laboratory(chroot, tmp_path) as (broker, _):
        member = eager(bootstrap_of(broker))
        member.listener = Raises()
        await member.begin({"t": 1})
        await until(lambda: member.failure, 60, "the error")
        with pytest.raises(LookupError, match="the application's own"):
            await member.pause()
        member.resume()
        await shared_out([member], EVERYTHING)
        await member.close()


async def test_close_with_a_parked_join_leaves_the_group_at_once(chroot: str, tmp_path: Path) -> None:
    async with laboratory(chroot, tmp_path, {"heartbeat.interval.ms": "3000"}) as (broker, (first,)):
        await shared_out([first], EVERYTHING)
        await first.pause()  # it does not rejoin, so the second member's join stays parked
        second = await eager(bootstrap_of(broker)).begin({"t": 1})
        streams = second.consumer._streams  # type: ignore[attr-defined]  # nothing else shows that a join is parked
        await until(
            lambda: streams[0].member.state is MemberState.JOINING and streams[0].member.member_id, 10, "a join"
        )
        await second.close()
        left = [event for event in second.tracer.of("request_answered") if event["api"] == "LeaveGroup"]
        assert [event["error"] for event in left] == [""]
        first.resume()
        await shared_out([first], EVERYTHING)


async def heartbeats_since_it_joined(member: Running) -> None:
    """Wait for a heartbeat: after its SyncGroup alone a member can count its session only from the answer's arrival."""
    joined_ns = int(str(member.tracer.of("partitions_assigned")[-1]["ns"]))

    def answered() -> int:
        heartbeats = [e for e in member.tracer.of("request_answered") if (e["api"], e["error"]) == ("Heartbeat", "")]
        return sum(int(str(e["ns"])) > joined_ns for e in heartbeats)

    await until(lambda: answered() >= 2, 60, f"heartbeats of {member}")


async def begun(member: Running, with_: TopicPartition) -> None:
    def partitions() -> set[object]:
        return {event["partition"] for event in member.tracer.of("position_started")}

    await until(lambda: with_.partition in partitions(), 60, f"{member} to begin with {with_}")


async def test_member_cut_from_its_coordinator_stops_before_another_takes_over(
    chroot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its session timer starts when it sends a heartbeat that is answered; the coordinator's starts later."""
    proxy = TcpProxy("to the coordinator", ListTracer())
    behind: set[str] = set()

    class Routed(BrokerConnection):
        @classmethod
        async def open(cls, host: str, port: int, client_id: str, **options: Any) -> BrokerConnection:
            return await BrokerConnection.open(host, proxy.port if client_id in behind else port, client_id, **options)

    monkeypatch.setattr("coordinator.client.link.BrokerConnection", Routed)
    timers = {"session.timeout.ms": "10000", "heartbeat.interval.ms": "100", "enable.auto.commit": "false"}
    async with laboratory(chroot, tmp_path) as (broker, _), producing(bootstrap_of(broker)) as producer:
        await producer.send("t", 10)
        await proxy.start(broker.address.port)
        victim = eager(bootstrap_of(broker), settings={**timers, "client.id": "victim"})
        behind.add("victim")
        await victim.begin({"t": 1})
        await shared_out([victim], EVERYTHING)
        other = await eager(bootstrap_of(broker), settings=timers).begin({"t": 1})
        await shared_out([victim, other], EVERYTHING)
        mine = next(iter(victim.owned))
        await heartbeats_since_it_joined(victim)
        proxy.cut()
        held = asyncio.create_task(victim.consumer.commit({mine: 7}))
        await until(lambda: not victim.owned, 60, "the victim to give up")
        await shared_out([other], EVERYTHING)
        lost_ns = victim.tracer.of("partitions_lost")[0]["ns"]
        taken_ns = other.tracer.of("partitions_assigned")[-1]["ns"]
        assert isinstance(lost_ns, int)
        assert isinstance(taken_ns, int)
        assert lost_ns < taken_ns
        await begun(other, mine)  # the offset from which it starts is read before the commit
        assert (await other.consumer.commit({mine: 9})).accepted
        assert (await held).refused[mine] in ("UNANSWERED", DROPPED)

        def starts() -> list[dict[str, object]]:
            events = [*victim.tracer.of("position_started"), *other.tracer.of("position_started")]
            return sorted((e for e in events if e["partition"] == mine.partition), key=lambda e: int(str(e["ns"])))

        before = len(starts())
        proxy.heal()
        await shared_out([victim, other], EVERYTHING)
        await until(lambda: len(starts()) > before, 60, "the partition to be delivered by its next owner")
        answers = [event for event in victim.tracer.of("commit_answered") if event["explicit"]]
        assert [(event["offset"], event["outcome"]) for event in answers] == [(7, "unknown")]
        assert starts()[-1]["offset"] == 9  # the requests that were held back moved nothing after the connection healed
        for member in (victim, other):
            await member.close()
        await proxy.stop()
