"""The settings of a KIP-848 member: what Kafka's consumer refuses with group.protocol=consumer, and what to set."""

from __future__ import annotations

import pytest

from coordinator.client.consumer.settings import Kip848ConsumerConfig
from kernel.errors import ConfigurationError

NEEDED = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "g"}


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("session.timeout.ms", r"group\.consumer\.session\.timeout\.ms"),
        ("heartbeat.interval.ms", r"group\.consumer\.heartbeat\.interval\.ms"),
        ("partition.assignment.strategy", r"group\.remote\.assignor"),
    ],
)
def test_setting_of_the_classic_protocol_is_refused_with_what_to_set_instead(name: str, instead: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name} cannot be set with group\.protocol=consumer\. .*{instead}"):
        Kip848ConsumerConfig.from_settings({**NEEDED, name: "1"})


def test_defaults_are_kafkas_and_max_poll_interval_is_the_rebalance_timeout() -> None:
    config, warnings = Kip848ConsumerConfig.from_settings({**NEEDED, "group.protocol": "CONSUMER"})
    assert not warnings
    assert (config.member.server_assignor, config.member.instance_id) == (None, None)
    assert (config.member.max_poll_interval_ms, config.auto_offset_reset) == (300_000, "latest")
    assert (config.retry_backoff_ms, config.retry_backoff_max_ms) == (100, 1_000)


def test_classic_protocol_is_another_design() -> None:
    with pytest.raises(ConfigurationError, match="another design"):
        Kip848ConsumerConfig.from_settings({**NEEDED, "group.protocol": "classic"})


@pytest.mark.parametrize("missing", ["bootstrap.servers", "group.id"])
def test_group_and_brokers_are_required(missing: str) -> None:
    given = {name: value for name, value in NEEDED.items() if name != missing}
    with pytest.raises(ConfigurationError, match=f"{missing} is required"):
        Kip848ConsumerConfig.from_settings(given)


def test_setting_without_effect_here_is_a_warning() -> None:
    _, warnings = Kip848ConsumerConfig.from_settings({**NEEDED, "scheduled.rebalance.max.delay.ms": "5"})
    assert len(warnings) == 1
