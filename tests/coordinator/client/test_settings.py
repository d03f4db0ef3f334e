"""A consumer's settings: Kafka's names and defaults, and what is refused."""

from __future__ import annotations

import pytest

from coordinator.client.errors import GroupRefused
from coordinator.client.kafka_settings import KAFKA_CONSUMER_SETTINGS
from coordinator.client.setting_table import CONSUMER_SETTINGS
from coordinator.client.settings import CoordinatorConsumerConfig
from kernel.errors import ConfigurationError

REQUIRED = {"bootstrap.servers": "127.0.0.1:9092", "group.id": "g"}


def config(**given: str) -> CoordinatorConsumerConfig:
    settings = {name.replace("_", "."): value for name, value in given.items()}
    return CoordinatorConsumerConfig.from_settings({**REQUIRED, **settings})[0]


def test_defaults_are_those_of_kafka_4_1() -> None:
    made = config()
    assert made.session_timeout_ms == 45_000
    assert made.heartbeat_interval_ms == 3_000
    assert made.max_poll_interval_ms == 300_000
    assert (made.enable_auto_commit, made.auto_commit_interval_ms) == (True, 5_000)
    assert made.auto_offset_reset == "latest"
    assert made.fetch_max_wait_ms == 500
    assert made.partition_assignment_strategy == ("range",)


def test_addresses_and_strategies_are_lists() -> None:
    made = config(
        bootstrap_servers="a:1, [::1]:2",
        partition_assignment_strategy="roundrobin,org.apache.kafka.clients.consumer.RangeAssignor,roundrobin",
    )
    assert made.bootstrap_servers == (("a", 1), ("::1", 2))
    assert made.partition_assignment_strategy == ("roundrobin", "range")


def test_strategies_are_named_as_in_java_and_once_each() -> None:
    java = "org.apache.kafka.clients.consumer."
    made = config(partition_assignment_strategy=f"sticky,{java}StickyAssignor,{java}CooperativeStickyAssignor")
    assert made.partition_assignment_strategy == ("sticky", "cooperative-sticky")


@pytest.mark.parametrize(
    ("strategies", "cooperative"),
    [("range", False), ("range,cooperative-sticky", False), ("cooperative-sticky", True), ("delayed", True)],
)
def test_one_eager_strategy_makes_the_member_eager(strategies: str, cooperative: bool) -> None:
    assert config(partition_assignment_strategy=strategies).member.cooperative is cooperative


def test_size_limit_for_exact_sticky_assignments_is_a_setting() -> None:
    assert config().sticky_exact_partitions_max == 20_000
    assert config(sticky_exact_partitions_max="0").sticky_exact_partitions_max == 0


def test_instance_id_makes_a_static_member() -> None:
    assert config().member.instance_id is None
    assert config(group_instance_id="web-1").member.instance_id == "web-1"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"bootstrap.servers": "nowhere"}, "Write host:port"),
        ({"bootstrap.servers": "a:0"}, "Write host:port"),
        ({"bootstrap.servers": ""}, "must not be empty"),
        ({"group.id": ""}, "must not be empty"),
        ({"partition.assignment.strategy": "afei"}, "Choose from range, roundrobin"),
        ({"partition.assignment.strategy": ","}, "at least one"),
        ({"partition.assignment.strategy": "delayed,range"}, "cannot be combined with other strategies"),
        ({"group.instance.id": ""}, "must have 1 to 249"),
        ({"group.instance.id": "a/b"}, "must have 1 to 249"),
        ({"group.instance.id": ".."}, "must have 1 to 249"),
        ({"heartbeat.interval.ms": "3000", "session.timeout.ms": "3000"}, "must be below"),
        ({"enable.auto.commit": "perhaps"}, "true or false"),
        ({"session.timeout.ms": "0"}, "between 1 and"),
        ({"session.timeout": "1"}, r"Did you mean 'session\.timeout\.ms'"),
        ({"auto.offset.reset": "smallest"}, "earliest, latest, none"),
        ({"sticky.exact.partitions.max": "-1"}, "between 0 and"),
        ({"sticky.exact.partitions.max": "many"}, "sticky.exact.partitions.max"),
    ],
)
def test_bad_value_is_refused_with_a_remedy(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        CoordinatorConsumerConfig.from_settings({**REQUIRED, **given})


@pytest.mark.parametrize("name", ["group.id", "bootstrap.servers"])
def test_missing_required_setting_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{name} is required"):
        CoordinatorConsumerConfig.from_settings({key: value for key, value in REQUIRED.items() if key != name})


def test_setting_that_only_kafka_has_causes_a_warning() -> None:
    _, warnings = CoordinatorConsumerConfig.from_settings({**REQUIRED, "client.rack": "r1"})
    assert warnings == ["client.rack is a Kafka setting that rebalance-lab does not implement: ignored"]
    assert not KAFKA_CONSUMER_SETTINGS & set(CONSUMER_SETTINGS)


def test_a_session_of_less_than_three_heartbeats_is_a_warning_and_not_an_error():
    given = {"bootstrap.servers": "h:1", "group.id": "g", "session.timeout.ms": "5000", "heartbeat.interval.ms": "2000"}
    config, (warning,) = CoordinatorConsumerConfig.from_settings(given)
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (5000, 2000)
    assert warning.startswith("session.timeout.ms=5000 is less than three times heartbeat.interval.ms=2000")
    assert CoordinatorConsumerConfig.from_settings(given | {"session.timeout.ms": "6000"})[1] == []


# -- the message of a fatal group error --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("api", "error", "remedy"),
    [
        ("Heartbeat", "FENCED_INSTANCE_ID", "give every member its own group.instance.id"),
        ("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL", "set the same partition.assignment.strategy, or another group"),
        ("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL", "members of another design use this group id: set another"),
    ],
)
def test_refusal_says_what_was_wrong_and_what_to_do(api: str, error: str, remedy: str) -> None:
    text = str(GroupRefused(api, error, "orders"))
    assert text.startswith(f"group 'orders' refused {api} with {error}: ")
    assert remedy in text


def test_remedy_names_no_strategy_if_the_coordinator_assigns() -> None:
    assert "partition.assignment.strategy" not in str(GroupRefused("AwaitCommand", "INCONSISTENT_GROUP_PROTOCOL", "g"))


def test_refusal_without_a_known_remedy_names_request_and_error() -> None:
    assert str(GroupRefused("JoinGroup", "UNKNOWN_SERVER_ERROR", "g")) == (
        "group 'g' refused JoinGroup with UNKNOWN_SERVER_ERROR"
    )
