"""The recorded conversations of a real Kafka 4.1.1, and those of the ZooKeeper era of a 3.9.1, played over TCP to one
of our brokers on a real ZooKeeper.

Many are played at a time. Their timers are real, so one that differs is played up to twice more, alone, before it
counts.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path

import pytest

from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.broker.cluster.znodes import TopicNode, topic_node
from kernel.trace.writer import SilentTracer
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.brokers.live import create_topics, running_broker
from tests.support.conversations.recorded import Recording, player, recording
from tests.support.wire.clients import WireConnection, wait_for_coordinator

AT_A_TIME = 24
#: Settings of the recorded brokers that ours does not have, all for features that it does not have.
FOREIGN = ("transaction.state.", "log.cleaner.", "share.")

#: How many conversations each recording has.
RECORDINGS = {
    "classic": 120,
    "consumer": 24,
    "consumer_further": 66,
    "consumer_admin": 25,
    "consumer_topics": 12,
    "consumer_patterns": 61,
    "consumer_mixed": 80,
    "consumer_mixed_disabled": 5,
    "consumer_mixed_small": 3,
    "era": 24,
    "data": 10,  # about transactions on data: also what the broker stored, and what readers of both levels received
}


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_conversations_are_answered_as_kafka_answered_them_over_tcp(
    name: str, chroot: str, tmp_path: Path
) -> None:
    recorded = recording(name)
    assert len(recorded.conversations) == RECORDINGS[name]
    differing, problems = asyncio.run(_play_all(recorded, chroot, tmp_path))
    assert not problems, "\n".join(f"{name}: {line}" for name, found in problems.items() for line in found)
    few = max(RECORDINGS[name] // 4, 3)
    assert len(differing) < few, f"they differed when they were first played alone: {differing}"


async def _play_all(recorded: Recording, chroot: str, tmp_path: Path) -> tuple[list[str], dict[str, list[str]]]:
    """The names of those that differed at the first play alone, and what differed at the second.

    When they are played together, a machine that stands still for a session's length makes all of them differ.
    """
    names = list(recorded.conversations)
    settings = {k: v for k, v in recorded.settings.items() if not k.startswith(FOREIGN)}
    async with running_broker(chroot, tmp_path, settings=settings, mount=(mount,), tracer=SilentTracer()) as broker:
        if recorded.topic_ids:
            await _create_with_ids(broker, recorded)
        else:
            await create_topics(broker, recorded.topics)
        topic_ids = _topic_ids(broker, recorded.topics)

        async def connect(client_id: str) -> WireConnection:
            return await WireConnection.open(broker.address.host, broker.address.port, client_id)

        async def change_topic(topic: str, partitions: int) -> uuid.UUID | None:
            return await _change_topic(broker, topic, partitions)

        admin = await connect("admin")
        await wait_for_coordinator(admin, *(f"warm-{n}" for n in range(16)))
        admin.close()
        room = asyncio.Semaphore(AT_A_TIME)

        async def play(name: str) -> list[str]:
            async with room:
                return await player(recorded, name, connect, topic_ids, change_topic).play()

        together = [name for name in names if not recorded.conversations[name].get("alone")]
        played = dict(zip(together, await asyncio.gather(*map(play, together)), strict=True))
        again = [name for name in names if name not in played or played[name]]
        differing = [name for name in again if await play(name)]
        # The machine may have paused during that play, too.
        problems = {name: found for name in differing if (found := await play(name))}
    return differing, problems


async def _create_with_ids(broker: Broker, recorded: Recording) -> None:
    """Create the topics under the ids of the recorded broker's, as Kafka's tools do: in ZooKeeper."""
    for name, partitions in recorded.topics.items():
        node = TopicNode(((broker.address.node_id,),) * partitions, recorded.topic_ids[name])
        await broker.cluster.session.create(paths.topic(name), topic_node(node))
    last = [TopicPartition(name, partitions - 1) for name, partitions in recorded.topics.items()]
    await until(lambda: all(broker.cluster.leads(tp) for tp in last), 60, f"{last} to be led")
    assert _topic_ids(broker, recorded.topics) == recorded.topic_ids


def _topic_ids(broker: Broker, topics: Mapping[str, int]) -> dict[str, uuid.UUID]:
    return {name: broker.cluster.snapshot.topics[name].topic_id for name in topics}


async def _change_topic(broker: Broker, topic: str, partitions: int) -> uuid.UUID | None:
    """Create it, let it grow, or delete it (0 partitions), and wait until the broker knows."""
    cluster = broker.cluster
    if not partitions:
        await cluster.delete_topic(topic)
        await until(lambda: topic not in cluster.snapshot.topics, 60, f"{topic} to be gone")
        return None
    if topic in cluster.snapshot.topics:
        await cluster.grow_topic(topic, partitions=partitions)
    else:
        await cluster.create_topic(topic, partitions=partitions, replication_factor=1)

    def is_known() -> bool:
        view = cluster.snapshot.topics.get(topic)
        return view is not None and len(view.partitions) == partitions

    await until(is_known, 60, f"{topic} to have {partitions} partitions")
    return cluster.snapshot.topics[topic].topic_id
