"""Kafka 4.1.1's producer and consumer in transactions on one of our brokers."""

from __future__ import annotations

from pathlib import Path

from coordinator.service.mount import mount
from tests.support.brokers.live import broker_thread
from tests.support.java.originals import require
from tests.support.java.transactions import VERSION, observe


def test_java_producer_commits_aborts_and_is_fenced_and_java_consumers_read_it(chroot: str, tmp_path: Path):
    require(VERSION)
    with broker_thread(chroot, tmp_path, mount=(mount,), topics={"t": 1}) as bootstrap:
        observed = observe(bootstrap, "t")
    assert observed["zombie"] == "ProducerFencedException"
    assert observed["read_committed"] == ["a", "b", "d", "end", "of its successor"]
    assert observed["read_uncommitted"] == [
        "a", "b", "c", "d", "end", "of the zombie", "of its successor", "open",
    ]  # fmt: skip
