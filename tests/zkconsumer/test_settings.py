"""Settings of the ZooKeeper consumer: 0.8.2's names and defaults, and what is refused."""

from __future__ import annotations

import pytest

from kernel.errors import ConfigurationError
from zkconsumer.kafka_settings import KAFKA_OLD_CONSUMER_SETTINGS
from zkconsumer.settings import ZK_CONSUMER_SETTINGS, Fixes, ZkConsumerConfig

REQUIRED = {"zookeeper.connect": "h:1", "group.id": "g"}


def config(**given: str) -> ZkConsumerConfig:
    return ZkConsumerConfig.from_settings(REQUIRED | {k.replace("_", "."): v for k, v in given.items()})[0]


def test_defaults_are_those_of_0_8_2():
    made = config()
    assert (made.release, made.one_by_one, made.pauses_to_reconnect) == ("0.8.2", True, True)
    assert (made.one_read_watches, made.registration_conflict) == (False, "wait")
    assert (made.session_timeout_ms, made.connection_timeout_ms) == (6000, 6000)
    assert (made.rebalance_max_retries, made.rebalance_backoff_ms) == (4, 2000)
    assert (made.auto_commit_enable, made.auto_commit_interval_ms) == (True, 60_000)
    assert (made.auto_offset_reset, made.queued_max_message_chunks, made.num_consumer_fetchers) == ("largest", 2, 1)
    assert (made.fetch_message_max_bytes, made.fetch_min_bytes, made.fetch_wait_max_ms) == (1048576, 1, 100)
    assert (made.refresh_leader_backoff_ms, made.socket_timeout_ms, made.client_id) == (200, 30_000, "g")
    assert made.consumer_id is None


def test_a_default_that_follows_another_setting_follows_it():
    assert config(zookeeper_session_timeout_ms="900").connection_timeout_ms == 900
    assert config(zookeeper_sync_time_ms="150").rebalance_backoff_ms == 150
    assert config(zookeeper_sync_time_ms="150", rebalance_backoff_ms="0").rebalance_backoff_ms == 0


@pytest.mark.parametrize(
    ("word", "release", "strategy"),
    [
        ("range", "1.1", "range"),
        ("RoundRobin", "0.8.2", "range"),
        ("anything", "0.8.2", "range"),
        ("roundrobin", "0.8.2", "roundrobin-0.8.2"),
        ("roundrobin", "1.1", "roundrobin-1.1"),
    ],
)
def test_any_word_but_roundrobin_means_range(word, release, strategy):
    assert config(partition_assignment_strategy=word, roundrobin_release=release).strategy == strategy


@pytest.mark.parametrize(
    ("given", "read_from", "dual"),
    [
        ({}, {"zookeeper"}, False),
        ({"offsets_storage": "Kafka"}, {"zookeeper", "kafka"}, True),
        ({"offsets_storage": "kafka", "dual_commit_enabled": "true"}, {"zookeeper", "kafka"}, True),
        ({"offsets_storage": "kafka", "dual_commit_enabled": "false"}, {"kafka"}, False),
    ],
)
def test_dual_commit_is_on_with_offsets_in_kafka_unless_it_is_turned_off(given, read_from, dual):
    made = config(**given)
    assert (made.offsets_from, made.dual_commit_enabled) == (read_from, dual)


def test_every_setting_that_the_specification_lists_is_there_with_its_default():
    """zookeeper-consumer-0.8.md §5."""
    defaults = {name: setting.default for name, setting in ZK_CONSUMER_SETTINGS.items()}
    assert {
        "zookeeper.session.timeout.ms": 6000,
        "zookeeper.connection.timeout.ms": None,
        "zookeeper.sync.time.ms": 2000,
        "rebalance.backoff.ms": None,
        "rebalance.max.retries": 4,
        "partition.assignment.strategy": "range",
        "auto.commit.enable": True,
        "auto.commit.interval.ms": 60_000,
        "auto.offset.reset": "largest",
        "offsets.storage": "zookeeper",
        "dual.commit.enabled": None,
        "offsets.commit.max.retries": 5,
        "offsets.channel.backoff.ms": 1000,
        "offsets.channel.socket.timeout.ms": 10_000,
        "consumer.timeout.ms": -1,
        "queued.max.message.chunks": 2,
        "fetch.message.max.bytes": 1_048_576,
        "fetch.min.bytes": 1,
        "fetch.wait.max.ms": 100,
        "num.consumer.fetchers": 1,
        "refresh.leader.backoff.ms": 200,
        "socket.timeout.ms": 30_000,
        "socket.receive.buffer.bytes": 65_536,
        "exclude.internal.topics": True,
        "client.id": None,
        "consumer.id": None,
    }.items() <= defaults.items()


