"""Brokers' views of one cluster on a real ZooKeeper: leadership moves, returns, and follows sessions."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from kernel.broker.cluster.cluster_view import (
    NO_LEADER,
    ClusterSnapshot,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    Leadership,
    PartitionView,
    TopicExists,
    UnknownTopic,
)
from kernel.broker.cluster.leadership import Cluster
from kernel.broker.cluster.observing import Observation
from kernel.broker.cluster.registration import BrokerIdTaken
from kernel.values import BrokerAddress, TopicPartition
from kernel.waiting import until
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.errors import OperationRefused
from kernel.zookeeper.operations import SessionState
from tests.support.trace.tracers import ListTracer
from tests.support.zookeeper.sessions import become, expire, fail, opened

WAIT_MS = 30_000
#: Outlives the restart of a server on a busy machine, and a connection that it accepts and never answers
#: (kernel.zookeeper.connection); expiries are forced.
SESSION_MS = 15_000


class RecordingListener:
    """A listener that records its calls in order, and the partitions that it leads."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, TopicPartition, int]] = []
        self.led: dict[TopicPartition, int] = {}

    async def on_lead(self, leadership: Leadership) -> None:
        tp = leadership.topic_partition
        assert tp not in self.led, f"{tp} is led already"
        self.led[tp] = leadership.leader_epoch
        self.calls.append(("lead", tp, leadership.leader_epoch))

    async def on_resign(self, topic_partition: TopicPartition) -> None:
        self.calls.append(("resign", topic_partition, self.led.pop(topic_partition)))


class Brokers:
    """Some brokers' clusters in one process, all in one ZooKeeper chroot."""

    def __init__(self, chroot: str) -> None:
        self.chroot = chroot
        self.stack = AsyncExitStack()
        self.listeners: dict[int, RecordingListener] = {}
        self.tracers: dict[int, ListTracer] = {}
        self.live: list[Cluster] = []

    async def __aenter__(self) -> Brokers:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stack.aclose()

    async def start(self, node_id: int) -> Cluster:
        self.tracers[node_id] = ListTracer()
        cluster = Cluster(
            self.chroot,
            BrokerAddress(node_id, "127.0.0.1", 9000 + node_id),
            session_timeout_ms=SESSION_MS,
            connection_timeout_ms=30_000,
            tracer=self.tracers[node_id],
        )
        self.listeners[node_id] = RecordingListener()
        cluster.subscribe(self.listeners[node_id], topics=lambda name: name != "ignored")
        await self.stack.enter_async_context(cluster)
        self.live.append(cluster)
        for other in self.live:
            # Views are eventually consistent: a topic is only spread over brokers that its creator has seen.
            assert await other.until(lambda snapshot: node_id in snapshot.brokers, WAIT_MS)
        return cluster

    async def crash(self, cluster: Cluster) -> None:
        """Stop a broker without resigning anything; then its session ends."""
        self.live.remove(cluster)
        await cluster.session.close()


def states(snapshot: ClusterSnapshot, topic: str) -> list[tuple[int, int, tuple[int, ...]]]:
    found: tuple[PartitionView, ...] = snapshot.topics[topic].partitions if topic in snapshot.topics else ()
    return [(p.leader, p.leader_epoch, p.isr) for p in found]


async def reach(cluster: Cluster, topic: str, expected: list[tuple[int, int, tuple[int, ...]]]) -> None:
    reached = await cluster.until(lambda snapshot: states(snapshot, topic) == expected, WAIT_MS)
    assert reached, f"{states(cluster.snapshot, topic)} is not {expected}"


