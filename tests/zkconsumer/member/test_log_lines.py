"""A member's log lines: in the order and the words in which ZookeeperConsumerConnector of 0.8.2.2 printed them."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from kernel.trace.writer import SilentTracer
from kernel.zookeeper import paths
from tests.support.consumers.zookeeper import SETTINGS, running_broker
from zkconsumer.consumer import ZooKeeperConsumer
from zkconsumer.member.log_lines import answered, before
from zkconsumer.rebalance.effects import Emit, Operation, Refusal, Request, Response
from zkconsumer.settings import ZkConsumerConfig

#: Of 0.8.2.2, without its other threads and RangeAssignor's list of consumers; C is the consumer. It claims partitions
#: in the order of a hash map, and logs all attempts to claim first.
RECORDED = """\
[C], Connecting to zookeeper instance at ZK
[C], starting auto committer every 3600000 ms
[C], starting watcher executor thread for consumer C
[C], begin registering consumer C in ZK
[C], end registering consumer C in ZK
[C], begin rebalancing consumer C try #0
[C], Cleared all relevant queues for this fetcher
[C], Cleared the data chunks in all the consumer message iterators
[C], Committing all offsets after clearing the fetcher queues
[C], Releasing partition ownership
C-0 attempting to claim partition 0
[C], C-0 successfully owned partition 0 for topic orders
C-0 attempting to claim partition 1
[C], C-0 successfully owned partition 1 for topic orders
[C], Consumer C selected partitions : orders:0: NEW,orders:1: NEW
[C], end rebalancing consumer C try #0
[C], ZKConsumerConnector shutting down
[C], ZKConsumerConnector shutdown completed in N ms
"""


async def test_rebalance_and_shutdown_are_logged_as_by_the_original(
    chroot: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="zkconsumer"):
        async with running_broker(chroot, tmp_path, {"orders": 2}):
            given = {**SETTINGS, "zookeeper.connect": chroot, "group.id": "z"}
            config, _ = ZkConsumerConfig.from_settings(given)
            consumer = ZooKeeperConsumer(config, tracer=SilentTracer(), process="m1")
            await consumer.start()
            await consumer.subscribe({"orders": 1})
            (member,) = consumer.member_ids
            await consumer.close()
    recorded = RECORDED.replace("NEW", "fetched offset = -1: consumed offset = -1").splitlines()
    said = [text.replace(member, "C").replace(chroot, "ZK") for text in caplog.messages]
    said = [re.sub(r"in \d+ ms", "in N ms", text) for text in said if text.startswith(("[C], ", "C-"))]
    assert said == recorded


def test_failed_attempt_says_that_another_one_follows() -> None:
    failed = Emit("attempt_ended", {"attempt": 3, "outcome": "conflict", "error": "x"})
    assert before(failed, "C") == [
        "[C], end rebalancing consumer C try #2",
        "[C], Rebalancing attempt failed. Clearing the cache before the next rebalancing operation is triggered",
    ]


def test_partition_that_is_still_owned_is_waited_for() -> None:
    claim = Request(Operation.CREATE, paths.owner("g", "t", 5), b"C-0")
    assert answered(claim, Response(), "C") == "[C], C-0 successfully owned partition 5 for topic t"
    refused = answered(claim, Response(refusal=Refusal.NODE_EXISTS), "C")
    assert refused == "[C], waiting for the partition ownership to be deleted: 5"
    assert answered(claim, Response(refusal=Refusal.OTHER_SESSION), "C") is None
    assert answered(Request(Operation.DELETE, paths.owner("g", "t", 5)), Response(), "C") is None
