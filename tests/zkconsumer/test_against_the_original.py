"""Our member beside what the original of 0.8.2.2 was seen to do: its znodes, and its ZooKeeper operations in order.

Recorded from the running original. Left out of the comparison: times, which server answered, and the order of
partitions within one step, in which the original goes through hash maps (3, 1, 0, 2) and we by number.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.zk_consumers import Member, member, owners, produce, running_broker, settled, shared
from tests.support.zookeeper import expire, opened
from zkconsumer.state import State

if TYPE_CHECKING:
    from kernel.broker.broker import Broker
    from kernel.zookeeper.session import ZooKeeperSession

HERE = Path(__file__).parent
ZNODES = json.loads((HERE / "znodes-0.8.2.2.json").read_text())
SEQUENCES = json.loads((HERE / "sequences-0.8.2.2.json").read_text())


def walk(connect_string: str, root: str) -> dict[str, list[object]]:
    """{path: [data or None, owner, version]} of everything under `root`; the owner is a member's name."""
    client = KazooClient(connect_string)
    client.start()
    try:
        nodes: dict[str, list[object]] = {}
        sessions: dict[int, str] = {}
        waiting = [root]
        while waiting:
            path = waiting.pop()
            data, stat = client.get(path)
            nodes[path] = [data, stat.ephemeralOwner, stat.version]
            if paths.parse_member_id(path):
                sessions[stat.ephemeralOwner] = paths.name(path)
            waiting += [f"{path}/{child}" for child in client.get_children(path)]
        return {
            path: [
                None if data is None else re.sub(r'"timestamp":"\d+"', '"timestamp":"TIME"', data.decode()),
                sessions.get(session),
                version,
            ]
            for path, (data, session, version) in sorted(nodes.items())
        }
    finally:
        client.stop()
        client.close()


def test_znodes_are_those_of_the_original_byte_for_byte(chroot, tmp_path):
    """Three members with different topics and streams join, commit and leave; every node at every stage."""
    stages: dict[str, dict[str, list[object]]] = {}

    async def stage(name: str) -> None:
        stages[name] = await asyncio.to_thread(walk, chroot, "/consumers/range")

    async def script() -> None:
        topics = {"alpha": 4, "beta": 3, "gamma": 12}
        async with running_broker(chroot, tmp_path, topics) as broker, opened(chroot) as session:
            await produce(broker, "alpha", 4, range(5))
            c1 = member(chroot, "c1", {"alpha": 2, "beta": 1}, group="range")
            first = await c1.__aenter__()
            await first.read_until(20)
            await resolved(first, 4 + 3)
            await stage("c1 joined")
            c2 = member(chroot, "c2", {"alpha": 1, "gamma": 2}, group="range")
            second = await c2.__aenter__()
            await owned_by(session, {"range_c1": 6, "range_c2": 13})
            await resolved(second, 12)
            await stage("c2 joined")
            c3 = member(chroot, "c3", {"gamma": 11}, group="range")
            third = await c3.__aenter__()
            await owned_by(session, {"range_c1": 6, "range_c2": 3, "range_c3": 10})
            await resolved(third, 0)
            await stage("c3 joined")
            await second.consumer.commit()
            await stage("c2 committed")
            await c1.__aexit__(None, None, None)
            await owned_by(session, {"range_c2": 6, "range_c3": 10})
            await stage("c1 left")
            await c2.__aexit__(None, None, None)
            await c3.__aexit__(None, None, None)
            await stage("all left")

    asyncio.run(script())
    for name, recorded in ZNODES.items():
        assert stages[name] == recorded, name


async def resolved(who: Member, resets: int) -> None:
    """Wait until so many positions without an offset have been reset; they are committed by the next rebalance."""
    await until(
        lambda: len(who.tracer.of("position_reset")) >= resets, 10, lambda: f"{resets} resets: {who.tracer.events}"
    )


async def owned_by(session, expected: dict[str, int]) -> None:
    """Wait until each member owns so many partitions of group `range`."""
    seen: dict[str, int] = {}

    async def as_expected() -> bool:
        nonlocal seen
        seen = dict(Counter(thread.rsplit("-", 1)[0] for thread in (await owners(session, "range")).values()))
        return seen == expected

    await until(as_expected, 15, lambda: f"{expected}, is {seen}")


def normal(operations: list[str]) -> list[str]:
    """Partitions become `*` where a step goes through all of them, since the original's order is a hash map's."""
    return [re.sub(r"/(owners|offsets)/(\w+)/\d+", r"/\1/\2/*", operation) for operation in operations]


def of(who: Member, since: int = 0) -> list[str]:
    """Our operations as the recordings have them."""
    return normal([f"{e['op']} {e['path']} {'ok' if e['ok'] else e['error']}" for e in who.tracer.of("zk_op")[since:]])


