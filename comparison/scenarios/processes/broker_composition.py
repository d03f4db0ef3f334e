"""Builds a broker: the kernel's data plane with the coordinator mounted on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.service.mount import mount
from kernel.broker.broker import Broker
from kernel.broker.settings.configuration import BrokerConfig
from kernel.runtime import REAL, Runtime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel.trace.writer import Tracer


def broker_of(
    settings: Mapping[str, str],
    zookeeper: str,
    data_dir: Path,
    tracer: Tracer,
    *,
    adopt_folder: bool = False,
    runtime: Runtime = REAL,
) -> tuple[Broker, list[str]]:
    """A broker that is not started yet, and warnings about its settings; `adopt_folder` and `runtime` are `Broker`'s.

    Raises `ConfigurationError` for an unknown setting or a value out of range.
    """
    config, warnings = BrokerConfig.from_settings(settings)
    broker = Broker(config, zookeeper, data_dir, tracer, mount=(mount,), adopt_folder=adopt_folder, runtime=runtime)
    return broker, warnings
