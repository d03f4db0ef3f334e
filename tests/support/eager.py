"""Eager consumers of ours for tests: quick timers, a topic and a group by name."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from coordinator.consumer import CoordinatorConsumer
from coordinator.settings import CoordinatorConsumerConfig
from kernel.trace.writer import ListTracer
from tests.support.consuming import Running

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.broker.broker import Broker

QUICK = {
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "100",
    "auto.offset.reset": "earliest",
    "fetch.max.wait.ms": "100",
}

_numbers = itertools.count(1)


def eager(bootstrap: str, group: str = "g", settings: Mapping[str, str] | None = None) -> Running:
    """A consumer of ours that is not started."""
    process = f"ours-{next(_numbers)}"
    given = {**QUICK, "bootstrap.servers": bootstrap, "group.id": group, "client.id": process, **(settings or {})}
    config, warnings = CoordinatorConsumerConfig.from_settings(given)
    assert not warnings, warnings
    tracer = ListTracer(process=process)
    return Running(CoordinatorConsumer(config, tracer=tracer, process=process), tracer)


def bootstrap_of(*brokers: Broker) -> str:
    return ",".join(f"{broker.address.host}:{broker.address.port}" for broker in brokers)