def count(who: Member) -> int:
    return len(who.tracer.of("zk_op"))


@pytest.fixture(scope="module")
def played(zookeeper, tmp_path_factory):
    """The recorded script, played once by our members: {what: {member: operations}}."""
    return asyncio.run(play(zookeeper.connect_string, tmp_path_factory.mktemp("broker")))


async def play(server: str, data_dir: Path) -> dict[str, dict[str, list[str]]]:
    chroot = f"{server}/sequences"
    async with opened(server) as session:
        await session.ensure_path("/sequences/consumers")  # Kafka's brokers make it, ours leave it to the groups
    topics = {"t": 4, "u": 2}
    async with running_broker(chroot, data_dir, topics) as broker, opened(chroot) as session:
        taken = await play_with_broker(chroot, broker, session)
    async with member(chroot, "n1", {"u": 1}, group="n") as n1:
        taken["join without a broker"] = {"n_n1": of(n1)}
    return taken


async def play_with_broker(chroot: str, broker: Broker, session: ZooKeeperSession) -> dict[str, dict[str, list[str]]]:
    taken: dict[str, dict[str, list[str]]] = {}
    both = shared("t", ("g_c1-0", range(2)), ("g_c2-0", range(2, 4)))
    async with member(chroot, "c1", {"t": 1}) as c1:
        await resolved(c1, 4)
        taken["first join of a new group"] = {"g_c1": of(c1)}
        before = count(c1)
        async with member(chroot, "c2", {"t": 1}):
            await settled(session, both)
            await until(lambda: finished(c1, 2), 10, "c1's second rebalance")
            taken["join without conflict"] = {"g_c1": of(c1, before)}
            before = count(c1)
        await until(lambda: finished(c1, 3), 10, "c1's third rebalance")
        taken["graceful leave"] = {"g_c1": of(c1, before)}
        async with member(chroot, "c2", {"t": 1}) as c2:
            await settled(session, both)
            await until(lambda: finished(c1, 4), 10, "c1's fourth rebalance")
            before = count(c2)
            await expire(c2.session)
            # Both listeners have been told, so that nothing but what they have triggered is left to do.
            told = ("delivery", "getData", "/brokers/topics/t")
            await until(lambda: told in c2.operations(), 20, "c2's listeners to be told")
            await settled(session, both)
            await until(lambda: idle(c1) and finished(c1, 6) and idle(c2) and finished(c2, 3), 20, "both to be idle")
            taken["session expiry and return"] = {"g_c2": of(c2, before)}
            before, before_2 = count(c1), count(c2)
            done = c2.rebalances()
            done_1 = c1.rebalances()
            await broker.cluster.grow_topic("t", partitions=6)
            await until(lambda: finished(c1, done_1 + 1) and finished(c2, done + 1), 10, "both after the growth")
            taken["the topic grows from 4 to 6 partitions"] = {"g_c1": of(c1, before), "g_c2": of(c2, before_2)}
    return taken


def idle(who: Member) -> bool:
    executor = who.consumer._executor
    assert executor is not None
    return executor.machine.state is State.IDLE


def finished(who: Member, rebalances: int) -> bool:
    """So many rebalances have ended, and the last one's leader finder has read the brokers."""
    kinds = [event for event in who.tracer.events if event["kind"] in ("rebalance_ended", "zk_op")]
    ended = [i for i, event in enumerate(kinds) if event["kind"] == "rebalance_ended"]
    return len(ended) >= rebalances and any(
        event.get("step") == "leader-finder" and event["op"] == "getData" for event in kinds[ended[-1] :]
    )


@pytest.mark.parametrize(
    ("what", "who"),
    [
        ("first join of a new group", "g_c1"),
        ("join without conflict", "g_c1"),
        ("graceful leave", "g_c1"),
        ("the topic grows from 4 to 6 partitions", "g_c1"),
        ("the topic grows from 4 to 6 partitions", "g_c2"),
        ("join without a broker", "n_n1"),
    ],
)
def test_operations_come_in_the_order_of_the_original(played, what, who):
    assert played[what][who] == normal(SEQUENCES[what][who])


def test_an_expired_member_comes_back_with_the_operations_of_the_original(played):
    """Register, rebalance without a release; then the listeners are told, and up to 1 + T more rebalances follow."""
    ours = played["session expiry and return"]["g_c2"]
    theirs = normal(SEQUENCES["session expiry and return"]["g_c2"])
    # Up to the claim, which may meet the other member's nodes; afterwards two tasks interleave.
    claim = theirs.index("create /consumers/g/owners/t/* ok")
    assert ours[:claim] == theirs[:claim]
    delivery = [op for op in ours if op.startswith("exists ")]
    assert delivery == ["exists /consumers/g/ids ok", "exists /brokers/topics/t ok"]
    assert set(theirs) <= set(ours)
