"""Settings of a member of the server design: Kafka's names, the design's defaults, and what is refused."""

from __future__ import annotations

import pytest

from coordinator.client.server.settings import ServerConsumerConfig
from kernel.errors import ConfigurationError

NEEDED = {"bootstrap.servers": "h:9092", "zookeeper.connect": "h:2181/lab", "group.id": "g"}


def test_defaults_are_those_of_kafka_where_kafka_has_the_name() -> None:
    config, warnings = ServerConsumerConfig.from_settings(NEEDED)
    assert not warnings
    assert (config.session_timeout_ms, config.connection_timeout_ms) == (6_000, 6_000)  # 0.8.2's
    assert (config.auto_commit_interval_ms, config.auto_offset_reset) == (5_000, "latest")  # today's
    assert (config.partition_assignment_strategy, config.consumer_id) == ("", None)


def test_connection_timeout_defaults_to_the_session_timeout() -> None:
    config, _ = ServerConsumerConfig.from_settings({**NEEDED, "zookeeper.session.timeout.ms": "900"})
    assert config.connection_timeout_ms == 900
    config, _ = ServerConsumerConfig.from_settings({**NEEDED, "zookeeper.connection.timeout.ms": "50"})
    assert (config.session_timeout_ms, config.connection_timeout_ms) == (6_000, 50)


def test_strategy_may_be_a_java_class_or_unknown_here() -> None:
    for given, name in (
        ("org.apache.kafka.clients.consumer.RoundRobinAssignor", "roundrobin"),
        ("of-the-coordinator-alone", "of-the-coordinator-alone"),
    ):
        config, _ = ServerConsumerConfig.from_settings({**NEEDED, "partition.assignment.strategy": given})
        assert config.partition_assignment_strategy == name


@pytest.mark.parametrize("name", ["heartbeat.interval.ms", "session.timeout.ms", "max.poll.interval.ms"])
def test_setting_of_classic_members_only_is_ignored_with_a_warning(name: str) -> None:
    _, (warning,) = ServerConsumerConfig.from_settings({**NEEDED, name: "1000"})
    assert name in warning


@pytest.mark.parametrize("missing", sorted(NEEDED))
def test_missing_required_setting_is_named(missing: str) -> None:
    given = {name: value for name, value in NEEDED.items() if name != missing}
    with pytest.raises(ConfigurationError, match=missing):
        ServerConsumerConfig.from_settings(given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("group.id", "a/b"),
        ("group.id", ".."),
        ("group.id", "x" * 1_025),
        ("consumer.id", ""),
        ("consumer.id", "a\x00b"),
        ("consumer.id", "a/b"),
        ("command.wait.ms", "0"),
        ("command.wait.ms", "300001"),
        ("zookeeper.session.timeout.ms", "0"),
    ],
)
def test_invalid_value_is_refused_with_the_settings_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")):
        ServerConsumerConfig.from_settings({**NEEDED, name: value})


@pytest.mark.parametrize("character", ["\n", "\x00", "\x7f", "\x85", "\ud800", "\uf8ff", "\uffff", "/"])
def test_group_id_that_cannot_name_a_znode_is_refused_with_its_character(character: str) -> None:
    """ZooKeeper's client would refuse the path later, and end the consumer with BadArgumentsError."""
    with pytest.raises(ConfigurationError, match=r"group\.id.*INVALID_GROUP_ID") as refused:
        ServerConsumerConfig.from_settings({**NEEDED, "group.id": f"g{character}"})
    assert repr(character) in str(refused.value)
