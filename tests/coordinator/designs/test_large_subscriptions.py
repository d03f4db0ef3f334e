"""Members with more metadata than a broker accepts, over TCP: they get an error, and no other member is affected."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from coordinator.client.errors import GroupRefused
from coordinator.protocol.consumer_protocol import encode_subscription
from coordinator.service.mount import mount
from kernel.assignors.subscription import MemberSubscription
from kernel.waiting import until
from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api
from tests.support.brokers.live import create_topics, running_broker
from tests.support.consumers.consuming import partitions_of, shared_out
from tests.support.consumers.eager import bootstrap_of, eager, generation_of
from tests.support.wire.clients import WireConnection


async def test_newcomer_with_two_megabytes_is_refused_and_the_group_goes_on(chroot: str, tmp_path: Path) -> None:
    """A real 4.1.1 accepts it, and then answers every member's SyncGroup with UNKNOWN_SERVER_ERROR."""
    metadata = encode_subscription(MemberSubscription(topics=("t",), user_data=bytes(2_000_000)))
    joining = {
        "group_id": "g",
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": metadata}],
    }
    async with running_broker(chroot, tmp_path, mount=(mount,)) as broker, AsyncExitStack() as stack:
        await create_topics(broker, {"t": 4})
        members = [eager(bootstrap_of(broker)) for _ in range(2)]
        for member in members:
            stack.push_async_callback(member.close)
            await member.begin({"t": 1})
        await shared_out(members, partitions_of("t", 4))
        before = [(member.owned, generation_of(member)) for member in members]
        newcomer = await WireConnection.open(broker.address.host, broker.address.port, "newcomer")
        stack.callback(newcomer.close)
        for version in (3, 5):  # before version 4 a newcomer is admitted without receiving an id first
            answer = await newcomer.send(Api.JoinGroup, version, joining)
            assert (answer.error_code, answer.member_id) == (ErrorCode.message_too_large, "")
        (described,) = (await newcomer.send(Api.DescribeGroups, 1, {"groups": ["g"]})).groups
        assert (described.group_state, len(described.members)) == ("Stable", 2)
        assert [(member.owned, generation_of(member)) for member in members] == before


async def test_error_names_the_limit_that_the_consumer_exceeds(chroot: str, tmp_path: Path) -> None:
    settings = {"group.member.metadata.max.bytes": "200"}
    async with running_broker(chroot, tmp_path, settings=settings, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 1})
        topics = {f"a-long-name-{n}": 1 for n in range(10)}
        member = await eager(bootstrap_of(broker)).begin(topics)
        await until(lambda: member.failure is not None, 60, "the poll to fail")
        assert isinstance(member.failure, GroupRefused)
        expected = "group 'g' refused JoinGroup with MESSAGE_TOO_LARGE: .*group.member.metadata.max.bytes"
        with pytest.raises(GroupRefused, match=expected):
            await member.close()
        await member.consumer.close()


async def test_assignment_that_cannot_be_stored_is_explained_by_the_broker_and_to_the_application(
    chroot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "coordinator.service.led_partition")
    settings = {"message.max.bytes": "1000"}
    async with running_broker(chroot, tmp_path, settings=settings, mount=(mount,)) as broker:
        await create_topics(broker, {"t": 300})
        member = await eager(bootstrap_of(broker)).begin({"t": 1})
        await until(lambda: member.failure is not None, 60, "the poll to fail")
        with pytest.raises(GroupRefused, match=r"SyncGroup with UNKNOWN_SERVER_ERROR: .*message\.max\.bytes"):
            await member.close()
        await member.consumer.close()
    assert "the assignment of group 'g', of 1 members, is refused with UNKNOWN_SERVER_ERROR: " in caplog.text
    assert "more than message.max.bytes=1000" in caplog.text
