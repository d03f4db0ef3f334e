"""A broker and members with a manual clock and a seeded source make the same ids, and share out in the same order."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

from coordinator.client.classic.consumer import CoordinatorConsumer
from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.consumer.settings import Kip848ConsumerConfig
from coordinator.client.settings import CoordinatorConsumerConfig
from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.broker.storage.files import FOLDER, SUFFIX
from kernel.runtime import Runtime
from kernel.values import TopicPartition
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import Running, partitions_of, shared_out
from tests.support.consumers.eager import bootstrap_of
from tests.support.consumers.reconciling import QUICK_GROUPS
from tests.support.time.manual_clock import ManualClock
from tests.support.trace.tracers import ListTracer
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.settings import ZkConsumerConfig

EVERYTHING = partitions_of("t", 4)
COMMON = {"client.id": "c", "auto.offset.reset": "earliest", "fetch.max.wait.ms": "100"}
PATIENT = {"session.timeout.ms": "30000", "heartbeat.interval.ms": "100"}


class Life(NamedTuple):
    """What was drawn, and what followed from it."""

    topic_id: str
    files: list[str]
    shares: dict[str, list[TopicPartition]]  #: by member id, in the order of joining


def members_of(broker: Broker, runtime: Runtime) -> list[Running]:
    """Two of `eager`, whose ids the broker makes, and two of `consumer`, who make their own."""
    made = []
    for design in ("eager", "eager", "consumer", "consumer"):
        tracer = ListTracer(process=design)
        given = {**COMMON, "bootstrap.servers": bootstrap_of(broker), "group.id": design}
        if design == "eager":
            config, _ = CoordinatorConsumerConfig.from_settings({**given, **PATIENT})
            made.append(Running(CoordinatorConsumer(config, tracer=tracer, process=design, runtime=runtime), tracer))
        else:
            settings, _ = Kip848ConsumerConfig.from_settings(given)
            made.append(Running(Kip848Consumer(settings, tracer=tracer, process=design, runtime=runtime), tracer))
    return made


async def life(chroot: str, folder: Path, seed: int) -> Life:
    """Polls end by the machine's clock; the broker's stands still, so that no session or delay ends."""
    broker_runtime = Runtime(clock=ManualClock(), random=Random(seed))
    async with running_broker(chroot, folder, mount=(mount,), settings=QUICK_GROUPS, runtime=broker_runtime) as broker:
        await create_topics(broker, {"t": 4})
        members = members_of(broker, Runtime(random=Random(seed + 1)))
        for pair in (members[:2], members[2:]):
            for number, member in enumerate(pair, start=1):
                await member.begin({"t": 1})
                await shared_out(pair[:number], EVERYTHING)
        shares = {member.consumer.member_ids[0]: sorted(member.owned) for member in members}
        for member in members:
            await member.close()
        topic_id = str(broker.cluster.snapshot.topics["t"].topic_id)
    return Life(topic_id, sorted(path.name for path in (folder / FOLDER).glob(f"*{SUFFIX}")), shares)


async def test_broker_and_members_of_one_seed_draw_the_same_and_those_of_another_do_not(
    chroot: str, tmp_path: Path
) -> None:
    first, again, other = [
        await life(f"{chroot}/{number}", tmp_path / str(number), seed) for number, seed in enumerate((1, 1, 2))
    ]
    assert again == first
    assert list(again.shares) == list(first.shares)
    assert other.topic_id != first.topic_id
    assert not set(other.files) & set(first.files)
    assert not other.shares.keys() & first.shares.keys()


async def test_member_of_zookeeper_is_named_by_its_clock_and_its_source() -> None:
    config, _ = ZkConsumerConfig.from_settings({"zookeeper.connect": "127.0.0.1:1", "group.id": "g"})

    async def name(seed: int) -> str:
        runtime = Runtime(clock=ManualClock(wall_ms=12_345), random=Random(seed))
        return ZooKeeperConsumer(config, tracer=ListTracer(), process="m", runtime=runtime)._consumer_id

    assert await name(1) == await name(1) != await name(2)
    assert "-12345-" in await name(1)
