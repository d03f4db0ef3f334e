"""Groups of the server design with real members, coordinator, ZooKeeper, and processes that die."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from comparison.scenarios.testbed.proxy import TcpProxy
from coordinator.client.server.calls import ServerCalls
from coordinator.client.server.consumer import ServerConsumer
from coordinator.membership.effects import Identity
from kernel.broker.broker import Broker
from kernel.clock import SystemClock
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper.chroot import split_chroot
from tests.coordinator.designs.commanded_child import commanded_child
from tests.support.brokers.live import client_of
from tests.support.consumers.commander import commanded
from tests.support.consumers.consuming import Running, committed_all, partitions_of, producing, shared_out
from tests.support.consumers.eager import bootstrap_of
from tests.support.consumers.laboratory import laboratory
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.proxy import ZooKeeperProxy
from tests.support.zookeeper.sessions import end_session, expire

EVERYTHING = partitions_of("t", 4)
P0 = TopicPartition("t", 0)


def server_group(
    chroot: str, data_dir: Path, *settings: dict[str, str], broker_settings: dict[str, str] | None = None
) -> AbstractAsyncContextManager[tuple[Broker, list[Running]]]:
    """A laboratory of members of this design."""
    return laboratory(
        chroot,
        data_dir,
        *settings,
        member=lambda bootstrap, given: commanded(bootstrap, chroot, settings=given),
        broker_settings=broker_settings,
    )


def id_of(member: Running) -> str:
    (member_id,) = member.consumer.member_ids
    return member_id


def commits_of(broker: Broker, member_id: str) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """What the coordinator has written for it: (partition, offset) before it was removed, and after that."""
    tracer = broker._tracer
    assert isinstance(tracer, ListTracer)
    kinds = ("offset_written", "group_member_left")
    events_of_member = [event for event in tracer.of(*kinds) if member_id in (event.get("by"), event.get("id"))]
    left = [event["kind"] for event in events_of_member].index("group_member_left")
    before, after = (
        {(int(str(e["partition"])), int(str(e["offset"]))) for e in events if e["kind"] == "offset_written"}
        for events in (events_of_member[:left], events_of_member[left:])
    )
    return before, after


async def commit_as(broker: Broker, identity: Identity, offset: int) -> str:
    """The answer to a commit of t-0 under any identity; '' is accepted."""
    calls = ServerCalls(group="g", strategy="", wait_ms=0, patience_ms=5000, request_timeout_ms=5000)
    async with client_of(broker) as client:
        connection = await client.any_connection()
        return (await calls.commit(connection, identity, {P0: offset}))[P0]


async def test_members_join_and_leave_and_every_record_is_delivered_once(chroot: str, tmp_path: Path) -> None:
    async with server_group(chroot, tmp_path, {}, {}) as (broker, members):
        async with producing(bootstrap_of(broker)) as producer:
            await producer.send("t", 10)
            await shared_out(members, EVERYTHING)
            joiner = await commanded(bootstrap_of(broker), chroot).begin({"t": 1})
            await shared_out([*members, joiner], EVERYTHING)
            await producer.send("t", 10)
            everybody = [*members, joiner]
            await until(lambda: sum(len(m.records) for m in everybody) >= 80, 60, "all the records")
            left = id_of(joiner)
            await joiner.close()
            await shared_out(members, EVERYTHING)
            await producer.send("t", 5)
            await until(lambda: sum(len(m.records) for m in everybody) >= 100, 60, "the last records")
        delivered = [(r.partition, r.offset) for m in everybody for r in m.records]
        assert len(delivered) == len(set(delivered)) == 100
        for member in members:
            await committed_all(member)
            # Only the coordinator watches, and no member reads: each id is one create.
            assert not member.tracer.of("zk_notified")
            assert {event["op"] for event in member.tracer.of("zk_op")} == {"create"}
        assert [kind for kind, _, _ in joiner.listener.heard] == ["assigned", "revoked"]
        assert await commit_as(broker, Identity(left, 3), 1) in ("ILLEGAL_GENERATION", "UNKNOWN_CONSUMER")


async def test_expired_member_is_removed_from_the_group_and_its_commit_is_refused(chroot: str, tmp_path: Path) -> None:
    async with server_group(chroot, tmp_path, {}, {}) as (broker, (dying, other)):
        await shared_out([dying, other], EVERYTHING)
        old, assigned, given_up = id_of(dying), dying.tracer.of("partitions_assigned")[-1], dying.owned
        heard = len(dying.listener.heard)
        consumer = dying.consumer
        assert isinstance(consumer, ServerConsumer)
        await expire(consumer.session)
        await until(lambda: dying.consumer.member_ids not in ((), (old,)), 60, "another id")
        await shared_out([dying, other], EVERYTHING)
        # The coordinator, which saw its id go, may have commanded it to stop before it noticed that its session
        # expired. Either way it gave up its partitions once.
        what, _, partitions = dying.listener.heard[heard]
        assert (what in ("lost", "revoked"), partitions) == (True, given_up)
        stale = Identity(old, assigned["generation"])
        assert await commit_as(broker, stale, 1) == "UNKNOWN_CONSUMER"
        not_mine = next(tp for tp in sorted(EVERYTHING) if tp not in dying.owned)
        assert (await dying.consumer.commit({not_mine: 1})).refused == {not_mine: "PARTITION_NOT_ASSIGNED"}


async def test_process_frozen_past_its_session_returns_fenced_and_a_killed_one_does_not_return(
    chroot: str, tmp_path: Path, link: ZooKeeperProxy
) -> None:
    async with AsyncExitStack() as stack:
        broker, (member,) = await stack.enter_async_context(server_group(chroot, tmp_path, {}))
        producer = await stack.enter_async_context(producing(bootstrap_of(broker)))
        await producer.send("t", 10)
        child = await stack.enter_async_context(
            commanded_child(link.connect_string, bootstrap_of(broker), tmp_path / "child.jsonl", 30_000)
        )
        await until(
            lambda: child.owned == 2 and len(member.owned) == 2,
            60,
            lambda: f"two and two: {child.owned} {member.owned}",
        )
        await until(lambda: len(child.of("commit_answered")) > 0, 60, "a commit of the child")
        child.process.send_signal(signal.SIGSTOP)
        await asyncio.to_thread(end_session, chroot, link.credentials())
        await shared_out([member], EVERYTHING)
        old, before = child.of("member_started")[-1]["member"], len(child.of("commit_answered"))
        child.process.send_signal(signal.SIGCONT)
        await until(lambda: len(child.of("member_started")) == 2, 60, "the child under a new id")
        await until(lambda: child.owned == 2 and len(member.owned) == 2, 60, "two partitions each again")
        lost = child.of("partitions_lost")
        assert [event["member"] for event in lost] == [old]
        # It may read the answer to a commit that was in flight when it was stopped.
        written, written_later = commits_of(broker, old)
        late = [event for event in child.of("commit_answered")[before:] if event["member"] == old]
        accepted = [(event["partition"], event["offset"]) for event in late if event["outcome"] == "accepted"]
        assert written
        assert set(accepted) <= written
        assert written_later == set()
        assert {event["outcome"] for event in late} <= {"accepted", "refused", "dropped"}
        assert await commit_as(broker, Identity(old, lost[0]["generation"]), 0) == "UNKNOWN_CONSUMER"
        child.process.kill()
        await asyncio.to_thread(end_session, chroot, link.credentials())
        await shared_out([member], EVERYTHING)


async def test_member_cut_off_from_zookeeper_gives_up_its_partitions_before_others_get_them(
    chroot: str, tmp_path: Path
) -> None:
    """Only from ZooKeeper: the coordinator, which it still reaches, sees its id go; its own clock may be first."""
    async with AsyncExitStack() as stack:
        broker, (member,) = await stack.enter_async_context(server_group(chroot, tmp_path, {}))
        servers, folder = split_chroot(chroot)
        proxy = TcpProxy("cut", SilentTracer())
        stack.push_async_callback(proxy.stop)
        await proxy.start(int(servers.rpartition(":")[2]))
        settings = {"zookeeper.session.timeout.ms": "3000", "zookeeper.connection.timeout.ms": "30000"}
        settings["command.wait.ms"] = "60000"
        cut = commanded(bootstrap_of(broker), f"127.0.0.1:{proxy.port}{folder}", settings=settings)
        stack.push_async_callback(cut.close)
        await cut.begin({"t": 1})
        await shared_out([member, cut], EVERYTHING)
        proxy.cut()
        await shared_out([member], EVERYTHING)
        gone = cut.tracer.of("partitions_lost", "partitions_revoked")[-1]
        assert len(gone["all"]) == 0
        assert gone["ns"] < member.tracer.of("partitions_assigned")[-1]["ns"]
        proxy.heal()
        await shared_out([member, cut], EVERYTHING)


async def test_callback_that_does_not_return_stalls_the_group_until_the_rebalance_timeout(
    chroot: str, tmp_path: Path
) -> None:
    """The stall of this design: all other members have stopped, and wait for the one that does not acknowledge."""
    timeout = {"group.server.rebalance.timeout.ms": "2000"}
    async with server_group(chroot, tmp_path, {}, {}, broker_settings=timeout) as (broker, (stuck, other)):
        await shared_out([stuck, other], EVERYTHING)
        released = asyncio.Event()
        on_revoked = stuck.listener.on_revoked

        async def wait_for_the_end(stream: int, partitions: frozenset[TopicPartition]) -> None:
            await released.wait()
            await on_revoked(stream, partitions)

        stuck.listener.on_revoked = wait_for_the_end  # type: ignore[method-assign]
        held, generation = stuck.owned, stuck.tracer.of("partitions_assigned")[-1]["generation"]
        ended, before_ns = len(other.tracer.of("rebalance_ended")), SystemClock().monotonic_ns()
        joiner = await commanded(bootstrap_of(broker), chroot).begin({"t": 1})
        await until(lambda: other.owned == frozenset(), 60, "the other member to stop")
        assert stuck.owned == held
        await until(lambda: len(other.owned) == len(joiner.owned) == 2, 60, "the two to go on without it")
        await until(lambda: len(other.tracer.of("rebalance_ended")) > ended, 60, "the other member to report it")
        # The coordinator counts from the start of the round, which its members learn of some time later.
        assert other.tracer.of("rebalance_ended")[-1]["ns"] - before_ns >= 2_000_000_000
        late = await stuck.consumer.commit(dict.fromkeys(held, 1))
        assert set(late.refused) == held
        assert set(late.refused.values()) <= {"UNKNOWN_CONSUMER", "ILLEGAL_GENERATION"}
        released.set()
        await shared_out([stuck, other, joiner], EVERYTHING)
        assert stuck.tracer.of("partitions_lost")[-1]["generation"] == generation
        await joiner.close()
