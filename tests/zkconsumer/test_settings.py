"""Settings of the ZooKeeper consumer: 0.8.2's names and defaults, and what is refused."""

from __future__ import annotations

import pytest

from kernel.errors import ConfigurationError
from zkconsumer.settings import KAFKA_OLD_CONSUMER_SETTINGS, ZK_CONSUMER_SETTINGS, ZkConsumerConfig

REQUIRED = {"zookeeper.connect": "h:1", "group.id": "g"}


def config(**given: str) -> ZkConsumerConfig:
    made, warnings = ZkConsumerConfig.from_settings(REQUIRED | {k.replace("_", "."): v for k, v in given.items()})
    assert not warnings
    return made


def test_defaults_are_those_of_0_8_2():
    made = config()
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


@pytest.mark.parametrize("word", ["range", "RoundRobin", "anything"])
def test_any_word_but_roundrobin_means_range(word):
    config(partition_assignment_strategy=word)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("auto.offset.reset", "earliest", "smallest, largest"),
        ("offsets.storage", "nowhere", "zookeeper, kafka"),
        ("group.id", "a/b", "letters, digits"),
        ("consumer.id", "a/b", "letters, digits"),
        ("group.id", "..", "relative path"),
        ("rebalance.max.retries", "0", "between 1"),
        ("rebalance.max.retries", "many", "invalid literal"),
        ("auto.commit.enable", "yes", "true or false"),
        ("session.timeout.ms", "1000", "unknown setting"),
    ],
)
def test_a_wrong_setting_is_refused_with_a_reason(name, value, complaint):
    with pytest.raises(ConfigurationError, match=complaint) as refused:
        ZkConsumerConfig.from_settings({**REQUIRED, name: value})
    assert name in str(refused.value)


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_a_required_setting_is_asked_for(name):
    with pytest.raises(ConfigurationError, match=f"{name} is required"):
        ZkConsumerConfig.from_settings({key: value for key, value in REQUIRED.items() if key != name})


def test_a_setting_that_only_kafka_has_is_warned_of():
    _, warnings = ZkConsumerConfig.from_settings({**REQUIRED, "socket.receive.buffer.bytes": "1"})
    assert warnings == ["socket.receive.buffer.bytes is a Kafka setting that rebalance-lab does not implement: ignored"]
    assert not KAFKA_OLD_CONSUMER_SETTINGS & ZK_CONSUMER_SETTINGS.keys()