def test_every_fix_has_a_setting_and_is_off():
    made = config()
    names = {name for name in ZK_CONSUMER_SETTINGS if name.startswith("fix.")}
    assert names == {f"fix.{field.replace('_', '.')}" for field in Fixes.__dataclass_fields__}
    assert made.fixes == Fixes()


def test_release_1_1_is_the_default_of_every_setting_that_differs_and_any_of_them_can_be_kept():
    original, later = config(), config(**{"kafka.release": "1.1", "partition.assignment.strategy": "roundrobin"})
    assert (original.release, original.retry_while_closing, original.listener_in_attempt) == ("0.8.2", True, False)
    assert (later.release, later.retry_while_closing, later.listener_in_attempt) == ("1.1", False, True)
    assert (later.strategy, later.registration_conflict) == ("roundrobin-1.1", "fail")
    kept = config(**{"kafka.release": "1.1", "registration.conflict": "wait", "rebalance.listener.in.attempt": "false"})
    assert (kept.registration_conflict, kept.listener_in_attempt, kept.retry_while_closing) == ("wait", False, False)


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({"rebalance.max.retries": "3"}, "rebalance gives up while a dead member still owns"),
        ({"rebalance.backoff.ms": "1500"}, "is 6000 ms, not more than zookeeper.session.timeout.ms=6000"),
        ({"fix.stop.on.disconnect": "true"}, "add fix.commit.fence=session or epoch"),
        ({"dual.commit.enabled": "true"}, "no effect without offsets.storage=kafka"),
        (
            {"offsets.storage": "kafka", "dual.commit.enabled": "false", "fix.commit.fence": "epoch"},
            "fix.commit.fence has no effect on offsets in Kafka",
        ),
    ],
)
def test_legal_but_unlikely_values_cause_a_warning(given, warning):
    (found,) = ZkConsumerConfig.from_settings({**REQUIRED, **given})[1]
    assert warning in found


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("auto.offset.reset", "earliest", "smallest, largest"),
        ("offsets.storage", "nowhere", "zookeeper, kafka"),
        ("group.id", "a/b", "letters, digits"),
        ("consumer.id", "a/b", "letters, digits"),
        ("group.id", "..", "relative path"),
        ("rebalance.max.retries", "0", "between 1"),
        ("rebalance.max.retries", "many", "must be a whole number"),
        ("client.id", "a b", "letters, digits"),
        ("socket.receive.buffer.bytes", "0", "between 1"),
        ("offsets.commit.max.retries", "-1", "between 0"),
        ("dual.commit.enabled", "perhaps", "true or false"),
        ("fix.commit.fence", "version", "none, session, epoch"),
        ("fetch.wait.max.ms", "30001", "increase socket.timeout.ms"),
        ("auto.commit.enable", "yes", "true or false"),
        ("session.timeout.ms", "1000", "unknown setting"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_reason(name, value, complaint):
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        ZkConsumerConfig.from_settings({**REQUIRED, name: value})
    assert name in str(refused.value)


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_missing_required_setting_is_an_error(name):
    with pytest.raises(ConfigurationError, match=f"{name} is required"):
        ZkConsumerConfig.from_settings({key: value for key, value in REQUIRED.items() if key != name})


def test_setting_that_only_kafka_has_causes_a_warning():
    _, warnings = ZkConsumerConfig.from_settings({**REQUIRED, "fetch.size": "1"})
    assert warnings == ["fetch.size is a Kafka setting that rebalance-lab does not implement: ignored"]
    assert not KAFKA_OLD_CONSUMER_SETTINGS & ZK_CONSUMER_SETTINGS.keys()
