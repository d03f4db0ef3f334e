"""Our members' znodes compared with those of original 0.8.2.2 members; `test_sequences.py` compares the requests.

Recorded from the running original. The comparison leaves out times, and which server answered.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from kernel.waiting import until
from kernel.zookeeper import paths
from tests.support.consumers.zookeeper import Member, member, owners, produce, running_broker
from tests.support.zookeeper.sessions import opened

HERE = Path(__file__).parent
ZNODES = json.loads((HERE / "znodes-0.8.2.2.json").read_text())


def walk(connect_string: str, root: str) -> dict[str, list[Any]]:
    """{path: [data or None, owner, version]} of everything under `root`; the owner is a member's name."""
    client = KazooClient(connect_string)
    client.start()
    try:
        nodes: dict[str, list[Any]] = {}
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


async def test_znodes_are_those_of_the_original_byte_for_byte(chroot, tmp_path):
    """Three members with different topics and streams join, commit and leave; all nodes are compared at each stage."""
    stages: dict[str, dict[str, list[object]]] = {}

    async def stage(name: str) -> None:
        stages[name] = await asyncio.to_thread(walk, chroot, "/consumers/range")

    topics = {"alpha": 4, "beta": 3, "gamma": 12}
    async with running_broker(chroot, tmp_path, topics) as broker, opened(chroot) as session:
        await produce(broker, "alpha", 4, range(5))
        c1 = member(chroot, "c1", {"alpha": 2, "beta": 1}, group="range")
        first = await c1.__aenter__()
        await first.read_until(20)
        await resolved(first, 4 + 3)
        await stage("c1 joined")
        await first.consumer.commit()  # or c2 may read the offset before c1 commits it
        c2 = member(chroot, "c2", {"alpha": 1, "gamma": 2}, group="range")
        second = await c2.__aenter__()
        await owned_by(session, {"range_c1": 6, "range_c2": 13})
        await resolved(second, 12)
        await stage("c2 joined")
        await second.consumer.commit()
        c3 = member(chroot, "c3", {"gamma": 11}, group="range")
        third = await c3.__aenter__()
        await owned_by(session, {"range_c1": 6, "range_c2": 3, "range_c3": 10})
        await rebalanced((first, 3), (second, 2), (third, 1))
        await resolved(third, 0)
        await stage("c3 joined")
        await second.consumer.commit()
        await stage("c2 committed")
        await c1.__aexit__(None, None, None)
        await rebalanced((second, 3), (third, 2))
        await owned_by(session, {"range_c2": 6, "range_c3": 10})
        await stage("c1 left")
        await c2.__aexit__(None, None, None)
        await c3.__aexit__(None, None, None)
        await stage("all left")
    for name, recorded in ZNODES.items():
        assert stages[name] == recorded, name


async def resolved(who: Member, resets: int) -> None:
    """Wait until `resets` positions without an offset have been reset; the next rebalance commits them."""
    await until(
        lambda: len(who.tracer.of("position_reset")) >= resets, 60, lambda: f"{resets} resets: {who.tracer.events}"
    )


async def owned_by(session, expected: dict[str, int]) -> None:
    """Wait until each member owns its expected number of partitions in group `range`."""
    seen: dict[str, int] = {}

    async def as_expected() -> bool:
        nonlocal seen
        seen = dict(Counter(thread.rsplit("-", 1)[0] for thread in (await owners(session, "range")).values()))
        return seen == expected

    await until(as_expected, 60, lambda: f"{expected}, got {seen}")


async def rebalanced(*times: tuple[Member, int]) -> None:
    """Wait until each has succeeded so often: one that keeps its partitions releases and claims them all the same."""
    for who, number in times:
        await until(
            lambda who=who, number=number: who.rebalances() >= number,
            60,
            lambda who=who: f"rebalances of {who.id}, {who.rebalances()} so far",
        )
