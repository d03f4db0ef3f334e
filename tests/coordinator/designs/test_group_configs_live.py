"""A stock admin client alters the settings of a group, and its members hear of it at their next heartbeat."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from coordinator.service.mount import mount
from kernel.clock import milliseconds
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import broker_thread
from tests.support.wire.clients import WireConnection

HEARTBEAT = "consumer.heartbeat.interval.ms"
GROUPS = ("g", "h", "i", "j")  #: of which either broker coordinates some


def altered(admin: AdminClient, group: str, interval_ms: str) -> None:
    entry = ConfigEntry(HEARTBEAT, interval_ms, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(30)


def described(admin: AdminClient, group: str) -> tuple[str, int]:
    (future,) = admin.describe_configs([ConfigResource(ResourceType.GROUP, group)]).values()
    entry = future.result(30)[HEARTBEAT]
    return entry.value, entry.source


async def beat(bootstrap: str, group: str, epoch: int) -> Any:
    """A heartbeat to the group's coordinator, or the answer that there is none yet."""
    address = bootstrap.split(",")[0].rsplit(":", 1)
    connection = await WireConnection.open(address[0], int(address[1]), "member")
    found = await connection.send(Api.FindCoordinator, 2, {"key": group, "key_type": 0})
    connection.close()
    if found.error_code is not ErrorCode.none:
        return found
    connection = await WireConnection.open(found.host, found.port, "member")
    joining = {"rebalance_timeout": 30_000, "subscribed_topic_names": ["t"], "topic_partitions": []}
    body = {"group_id": group, "member_id": "m", "member_epoch": epoch, **({} if epoch else joining)}
    answer = await connection.send(Api.ConsumerGroupHeartbeat, 1, body)
    connection.close()
    return answer


def test_interval_of_a_group_is_altered_on_every_broker(chroot: str, tmp_path: Path) -> None:
    with broker_thread(chroot, tmp_path, number=2, mount=(mount,), topics={"t": 1}) as bootstrap:
        admin = AdminClient({"bootstrap.servers": bootstrap})

        async def is_told(group: str, epoch: int, expected_ms: int) -> bool:
            answer = await beat(bootstrap, group, epoch)
            return bool(answer.error_code is ErrorCode.none and milliseconds(answer.heartbeat_interval) == expected_ms)

        async def story() -> None:
            for group in GROUPS:
                assert described(admin, group) == ("5000", 5)
                await until(partial(is_told, group, 0, 5_000), 30, "a coordinator to admit the member", every_s=0.1)
                altered(admin, group, "6000")
                assert described(admin, group) == ("6000", 8)
                await until(partial(is_told, group, 1, 6_000), 60, "the coordinator to know the new interval")

        asyncio.run(story())
        with pytest.raises(Exception, match="must be greater than or equal to"):
            altered(admin, "g", "1")
        assert described(admin, "g") == ("6000", 8)