async def test_leadership_moves_when_a_broker_leaves_and_its_unreplicated_partitions_wait_for_it(chroot: str) -> None:
    async with Brokers(chroot) as brokers:
        one, two = await brokers.start(1), await brokers.start(2)
        assignment = [[1, 2], [2, 1], [2]]
        await one.create_topic("pair", partitions=-1, replication_factor=-1, assignment=assignment[:2])
        await one.create_topic("lone", partitions=-1, replication_factor=-1, assignment=assignment[2:])
        for view in (one, two):
            await reach(view, "pair", [(1, 0, (1, 2)), (2, 0, (2, 1))])
            await reach(view, "lone", [(2, 0, (2,))])
        await until(lambda: len(brokers.listeners[2].led) == 2, 60, "broker 2 to lead two partitions")
        await brokers.crash(two)
        await reach(one, "pair", [(1, 0, (1,)), (1, 1, (1,))])
        await reach(one, "lone", [(NO_LEADER, 1, (2,))])
        tp = TopicPartition("pair", 1)
        await until(lambda: one.leads(tp) is not None, 60, "broker 1 to lead broker 2's partitions")
        assert brokers.listeners[1].calls == [("lead", TopicPartition("pair", 0), 0), ("lead", tp, 1)]
        assert set(one.snapshot.brokers) == {1}
        await until(lambda: not brokers.listeners[2].led, 60, "broker 2 to resign")
        again = await brokers.start(2)
        await reach(again, "pair", [(1, 0, (1, 2)), (1, 1, (1, 2))])
        await reach(again, "lone", [(2, 2, (2,))])
        await until(lambda: again.leads(TopicPartition("lone", 0)) is not None, 60, "broker 2 to lead again")
        changes = [(e["partition"], e["leader"], e["leader_epoch"]) for e in brokers.tracers[1].of("leader_changed")]
        assert changes == [(0, 1, 0), (1, 1, 1)]


async def test_controller_is_replaced_and_the_next_one_raises_the_epoch(chroot: str) -> None:
    async with Brokers(chroot) as brokers:
        one, two = await brokers.start(1), await brokers.start(2)
        assert await two.until(lambda s: (s.controller_id, s.controller_epoch) == (1, 1), WAIT_MS)
        await one.create_topic("t", partitions=-1, replication_factor=-1, assignment=[[1, 2]])
        await reach(two, "t", [(1, 0, (1, 2))])
        await brokers.crash(one)
        assert await two.until(lambda s: (s.controller_id, s.controller_epoch) == (2, 2), WAIT_MS)
        await reach(two, "t", [(2, 1, (2,))])
        assert two.snapshot.topics["t"].partitions[0].controller_epoch == 2


async def test_broker_whose_session_expired_resigns_registers_again_and_leads_at_a_higher_epoch(chroot: str) -> None:
    async with Brokers(chroot) as brokers:
        one, two = await brokers.start(1), await brokers.start(2)
        tp = TopicPartition("t", 0)
        await one.create_topic("t", partitions=-1, replication_factor=-1, assignment=[[2]])
        await until(lambda: two.leads(tp) is not None, 60, "broker 2 to lead")
        await expire(two.session)
        calls = brokers.listeners[2].calls
        # It left and returned: one epoch for each, as in Kafka.
        await until(lambda: calls[-1:] == [("lead", tp, 2)], 60, lambda: f"it to lead again: {calls}")
        assert calls[:2] == [("lead", tp, 0), ("resign", tp, 0)]
        assert await one.until(lambda s: set(s.brokers) == {1, 2}, WAIT_MS)


async def test_topics_are_created_grown_and_deleted_from_any_broker(chroot: str) -> None:
    async with Brokers(chroot) as brokers:
        one, two = await brokers.start(1), await brokers.start(2)
        forgotten: list[UUID] = []

        async def forget(topic_id: UUID) -> None:
            forgotten.append(topic_id)

        one.on_topic_deleted(forget)
        made = await two.create_topic("t", partitions=2, replication_factor=2, config={"retention.ms": "1"})
        assert await one.until(lambda s: len(states(s, "t")) == 2 and "t" in s.topics, WAIT_MS)
        assert one.snapshot.topics["t"].topic_id == made.topic_id
        assert one.snapshot.topic_names[made.topic_id] == "t"
        with pytest.raises(TopicExists):
            await one.create_topic("t", partitions=1, replication_factor=1)
        with pytest.raises(InvalidPartitions, match="cannot be changed to"):
            await one.grow_topic("t", partitions=2)
        await one.grow_topic("t", partitions=3)
        assert await two.until(lambda s: len(states(s, "t")) == 3 and states(s, "t")[2][0] != NO_LEADER, WAIT_MS)
        leaders = {p: one if states(two.snapshot, "t")[p][0] == 1 else two for p in range(3)}
        await until(
            lambda: all(c.leads(TopicPartition("t", p)) for p, c in leaders.items()), 60, "leaders of all partitions"
        )
        await two.delete_topic("t")
        for view in (one, two):
            assert await view.until(lambda s: "t" not in s.topics, WAIT_MS)
        await until(
            lambda: forgotten == [made.topic_id] and not brokers.listeners[1].led, 60, "the deletion to be reported"
        )
        with pytest.raises(UnknownTopic):
            await two.delete_topic("t")
        again = await two.create_topic("t", partitions=1, replication_factor=1)
        assert again.topic_id != made.topic_id
        assert await one.until(lambda s: states(s, "t")[:1] != [] and states(s, "t")[0][1] == 0, WAIT_MS)


