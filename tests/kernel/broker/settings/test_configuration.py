"""A broker's settings: Kafka's names and defaults, and three kinds of wrong ones."""

from __future__ import annotations

import pytest

from kernel.assignors.target.registry import TARGET_ASSIGNORS
from kernel.broker.settings.configuration import BrokerConfig
from kernel.broker.settings.kafka_settings import KAFKA_BROKER_SETTINGS
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.errors import ConfigurationError

SESSION, HEARTBEAT = "group.consumer.session.timeout.ms", "group.consumer.heartbeat.interval.ms"


def test_defaults_are_kafkas() -> None:
    config, warnings = BrokerConfig.from_settings({})
    assert warnings == []
    assert config.number("group.initial.rebalance.delay.ms") == 3000
    assert config.number("group.min.session.timeout.ms") == 6000
    assert config.number("offsets.topic.num.partitions") == 50
    assert config.flag("auto.create.topics.enable")
    assert config.listener == ("127.0.0.1", 9092)


def test_listeners_override_port() -> None:
    config, _ = BrokerConfig.from_settings({"listeners": "PLAINTEXT://127.0.0.1:9999", "port": "1"})
    assert config.listener == ("127.0.0.1", 9999)
    assert BrokerConfig.from_settings({"listeners": "PLAINTEXT://:7"})[0].listener == ("127.0.0.1", 7)


def test_setting_that_only_kafka_has_is_a_warning() -> None:
    _, warnings = BrokerConfig.from_settings({"log.cleaner.enable": "false", "transaction.state.log.min.isr": "1"})
    assert len(warnings) == 2
    assert "log.cleaner.enable" in warnings[0]


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("group.initial.rebalence.delay.ms", "0", "Did you mean 'group.initial.rebalance.delay.ms'"),
        ("group.max.size", "0", "between 1 and"),
        ("group.max.size", "many", "group.max.size='many'"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("port", "70000", "between 0 and 65535"),
        ("listeners", "SSL://127.0.0.1:9093", "PLAINTEXT"),
        ("queued.max.request.bytes", "100000000", "must not be below socket.request.max.bytes=104857600"),
        ("group.min.session.timeout.ms", "2000000", "must not be above group.max.session.timeout.ms"),
        (SESSION, "44999", f"{SESSION}=44999 is below group.consumer.min.session.timeout.ms=45000. Raise the first"),
        (SESSION, "60001", f"group.consumer.max.session.timeout.ms=60000 is below {SESSION}=60001"),
        (HEARTBEAT, "4999", f"{HEARTBEAT}=4999 is below group.consumer.min.heartbeat.interval.ms=5000"),
        (HEARTBEAT, "15001", f"group.consumer.max.heartbeat.interval.ms=15000 is below {HEARTBEAT}=15001"),
        ("group.consumer.min.heartbeat.interval.ms", "16000", "max.heartbeat.interval.ms=15000 is below"),
        ("group.consumer.assignors", "rage", "'rage' is none of uniform, range. Did you mean 'range'"),
        ("group.consumer.assignors", " , ", "name at least one of uniform, range"),
        ("group.consumer.migration.policy", "upgraded", "must be one of bidirectional, upgrade"),
        ("group.coordinator.rebalance.protocols", "consumer", "the classic protocol cannot be disabled"),
        ("group.coordinator.rebalance.protocols", "classic,consumers", "'consumers' is none of"),
    ],
)
def test_wrong_setting_is_an_error_that_names_valid_values(name: str, value: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        BrokerConfig.from_settings({name: value})


def test_session_of_consumer_groups_has_to_be_longer_than_a_heartbeat() -> None:
    given = {SESSION: "5000", "group.consumer.min.session.timeout.ms": "5000"}
    with pytest.raises(ConfigurationError, match=f"{HEARTBEAT}=5000 must be below {SESSION}=5000"):
        BrokerConfig.from_settings(given)
    assert BrokerConfig.from_settings({**given, SESSION: "5001"})[0].number(SESSION) == 5001


def test_lists_and_policies_are_read_as_kafka_reads_them() -> None:
    given = {
        "group.coordinator.rebalance.protocols": "classic, consumer,streams",
        "group.consumer.migration.policy": "Upgrade",
    }
    config, warnings = BrokerConfig.from_settings(given)
    assert warnings == []
    assert config.words("group.coordinator.rebalance.protocols") == ("classic", "consumer", "streams")
    assert config.text("group.consumer.migration.policy") == "upgrade"
    assert config.words("group.consumer.assignors") == tuple(TARGET_ASSIGNORS)


def test_no_setting_is_both_implemented_and_not() -> None:
    assert not BROKER_SETTINGS.keys() & KAFKA_BROKER_SETTINGS
