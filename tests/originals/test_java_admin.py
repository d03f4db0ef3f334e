"""Kafka's Admin client of 4.1.1 on our broker and on a 4.1.1 broker: it sees the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.brokers.live import broker_thread
from tests.support.java.admin import VERSION, seen_by_java
from tests.support.java.originals import real_broker, require

SEEN: dict[str, Any] = {
    "created": [2, "70000"],
    "wrong": "InvalidConfigurationException",
    "by id": True,
    "topic": [2, 8],
    "config": ["5000", "DYNAMIC_TOPIC_CONFIG", "INT", ["DYNAMIC_TOPIC_CONFIG", "DEFAULT_CONFIG"], True, 33],
    "cluster": [1, 7],
    "low watermark": 2,
    "earliest": 2,
    "latest": 5,
    "largest": True,
    "size": [True],
    "elected": "ElectionNotNeededException",
    "deleted twice": "UnknownTopicOrPartitionException",
}


@pytest.mark.parametrize("kind", ["ours", VERSION])
def test_java_admin_sees_the_same_of_our_broker_and_of_4_1_1(chroot: str, tmp_path: Path, kind: str) -> None:
    require(VERSION)
    if kind == "ours":
        with broker_thread(chroot, tmp_path) as bootstrap:
            assert seen_by_java(bootstrap) == SEEN
    else:
        with real_broker(kind, tmp_path) as broker:
            assert seen_by_java(broker.bootstrap) == SEEN
