"""A hand-made group leader that assigns whatever a test wants.

    async with leading(broker, protocol="range", give=lambda number, members: {members[1]: b"..."}) as leader: ...

It joins first, so it leads; on a rebalance it rejoins and assigns again. `give` gets the number of the round, from 0,
and the ids of the members, its own first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from coordinator.protocol.consumer_protocol import encode_subscription
from kernel.assignors.subscription import MemberSubscription
from kernel.broker.broker import Broker
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.wire.clients import WireConnection, wait_for_coordinator

Give = Callable[[int, Sequence[str]], Mapping[str, bytes] | None]

GROUP = "g"
HEARTBEAT_S = 0.05


class HandmadeLeader:
    """`sizes` is how many members each completed round had; a `give` of None is a leader that never syncs."""

    def __init__(self, connection: WireConnection, protocol: str, give: Give, rebalance_timeout_ms: int) -> None:
        self.sizes: list[int] = []
        self._connection = connection
        self._protocol = protocol
        self._give = give
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._member_id = ""

    async def run(self) -> None:
        await self._join()
        while True:
            joined = await self._join()
            assert joined.error_code is ErrorCode.none, joined
            others = [member.member_id for member in joined.members if member.member_id != self._member_id]
            given = self._give(len(self.sizes), [self._member_id, *others])
            if given is None:
                return
            synced = await self._send(Api.SyncGroup, 3, joined.generation_id, assignments=assignments(given))
            if synced.error_code is ErrorCode.none:
                self.sizes.append(1 + len(others))
            await self._stay(joined.generation_id)

    async def _stay(self, generation: int) -> None:
        """Heartbeat until the group rebalances."""
        while True:
            answer = await self._send(Api.Heartbeat, 3, generation)
            if answer.error_code is not ErrorCode.none:
                return
            await asyncio.sleep(HEARTBEAT_S)

    async def _join(self) -> Any:
        body = {
            "group_id": GROUP,
            "session_timeout": 30_000,
            "rebalance_timeout": self._rebalance_timeout_ms,
            "member_id": self._member_id,
            "group_instance_id": None,
            "protocol_type": "consumer",
            "protocols": [{"name": self._protocol, "metadata": encode_subscription(MemberSubscription(topics=("t",)))}],
        }
        answer = await self._connection.send(Api.JoinGroup, 5, body)
        self._member_id = answer.member_id
        return answer

    async def _send(self, api: Api, version: int, generation: int, **fields: Any) -> Any:
        identity = {"group_id": GROUP, "generation_id": generation, "member_id": self._member_id}
        return await self._connection.send(api, version, {**identity, "group_instance_id": None, **fields})


def assignments(given: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [{"member_id": member, "assignment": data} for member, data in given.items()]


@asynccontextmanager
async def leading(
    broker: Broker, *, protocol: str, give: Give, rebalance_timeout_ms: int = 10_000
) -> AsyncIterator[HandmadeLeader]:
    """A leader that has completed its first round, alone."""
    connection = await WireConnection.open(broker.address.host, broker.address.port, "by-hand")
    leader = HandmadeLeader(
        connection,
        protocol,
        lambda number, members: {} if len(members) == 1 else give(number, members),
        rebalance_timeout_ms,
    )
    try:
        await wait_for_coordinator(connection, GROUP)
        running = asyncio.create_task(leader.run())
        try:
            await until(lambda: bool(leader.sizes) or running.done(), 30, "the leader's first round")
            yield leader
        finally:
            running.cancel()
            await asyncio.wait([running])
            if not running.cancelled():
                running.result()
    finally:
        connection.close()
