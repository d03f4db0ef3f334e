"""Every test in this folder runs original Kafka and carries the marker `originals`.

The hosts are shared by the whole run, since a JVM takes a second to start: a test closes the members that it started,
and starts another host if it kills one. Brokers are shared by a module, each with its own chroot in the run's
ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import OriginalHost
from kernel.zookeeper.embedded import EmbeddedZooKeeper
from tests.support.java.originals import original_host, real_broker


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.originals)


@pytest.fixture(scope="session")
def host_0_8(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OriginalHost]:
    """A JVM with consumers of 0.8.2.2."""
    with original_host("0.8.2.2", tmp_path_factory.mktemp("host-0.8")) as host:
        yield host


@pytest.fixture(scope="session")
def host_1_1(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OriginalHost]:
    """A JVM with consumers of 1.1.1."""
    with original_host("1.1.1", tmp_path_factory.mktemp("host-1.1")) as host:
        yield host


@pytest.fixture(scope="module")
def broker_1_1(zookeeper: EmbeddedZooKeeper, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealBroker]:
    """A broker 1.1.1; `broker_1_1.zookeeper` is the connect string of its cluster."""
    folder = tmp_path_factory.mktemp("broker-1.1")
    with real_broker("1.1.1", folder, zookeeper=f"{zookeeper.connect_string}/{folder.name}") as broker:
        yield broker
