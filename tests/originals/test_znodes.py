"""All znodes of our group compared with the original's, live, in one ZooKeeper, at each stage of one script.

Left out: times of registrations, and the groups' names. Ours has the `kafka.release` of the original: 1.1.1 creates
/consumers/G and its ids with an empty text where 0.8.2.2 creates them without data, and escapes a pattern twice.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

import pytest
from kazoo.client import KazooClient

from comparison.originals.hosts import Pattern
from kernel.client.client import ClusterClient
from kernel.client.producer import Producer
from kernel.serials import numbered_value
from kernel.values import TopicPartition
from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.java.mixed_groups import MixedGroup, Ours, Theirs, mixed_group
from zkconsumer.znodes.filters import TopicFilter

HOSTS = {"0.8.2.2": "host_0_8", "1.1.1": "host_1_1"}
RELEASES = {"0.8.2.2": "0.8.2", "1.1.1": "1.1"}
TOPICS = {"alpha": 4, "beta": 3, "gamma": 12}
RECORDS = 2  #: in each partition; a member that has read them has committed something

#: (what, who, subscription): the changes between two readings of the znodes. Owners commit before others join: a
#: member that reads a partition's offset before its owner's rebalance commits it would read the records again.
STATIC = (
    ("join", "c1", {"alpha": 2, "beta": 1}),
    ("commit", "c1", None),
    ("join", "c2", {"alpha": 1, "gamma": 2}),
    ("commit", "c2", None),
    ("join", "c3", {"gamma": 11}),
    ("commit", "c2", None),
    ("leave", "c1", None),
    ("leave", "c3", None),
    ("leave", "c2", None),
)
WILDCARDS = (
    ("join", "c1", Pattern("white_list", " alpha , beta", 2)),
    ("commit", "c1", None),
    ("join", "c2", Pattern("black_list", '"gamma"', 1)),
    ("join", "c3", {"beta": 1}),
    ("leave", "c1", None),
    ("leave", "c2", None),
)
ESCAPES = (("join", "c1", Pattern("white_list", 'al\\w+/?"?é?', 1)),)


@pytest.fixture(scope="module")
def filled(broker_1_1):
    """The broker with all topics filled."""

    async def fill() -> None:
        client = ClusterClient([("127.0.0.1", broker_1_1.port)], "fill")
        producer = Producer(client)
        every = [TopicPartition(topic, number) for topic, count in TOPICS.items() for number in range(count)]
        await asyncio.gather(*(producer.enqueue(tp, numbered_value(i)) for tp in every for i in range(RECORDS)))
        await producer.close()
        await client.close()

    for topic, count in TOPICS.items():
        broker_1_1.create_topic(topic, count)
    asyncio.run(fill())
    return broker_1_1


def look(connect_string: str, group: str) -> dict[str, tuple[str | None, str | None, int]]:
    """{path: (data, the member whose session it is, version)} of everything below the group.

    Read by kazoo directly, which distinguishes no data from an empty text.
    """
    client = KazooClient(connect_string)
    client.start()
    try:
        nodes = {}
        waiting = [paths.group(group)]
        while waiting:
            path = waiting.pop()
            nodes[path] = client.get(path)
            waiting += [f"{path}/{child}" for child in client.get_children(path)]
    finally:
        client.stop()
        client.close()
    sessions = {
        stat.ephemeralOwner: paths.name(path) for path, (_, stat) in nodes.items() if paths.parse_member_id(path)
    }
    return {
        path.replace(group, "G"): (
            None if data is None else re.sub(r'"timestamp":"\d+"', "TIME", data.decode()).replace(group, "G"),
            None if not stat.ephemeralOwner else sessions[stat.ephemeralOwner].replace(group, "G"),
            stat.version,
        )
        for path, (data, stat) in sorted(nodes.items())
    }


async def play(group: MixedGroup, script: Sequence[tuple], host=None) -> AsyncIterator[tuple]:
    """Play the script with our members or, with a host, with the original's; yields the znodes after each step."""
    group.topics.update(TOPICS)
    members: dict[str, Ours | Theirs] = {}
    for what, who, subscription in script:
        if what == "join":
            members[who] = await join(group, who, subscription, host)
        elif what == "leave":
            await group.leaves(members[who])
        else:
            await members[who].commit()
        owned = await group.settled()
        await read(group, set(owned))
        # A member that keeps its partitions may not have begun its rebalance yet, which the owners do not show.
        await group.proxy.quiet(0.3, ran=None if host is None else host.answers)
        yield (what, who, subscription), await asyncio.to_thread(look, group.broker.zookeeper, group.name)


async def join(group: MixedGroup, who: str, subscription, host) -> Ours | Theirs:
    if host is not None:
        return await group.join_original(host, who, subscription)
    if isinstance(subscription, Pattern):
        made = {"white_list": TopicFilter.white, "black_list": TopicFilter.black}[subscription.kind]
        return await group.join_ours(who, made(subscription.pattern), subscription.streams)
    return await group.join_ours(who, subscription)


async def read(group: MixedGroup, partitions: set[TopicPartition]) -> None:
    """Wait until the records of these have been delivered: then each owner of one of them has a position."""

    def unread() -> set[TopicPartition]:
        ends = {d.partition for party in group.everyone for d in party.deliveries() if d.offset == RECORDS - 1}
        return partitions - ends

    await until(lambda: not unread(), 60, lambda: f"the records of {unread()}")


@pytest.mark.parametrize(
    ("version", "script"),
    [
        ("0.8.2.2", STATIC),
        ("0.8.2.2", WILDCARDS),
        ("0.8.2.2", ESCAPES),
        ("1.1.1", STATIC),
        ("1.1.1", WILDCARDS),
        ("1.1.1", ESCAPES),
    ],
    ids=["0.8.2.2-static", "0.8.2.2-wildcards", "0.8.2.2-escapes", "1.1.1-static", "1.1.1-wildcards", "1.1.1-escapes"],
)
async def test_znodes_equal_the_originals_at_each_stage(request, filled, tmp_path, version, script):
    host = request.getfixturevalue(HOSTS[version])
    number = request.node.callspec.id.replace(".", "").replace("-", "")

    async def stages(kind, host=None):
        settings = {"auto_commit_interval_ms": "3600000", "kafka_release": RELEASES[version]}
        async with mixed_group(filled, f"{kind}{number}", {}, tmp_path, **settings) as group:
            return [stage async for stage in play(group, script, host)]

    ours, theirs = await stages("ours"), await stages("them", host)
    for (step, mine), (_, original) in zip(ours, theirs, strict=True):
        assert mine == original, step
