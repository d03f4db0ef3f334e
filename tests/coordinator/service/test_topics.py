"""What groups of the `consumer` design see of the cluster's topics."""

from __future__ import annotations

from coordinator.service.topics import Topics
from tests.support.coordinators.in_memory import LoneCoordinator
from tests.support.time.manual_clock import ManualClock


def test_topics_that_are_created_make_another_version_of_the_names_even_if_the_name_is_known() -> None:
    clock = ManualClock()
    cluster = LoneCoordinator(clock, {}, {"t": 1}).cluster
    topics = Topics(cluster, clock)
    versions = [topics.names_version()]
    cluster.change_topic("t", 2)
    assert topics.names_version() == versions[0], "it has grown"
    cluster.change_topic("t", 0)
    assert topics.names_version() == versions[0], "it has gone"
    cluster.change_topic("u", 1)
    versions.append(topics.names_version())
    cluster.change_topic("u", 0)
    cluster.change_topic("u", 1)
    versions.append(topics.names_version())
    assert versions == sorted(set(versions))
