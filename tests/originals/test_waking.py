"""A member that wakes up past its session, ours beside the original's: `python -m bench.wake` prints the figures."""

from __future__ import annotations

import asyncio

import pytest

from bench import wake
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.servers import Limits
from tests.support.java.originals import real_broker, require

pytestmark = pytest.mark.long


def test_waking_member_does_what_the_original_does(tmp_path):
    """Within the Java client's pauses it registers, then commits too late, and rebalances up to three times."""
    require("0.8.2.2")
    with (
        EmbeddedZooKeeper(tmp_path / "zookeeper", limits=Limits(tick_ms=250)) as zookeeper,
        real_broker("1.1.1", tmp_path / "broker", zookeeper=zookeeper.connect_string) as broker,
    ):
        broker.create_topic(wake.TOPIC, wake.PARTITIONS)
        for kind in ("ours", "0.8.2.2"):
            for each in asyncio.run(wake.measure(kind, 3, tmp_path, zookeeper.connect_string, broker)):
                assert each.registered_s > 1.0, kind
                assert each.window_records > 0, kind
                assert each.late_commits > 0, kind
                assert each.before_registering == 0, kind
                assert 2 <= each.rebalances <= 3, kind
