"""Our KIP-848 consumers for tests."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from coordinator.consumer.kip848.consumer import Kip848Consumer
from coordinator.consumer.kip848.settings import Kip848ConsumerConfig
from tests.support.consuming import Running
from tests.support.tracers import ListTracer

if TYPE_CHECKING:
    from collections.abc import Mapping

QUICK = {"auto.offset.reset": "earliest", "fetch.max.wait.ms": "100", "retry.backoff.ms": "50"}

_numbers = itertools.count(1)


def reconciling(bootstrap: str, group: str = "g", settings: Mapping[str, str] | None = None) -> Running:
    """One of our consumers, not started."""
    process = f"ours-{next(_numbers)}"
    given = {**QUICK, "bootstrap.servers": bootstrap, "group.id": group, "client.id": process, **(settings or {})}
    config, warnings = Kip848ConsumerConfig.from_settings(given)
    assert not warnings, warnings
    tracer = ListTracer(process=process)
    return Running(Kip848Consumer(config, tracer=tracer, process=process), tracer)
