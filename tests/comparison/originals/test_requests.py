"""Impossible requests for originals are refused before anything is fetched or started."""

from __future__ import annotations

import re

import pytest

from comparison.originals.brokers import RealBroker
from comparison.originals.hosts import OriginalHost
from kernel.errors import UserError


def test_a_version_without_the_consumer_is_refused_with_the_versions_that_have_it(tmp_path):
    with pytest.raises(
        UserError, match=re.escape("Kafka 3.9.1 has no consumer with groups in ZooKeeper. Use one of 0.8")
    ):
        OriginalHost("3.9.1", tmp_path)


def test_a_listener_is_refused_for_a_version_without_listeners(tmp_path):
    host = OriginalHost("0.8.2.2", tmp_path)
    with pytest.raises(UserError, match=re.escape("0.8.2.2 has no rebalance listener")):
        host.member("c1", zookeeper="127.0.0.1:1", group="g", topics={"t": 1}, listener="record")


@pytest.mark.parametrize(
    ("version", "zookeeper", "said"),
    [
        ("2.8.0", "127.0.0.1:1", "no broker 2.8.0. Use one of 0.8.2.2, 1.1.1, 3.9.1, 4.1.1"),
        ("1.1.1", None, "1.1.1 takes a ZooKeeper"),
        ("4.1.1", "127.0.0.1:1", "4.1.1 takes no ZooKeeper"),
    ],
)
def test_a_broker_is_refused_without_its_prerequisites(tmp_path, version, zookeeper, said):
    with pytest.raises(UserError, match=re.escape(said)):
        RealBroker(version, tmp_path, zookeeper=zookeeper)