async def test_nodes_in_zookeeper_are_those_of_3_9_1_and_groups_are_left_alone(chroot: str) -> None:
    async with Brokers(chroot) as brokers, opened(chroot) as session:
        one = await brokers.start(1)
        await one.create_topic("t", partitions=1, replication_factor=1)
        await reach(one, "t", [(1, 0, (1,))])
        assert [await one.allocate_producer_id() for _ in range(2)] == [0, 1]

        async def fields(path: str) -> Any:
            return json.loads((await session.get(path))[0])

        broker = await fields("/brokers/ids/1")
        assert (broker["version"], broker["endpoints"]) == (5, ["PLAINTEXT://127.0.0.1:9001"])
        _, stat = await session.get("/brokers/ids/1")
        assert (stat.version, stat.ephemeral_owner) == (1, one.session.session_id)
        assert await fields("/brokers/topics/t/partitions/0/state") == {
            "controller_epoch": 1,
            "leader": 1,
            "version": 1,
            "leader_epoch": 0,
            "isr": [1],
        }
        assert (await fields("/cluster/id"))["id"] == one.snapshot.cluster_id
        assert await fields("/config/topics/t") == {"version": 1, "config": {}}
        assert await session.children("/") == [
            *("admin", "brokers", "cluster", "config", "consumers", "controller", "controller_epoch", "feature"),
            *("isr_change_notification", "latest_producer_id_block", "log_dir_event_notification"),
        ]
        touched = {str(event["path"]) for event in brokers.tracers[1].of("zk_op")}
        assert not [path for path in touched if path.startswith("/consumers/")]


async def test_garbage_in_znodes_is_ignored_and_repaired_nodes_count(chroot: str) -> None:
    async with Brokers(chroot) as brokers, opened(chroot) as session:
        one = await brokers.start(1)
        await session.create("/brokers/topics/broken", b"{nonsense")
        await session.create("/brokers/ids/not-a-number", b"")
        await session.create("/brokers/ids/7", b"[]")
        # A topic as Kafka before 2.8 wrote it gets its id from the controller.
        await session.create("/brokers/topics/old", b'{"version":1,"partitions":{"0":[1]}}')
        await reach(one, "old", [(1, 0, (1,))])
        assert set(one.snapshot.brokers) == {1}
        assert set(one.snapshot.topics) == {"old"}
        await session.set("/brokers/topics/broken", b'{"version":1,"partitions":{"0":[1]}}')
        await reach(one, "broken", [(1, 0, (1,))])


async def test_invalid_requests_are_refused_and_write_nothing(chroot: str) -> None:
    async with Brokers(chroot) as brokers, opened(chroot) as session:
        one = await brokers.start(1)
        for name in ("", ".", "a b", "ä", "x" * 250):
            with pytest.raises(InvalidTopic):
                await one.create_topic(name, partitions=1, replication_factor=1)
        with pytest.raises(InvalidPartitions):
            await one.create_topic("t", partitions=0, replication_factor=1)
        with pytest.raises(InvalidReplicationFactor, match="there are 1"):
            await one.create_topic("t", partitions=1, replication_factor=2)
        with pytest.raises(UnknownTopic):
            await one.grow_topic("t", partitions=2)
        view = await one.create_topic("t", partitions=1, replication_factor=1, validate_only=True)
        assert len(view.partitions) == 1
        assert await session.children("/brokers/topics") == []
        assert await session.children("/config/topics") == []


