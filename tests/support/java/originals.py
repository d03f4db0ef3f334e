"""Original Kafka for tests, which are skipped, with the reason, if its jars or JPype are not available.

    require("1.1.1")                                       # in a fixture or a test: skips, fetches missing jars
    with real_broker("1.1.1", folder, zookeeper=chroot) as broker: ...
    with original_host("0.8.2.2", folder) as host: ...

A jar whose SHA-256 differs from the lock file's fails the tests: that is not a missing network.
"""

from __future__ import annotations

import functools
import importlib.util
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from comparison.originals import jars
from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import OriginalHost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Settings of an original consumer for tests, like `tests.support.consumers.zookeeper.SETTINGS` for ours.
PROPERTIES = {
    "zookeeper.session.timeout.ms": "15000",  # outlives a busy machine's pauses
    "zookeeper.connection.timeout.ms": "20000",
    "rebalance.backoff.ms": "200",
    "rebalance.max.retries": "20",
    "auto.commit.interval.ms": "3600000",
    "auto.offset.reset": "smallest",
}


@functools.cache
def unavailable(version: str) -> str:
    """Why originals of a version cannot run here, or ""; checked once per test run."""
    if importlib.util.find_spec("jpype") is None:
        return "jpype1 is not installed: pip install '.[originals]'"
    try:
        jars.class_path(version)
    except jars.OriginalsUnavailable as error:
        return str(error)
    return ""


def require(*versions: str) -> None:
    """Skip the test, with the reason, unless all these versions can run."""
    for version in versions:
        reason = unavailable(version)
        if reason:
            pytest.skip(f"original Kafka {version} cannot be run: {reason}")


@contextmanager
def real_broker(version: str, folder: Path, **described: Any) -> Iterator[RealBroker]:
    """A real broker (`RealBroker`'s arguments), or a skip."""
    require(version)
    with RealBroker(version, folder, **described) as broker:
        yield broker


@contextmanager
def original_host(version: str, folder: Path, **described: Any) -> Iterator[OriginalHost]:
    """A JVM for original consumers (`OriginalHost`'s arguments), or a skip."""
    require(version)
    with OriginalHost(version, folder, **described) as host:
        yield host
