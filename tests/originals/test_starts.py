"""Conflicts in joins and attempts in a mass start, ours beside the originals: `python -m bench.starts` prints them."""

from __future__ import annotations

import asyncio

import pytest

from bench import herd, starts
from kernel.trace.writer import SilentTracer
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from kernel.zookeeper.session import ZooKeeperSession
from tests.support.java.originals import real_broker, require

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("starts")
    with (
        EmbeddedZooKeeper(folder / "zookeeper") as zookeeper,
        real_broker("1.1.1", folder / "broker", zookeeper=zookeeper.connect_string) as broker,
    ):
        broker.create_topic(herd.TOPIC, herd.PARTITIONS)
        yield zookeeper.connect_string


def measured(cluster, folder, kind, what, *how):
    async def measure():
        session = await ZooKeeperSession.open(
            cluster, session_timeout_ms=30_000, tracer=SilentTracer(), name="starts", connection_timeout_ms=30_000
        )
        subject = starts.subject_of(kind, 1, folder)
        async with session:
            try:
                return await getattr(starts.Starts(session), what)(subject, *how)
            finally:
                await subject.close()

    return asyncio.run(measure())


def test_joins_conflict_as_seldom_as_those_of_the_originals(cluster, tmp_path):
    """Sent together, the reads of a step let a joiner overtake the others' release nearly every time."""
    require("1.1.1")
    ours = measured(cluster, tmp_path, "ours", "joins", 4, 6, 0)
    together = measured(cluster, tmp_path, "ours, together", "joins", 4, 6, 0)
    theirs = measured(cluster, tmp_path, "1.1.1", "joins", 4, 6, 0)
    conflicts = [sum(number > 0 for number in each.failed) for each in (ours, theirs, together)]
    assert conflicts[0] <= conflicts[1] + 1, conflicts
    assert conflicts[0] < conflicts[2], conflicts


def test_mass_start_that_is_spread_has_the_herd_of_the_originals(cluster, tmp_path):
    require("1.1.1")
    at_once = measured(cluster, tmp_path, "ours", "mass", 20, 2, 0)
    spread = measured(cluster, tmp_path, "ours", "mass", 20, 2, 200)
    theirs = measured(cluster, tmp_path, "1.1.1", "mass", 20, 2, 0)
    assert max(theirs.attempts) > 20, "the originals were all notified in time"
    assert min(spread.attempts) > 1.5 * 20 > 0
    assert sum(at_once.attempts) < sum(spread.attempts)