async def test_controller_elected_without_a_response_acts_as_controller(chroot: str) -> None:
    async with Brokers(chroot) as brokers, opened(chroot) as session:
        one = await brokers.start(1)
        assert await one.until(lambda s: s.controller_id == 1, WAIT_MS)
        assert one._controller is not None
        one._controller._elected_in = one._controller._epoch = -1  # as if the answer had been lost
        await one.create_topic("t", partitions=1, replication_factor=1)
        await reach(one, "t", [(1, 0, (1,))])
        assert (await session.get("/controller_epoch"))[0] == b"1"


async def test_broker_that_stops_following_after_an_internal_error_resigns(
    chroot: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def mistaken() -> Observation:
        raise IndexError("a mistake")

    async with Brokers(chroot) as brokers:
        one, two = await brokers.start(1), await brokers.start(2)
        await one.create_topic("t", partitions=-1, replication_factor=-1, assignment=[[1, 2]])
        await reach(two, "t", [(1, 0, (1, 2))])
        assert one._observer is not None
        monkeypatch.setattr(one._observer, "refresh", mistaken)
        await two.create_topic("u", partitions=1, replication_factor=1)
        await reach(two, "t", [(2, 1, (2,))])
        await until(lambda: not brokers.listeners[1].led, 60, "broker 1 to resign")
        assert "a mistake" in caplog.text


async def test_broker_whose_session_fails_by_a_bug_resigns_and_says_so_once(
    chroot: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with Brokers(chroot) as brokers:
        one = await brokers.start(1)
        failures: list[Exception] = []
        one.on_failed = failures.append
        await one.create_topic("t", partitions=1, replication_factor=1)
        await reach(one, "t", [(1, 0, (1,))])
        session = one.session
        await fail(session)
        await until(lambda: not brokers.listeners[1].led, 60, "broker 1 to resign")
        await become(session, SessionState.CLOSED)
        await until(lambda: {task.get_name() for task in one._tasks} == set(), 60, "all following to end")
        (failure,) = failures
        assert "ZeroDivisionError: a bug" in str(failure)
    assert [record.levelname for record in caplog.records].count("CRITICAL") == 1


async def test_unreadable_znode_is_retried_and_does_not_end_the_broker(
    chroot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel.broker.cluster.leadership._ERROR_RETRY_S", 0.01)
    async with Brokers(chroot) as brokers, opened(chroot) as session:
        one = await brokers.start(1)
        real, refusals = one.session.get, [OperationRefused("no authorisation")] * 3

        async def refused(path: str, **how: Any) -> Any:
            if path == "/brokers/topics/t" and refusals:
                raise refusals.pop()
            return await real(path, **how)

        monkeypatch.setattr(one.session, "get", refused)
        await session.create("/brokers/topics/t", b'{"version":1,"partitions":{"0":[1]}}')
        await reach(one, "t", [(1, 0, (1,))])
        assert not refusals


async def test_short_outage_of_zookeeper_changes_no_leadership_and_the_view_catches_up(tmp_path: Path) -> None:
    with EmbeddedZooKeeper(tmp_path) as server:
        async with Brokers(server.connect_string) as brokers:
            one, two = await brokers.start(1), await brokers.start(2)
            await one.create_topic("t", partitions=-1, replication_factor=-1, assignment=[[1, 2], [2, 1]])
            for view in (one, two):
                await reach(view, "t", [(1, 0, (1, 2)), (2, 0, (2, 1))])
            sessions = [view.session.session_id for view in (one, two)]
            await asyncio.to_thread(server.servers[0].kill)
            for view in (one, two):
                await become(view.session, SessionState.SUSPENDED)
            await asyncio.to_thread(server.servers[0].restart)
            for view in (one, two):
                await view.session.wait_connected()
            assert [view.session.session_id for view in (one, two)] == sessions  # otherwise it was not a short outage
            await one.create_topic("u", partitions=-1, replication_factor=-1, assignment=[[2, 1]])
            await reach(two, "u", [(2, 0, (2, 1))])
            for listener in brokers.listeners.values():
                assert "resign" not in [call[0] for call in listener.calls]


async def test_broker_id_in_use_is_refused(chroot: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel.broker.cluster.leadership._REGISTRATION_GRACE_MS", 200 - SESSION_MS)
    async with Brokers(chroot) as brokers:
        await brokers.start(1)
        with pytest.raises(BrokerIdTaken, match=r"choose another broker\.id"):
            await brokers.start(1)
