"""Original consumers and real brokers as child processes: what a test can do with them, and what they report."""

from __future__ import annotations

import asyncio
import os

import pytest

from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import HostEnded, OriginalFailed
from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.client.reads import fetch
from kernel.errors import EnvironmentFault
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.java.originals import PROPERTIES, original_host, real_broker
from tests.support.zookeeper.sessions import opened

VALUES = {partition: [b"%d" % n for n in range(20)] for partition in range(2)}


@pytest.mark.parametrize("fixture", ["host_0_8", "host_1_1"])
async def test_messages_have_positions_and_pause_resume_commit_and_leave_work(request, broker_1_1, fixture):
    host = request.getfixturevalue(fixture)
    topic, group = f"messages-{fixture}", f"g-{fixture}"
    broker_1_1.create_topic(topic, 2)
    await host.produce(broker_1_1.bootstrap, topic, VALUES)
    async with opened(broker_1_1.zookeeper) as session:
        member = await host.join(
            "c1", zookeeper=broker_1_1.zookeeper, group=group, topics={topic: 2}, properties=PROPERTIES
        )
        await member.read_until(40)
        got = [(m.partition, m.offset, m.stream, m.value) for m in member.messages]
        assert sorted(got) == [(p, n, p, b"%d" % n) for p in range(2) for n in range(20)]
        await member.commit()
        assert (await session.get(paths.offset(group, topic, 0)))[0] == b"20"
        await member.pause()
        await host.produce(broker_1_1.bootstrap, topic, VALUES)
        assert len(member.messages) == 40
        await member.resume()
        await member.read_until(80)
        await member.leave()
        assert await session.children(paths.member_ids(group)) == []
        assert (await session.get(paths.offset(group, topic, 1)))[0] == b"40"


async def test_failed_join_reports_the_originals_exception_and_stays_registered(broker_1_1, host_0_8):
    broker_1_1.create_topic("failing", 1)
    async with opened(broker_1_1.zookeeper) as ghost:
        await ghost.create(paths.owner("failing", "failing", 0), b"failing_x-0", ephemeral=True, makepath=True)
        quick = {**PROPERTIES, "rebalance.max.retries": "2", "rebalance.backoff.ms": "50"}
        member = host_0_8.member(
            "c1", zookeeper=broker_1_1.zookeeper, group="failing", topics={"failing": 1}, properties=quick
        )
        with pytest.raises(OriginalFailed, match="c1 joining: ConsumerRebalanceFailedException") as raised:
            await member.join()
        assert raised.value.java_class == "ConsumerRebalanceFailedException"
        assert await ghost.children(paths.member_ids("failing")) == ["failing_c1"]
        await member.leave()
        assert await ghost.children(paths.member_ids("failing")) == []


async def test_the_listener_of_1_1_is_notified_before_the_release_and_before_the_start(broker_1_1, host_1_1):
    broker_1_1.create_topic("reported", 2)
    shared = {
        "zookeeper": broker_1_1.zookeeper, "group": "hosts", "topics": {"reported": 1}, "properties": PROPERTIES,
    }  # fmt: skip
    first = await host_1_1.join("c1", **shared, listener="record")
    second = await host_1_1.join("c2", **shared)
    await until(lambda: len(first.events) >= 4, 60, lambda: f"two rebalance events, got {first.events}")
    assert [event["event"] for event in first.events[:4]] == ["before_release", "before_start"] * 2
    assert first.events[1]["assignment"]["reported"] == {"0": "hosts_c1-0", "1": "hosts_c1-0"}
    assert first.events[2]["owned"] == {"reported": [0, 1]}
    await first.leave()
    await second.leave()


def test_a_host_needs_no_java_on_the_path_and_its_end_fails_pending_waits(monkeypatch, tmp_path, zookeeper):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    async def story(host):
        # ZooKeeper does not answer: the connection may wait for half a minute.
        join = asyncio.create_task(
            host.join(
                "c1",
                zookeeper="127.0.0.1:1",
                group="g",
                topics={"t": 1},
                properties={"zookeeper.connection.timeout.ms": "30000"},
            )
        )
        await until(lambda: "Connecting to zookeeper" in host.log_path.read_text(), 120, "the join to begin")
        await asyncio.to_thread(host.kill)
        with pytest.raises(HostEnded, match=r"the process with originals of 0\.8\.2\.2 has ended"):
            await join
        with pytest.raises(HostEnded):
            await host.members[0].commit()

    with original_host("0.8.2.2", tmp_path / "host") as host:
        pid = host.pid
        asyncio.run(story(host))
        assert not host.running
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize("version", ["1.1.1", "4.1.1"])
def test_a_real_broker_is_killed_and_started_again_with_its_port_and_its_data(tmp_path, chroot, version):
    tp = TopicPartition("t", 0)

    async def produce_and_fetch(broker: RealBroker) -> list[bytes | None]:
        client = ClusterClient([("127.0.0.1", broker.port)], "test")
        producer = Producer(client)
        await producer.send(tp, b"x")
        await producer.close()
        connection = await client.connection(broker.node_id)
        got = (await fetch(connection, {tp: 0}))[tp]
        await client.close()
        return [record.value for record in got.records]

    given = {
        "1.1.1": {"zookeeper": chroot, "settings": {"zookeeper.session.timeout.ms": "4000"}},
        "4.1.1": {"settings": {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "200"}},
    }
    with real_broker(version, tmp_path, **given[version]) as broker:
        broker.create_topic("t", 1)
        assert asyncio.run(produce_and_fetch(broker)) == [b"x"]
        broker.kill()
        broker.start()
        assert asyncio.run(produce_and_fetch(broker)) == [b"x", b"x"]


def test_broker_that_does_not_start_reports_the_end_of_its_log(tmp_path, chroot):
    with (
        pytest.raises(
            EnvironmentFault, match=r"Kafka 1\.1\.1 ended with exit code 1; the end of its log .*broker\.log"
        ),
        real_broker("1.1.1", tmp_path, zookeeper=chroot, settings={"log.retention.hours": "never"}),
    ):
        raise AssertionError("it started")
