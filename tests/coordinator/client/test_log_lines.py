"""A member's log lines: in the order and the words in which the Java consumer of 3.9.1 printed them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from coordinator.client import log_lines
from coordinator.client.classic.consumer import CoordinatorConsumer
from coordinator.client.settings import CoordinatorConsumerConfig
from coordinator.service.mount import mount
from kernel.trace.writer import SilentTracer
from kernel.waiting import until
from tests.support.brokers.live import create_topics, running_broker

#: Of 3.9.1, without `SubscriptionState` and the steps of a leave that ours does not have; M is the member, P the port.
RECORDED = """\
Subscribed to topic(s): orders
Discovered group coordinator 127.0.0.1:P (id: 2147483646 rack: null)
(Re-)joining group
Request joining group due to: need to re-join with the given member-id: M
(Re-)joining group
Successfully joined group with generation Generation{generationId=1, memberId='M', protocol='range'}
Finished assignment for group at generation 1: {M=Assignment(partitions=[orders-0, orders-1, orders-2])}
Successfully synced group in generation Generation{generationId=1, memberId='M', protocol='range'}
Notifying assignor about the new Assignment(partitions=[orders-0, orders-1, orders-2])
Adding newly assigned partitions: orders-0, orders-1, orders-2
Found no committed offset for partition orders-0
Found no committed offset for partition orders-1
Found no committed offset for partition orders-2
Revoke previously assigned partitions orders-0, orders-1, orders-2
Member M sending LeaveGroup request to coordinator 127.0.0.1:P (id: 2147483646 rack: null) due to CLOSED
"""
#: The coordinator may still be loading.
LOADING = "(Re-)joining group\nJoinGroup failed: COORDINATOR_LOAD_IN_PROGRESS\n"


async def test_joining_and_leaving_are_logged_as_by_the_java_consumer(
    chroot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="coordinator"):
        async with running_broker(chroot, tmp_path, mount=(mount,)) as broker:
            await create_topics(broker, {"orders": 3})
            host, port = broker.address.host, broker.address.port
            config, _ = CoordinatorConsumerConfig.from_settings(
                {"bootstrap.servers": f"{host}:{port}", "group.id": "g", "client.id": "g-0"}
            )
            consumer = CoordinatorConsumer(config, tracer=SilentTracer(), process="m1")
            await consumer.start()
            await consumer.subscribe({"orders": 1})

            async def owning() -> bool:
                await consumer.getmany(timeout_ms=50)
                return any("Found no committed offset for partition orders-2" in text for text in caplog.messages)

            await until(owning, 30, "an assignment")
            (member,) = consumer.member_ids
            await consumer.close()
    prefix = "[Consumer clientId=g-0, groupId=g] "
    said = "".join(f"{text.removeprefix(prefix)}\n" for text in caplog.messages if text.startswith(prefix))
    said = said.replace(LOADING, "").replace(member, "M").replace(f":{port} ", ":P ")
    assert said == RECORDED.replace("CLOSED", "the consumer is being closed")


def test_prefix_names_the_instance_of_a_static_member() -> None:
    assert log_lines.prefix("c", "g", "first") == "[Consumer instanceId=first, clientId=c, groupId=g] "


def test_rebalance_of_others_is_a_reason_in_kafkas_words() -> None:
    assert log_lines.reason("group-rebalancing") == "group is already rebalancing"
    assert log_lines.reason("topics-changed") == "topics-changed"
