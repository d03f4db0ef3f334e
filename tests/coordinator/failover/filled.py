"""Creates groups with members and committed offsets over the wire, and checks that a successor has all of it.

groups = await filled(brokers, 1, groups=10, members=3, offsets=20)   # all coordinated by broker 1
await brokers.kill(1)
answers = await responses_while_moving(brokers, 2, groups)                 # the successor's responses meanwhile
await verify(brokers, 2, groups)                                      # nobody has to rejoin
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.groups.placement import partition_of
from kernel.waiting import until
from kernel.wire.versions import Api
from tests.support.coordinators.failover import Brokers
from tests.support.wire.clients import WireConnection, wait_for_coordinator

TOPIC = "committed"
#: Groups formed concurrently, each with a connection per member.
AT_ONCE = 10
GENERATION = 2
#: No member heartbeats while other groups are formed.
SESSION_MS = 300_000


@dataclass(frozen=True, slots=True)
class Group:
    """A Stable group at `GENERATION`; every member is assigned its own id."""

    id: str
    members: tuple[str, ...]
    offsets: int  #: the number of partitions of `TOPIC` with a committed offset: partition number plus 1

    def of(self, member_id: str) -> dict[str, Any]:
        return {"group_id": self.id, "member_id": member_id, "generation_id": GENERATION}


async def filled(brokers: Brokers, node_id: int, *, groups: int, members: int, offsets: int) -> list[Group]:
    """Create groups in all partitions that broker `node_id` leads, and create `TOPIC`."""
    await brokers.create_topic(TOPIC, offsets)
    names = [f"filled-{number}" for number in range(20 * groups)]
    at = dict(zip(names, await _coordinators(brokers, node_id, names), strict=True))
    chosen = [name for name in names if at[name] == node_id][:groups]
    assert len(chosen) == groups, f"broker {node_id} coordinates {len(chosen)} of {len(names)} groups"
    connections = [await brokers.connect(node_id) for _ in range(AT_ONCE * members)]
    try:
        await wait_for_coordinator(connections[0], *_one_each(chosen))
        made: list[Group] = []
        for first in range(0, groups, AT_ONCE):
            together = enumerate(chosen[first : first + AT_ONCE])
            made += await asyncio.gather(
                *(_formed(name, connections[i * members : (i + 1) * members], offsets) for i, name in together)
            )
    finally:
        for connection in connections:
            connection.close()
    return made


async def _coordinators(brokers: Brokers, node_id: int, names: Sequence[str]) -> list[int]:
    found: list[int] = []

    async def all_are_found() -> bool:
        found[:] = await brokers.found_at(node_id, *names)
        return set(found) <= brokers.running.keys()

    await until(all_are_found, 60, lambda: f"a coordinator for each of {len(names)} groups: {set(found)}")
    return found


def _one_each(names: Sequence[str], partitions: int = 4) -> list[str]:
    """One group in each partition."""
    return list({partition_of(name, partitions): name for name in names}.values())


async def _formed(group_id: str, connections: Sequence[WireConnection], offsets: int) -> Group:
    """The first member forms a generation alone; the others join, and all of them form the next one."""
    first, *others = connections
    body = {
        "group_id": group_id,
        "member_id": "",
        "session_timeout": SESSION_MS,
        "rebalance_timeout": SESSION_MS,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    leader = (await first.send(Api.JoinGroup, 3, body)).member_id
    coming = [connection.send(Api.JoinGroup, 3, body) for connection in others]

    async def all_have_come() -> bool:
        (described,) = (await first.send(Api.DescribeGroups, 1, {"groups": [group_id]})).groups
        return len(described.members) == len(connections)

    await until(all_have_come, 60, f"{len(connections)} members of {group_id}")
    joined = await asyncio.gather(first.send(Api.JoinGroup, 3, body | {"member_id": leader}), *coming)
    members = tuple(answer.member_id for answer in joined)
    assert {answer.generation_id for answer in joined} == {GENERATION}, joined
    group = Group(group_id, members, offsets)
    everything = {"assignments": [{"member_id": m, "assignment": m.encode()} for m in members]}
    synced = [first.send(Api.SyncGroup, 2, group.of(leader) | everything)]
    synced += [c.send(Api.SyncGroup, 2, group.of(m)) for c, m in zip(others, members[1:], strict=True)]
    assert [answer.assignment for answer in await asyncio.gather(*synced)] == [m.encode() for m in members]
    partitions = [{"partition_index": n, "committed_offset": n + 1} for n in range(offsets)]
    answer = await first.send(
        Api.OffsetCommit,
        8,
        {
            "group_id": group_id,
            "member_id": leader,
            "generation_id_or_member_epoch": GENERATION,
            "topics": [{"name": TOPIC, "partitions": partitions}],
        },
    )
    assert {p.error_code.name for topic in answer.topics for p in topic.partitions} == {"none"}, answer
    return group


async def responses_while_moving(brokers: Brokers, node_id: int, groups: Sequence[Group]) -> dict[str, list[str]]:
    """Ask broker `node_id` about one group of each partition until it coordinates all: {request: answers in order}.

    Consecutive equal answers are listed once.
    """
    connection = await brokers.connect(node_id)
    answered: dict[str, list[str]] = {}
    names = _one_each([group.id for group in groups])
    try:
        await asyncio.gather(*(_asked(connection, group, answered) for group in groups if group.id in names))
    finally:
        connection.close()
    return answered


async def _asked(connection: WireConnection, group: Group, answered: dict[str, list[str]]) -> None:
    """In this order, so that no answer looks wrong if the partition is loaded between two requests."""
    me = group.of(group.members[0])
    asked: dict[str, Callable[[], Awaitable[Any]]] = {
        "fetch": lambda: connection.send(Api.OffsetFetch, 7, {"group_id": group.id, "topics": None}),
        "heartbeat": lambda: connection.send(Api.Heartbeat, 3, me),
        "sync": lambda: connection.send(Api.SyncGroup, 2, me),
    }

    async def is_loaded() -> bool:
        names = {request: (await ask()).error_code.name for request, ask in asked.items()}
        for request, name in names.items():
            answers = answered.setdefault(f"{request} {group.id}", [])
            if answers[-1:] != [name]:
                answers.append(name)
        return names["fetch"] == "none"

    await until(is_loaded, 60, f"the broker to load {group.id}", every_s=0.001)


async def verify(brokers: Brokers, node_id: int, groups: Sequence[Group]) -> None:
    """Check that every member has the same generation and its assignment, and that every offset is stored."""
    connection = await brokers.connect(node_id)
    try:
        for group in groups:
            for member in group.members:
                assert (await connection.send(Api.Heartbeat, 3, group.of(member))).error_code.name == "none"
                synced = await connection.send(Api.SyncGroup, 2, group.of(member))
                assert synced.assignment == member.encode(), synced
            answer = await connection.send(Api.OffsetFetch, 7, {"group_id": group.id, "topics": None})
            found = {p.partition_index: p.committed_offset for topic in answer.topics for p in topic.partitions}
            assert found == {n: n + 1 for n in range(group.offsets)}
    finally:
        connection.close()
