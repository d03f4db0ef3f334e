"""Our KIP-848 consumers for tests, and brokers with short timers for their groups."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from coordinator.client.consumer.consumer import Kip848Consumer
from coordinator.client.consumer.settings import Kip848ConsumerConfig
from kernel.broker.broker import Broker
from tests.support.consumers.consuming import Running, running
from tests.support.consumers.laboratory import laboratory

QUICK = {"auto.offset.reset": "earliest", "fetch.max.wait.ms": "100", "retry.backoff.ms": "50"}

#: Of the broker; the session outlives a busy machine's pauses.
QUICK_GROUPS = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "30000",
    "group.consumer.max.session.timeout.ms": "60000",
}


def reconciling(bootstrap: str, group: str = "g", settings: Mapping[str, str] | None = None) -> Running:
    """One of our consumers, not started."""
    given = {**QUICK, "bootstrap.servers": bootstrap, "group.id": group, **(settings or {})}
    return running(Kip848Consumer, Kip848ConsumerConfig, given)


def reconciling_group(
    chroot: str, data_dir: Path, *settings: Mapping[str, str], broker_settings: Mapping[str, str] | None = None
) -> AbstractAsyncContextManager[tuple[Broker, list[Running]]]:
    """A laboratory of members that let the coordinator assign."""
    return laboratory(
        chroot,
        data_dir,
        *settings,
        member=lambda bootstrap, given: reconciling(bootstrap, settings=given),
        broker_settings={**QUICK_GROUPS, **(broker_settings or {})},
    )
