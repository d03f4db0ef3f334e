"""A broker of ours with a topic, and members that poll: where one design's members are tried out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.wire.versions import Api
from tests.support.brokers.live import client_of, create_topics, running_broker
from tests.support.consumers.consuming import Running
from tests.support.consumers.eager import bootstrap_of, eager

#: Makes a member from the bootstrap address and its settings.
MakeMember = Callable[[str, Mapping[str, str]], Running]


def _eager(bootstrap: str, settings: Mapping[str, str]) -> Running:
    return eager(bootstrap, settings=settings)


@asynccontextmanager
async def laboratory(
    chroot: str,
    data_dir: Path,
    *settings: Mapping[str, str],
    member: MakeMember = _eager,
    broker_settings: Mapping[str, str] | None = None,
) -> AsyncIterator[tuple[Broker, list[Running]]]:
    """A broker with topic t of four partitions, and members that poll, one for each given settings."""
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(
            running_broker(chroot, data_dir, settings=broker_settings, mount=(mount,))
        )
        await create_topics(broker, {"t": 4})
        members = []
        for given in settings:
            made = member(bootstrap_of(broker), given)
            stack.push_async_callback(made.close)
            members.append(await made.begin({"t": 1}))
        yield broker, members


async def expel(broker: Broker, member_id: str) -> None:
    """Remove a member from group g, as an administrator may."""
    async with client_of(broker) as client:
        connection = await client.any_connection()
        body = {"group_id": "g", "members": [{"member_id": member_id, "group_instance_id": None}]}
        answer = await connection.call(Api.LeaveGroup, body)
        assert answer.members[0].error_code == 0, answer
