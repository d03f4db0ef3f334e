"""Kafka's defaults in our tables of settings are those of its own classes, in each release that can be run."""

from __future__ import annotations

import pytest

from comparison.scenarios.plan.setting_rows import BROKERS, Row, rows
from kernel.settings import written
from tests.support.java.defaults import BROKER, CONSUMER, OLD_CONSUMER, java_defaults
from tests.support.java.originals import require
from zkconsumer.kafka_settings import KAFKA_SETTINGS

#: {our name of a strategy: its class}
CLASSES = {"range": "RangeAssignor", "cooperative-sticky": "CooperativeStickyAssignor"}
#: Their names are those of the consumer of 0.8, which has no table of settings.
OF_0_8 = ("zookeeper members", "server members")
#: Settings of Connect, not of consumers.
ELSEWHERE = {"scheduled.rebalance.max.delay.ms"}
#: What Kafka replaces an unset one by.
REPLACED = {"log.dirs": "/tmp/kafka-logs"}

#: What our tables say in words.
IN_WORDS = {
    "classes of uniform and range": "org.apache.kafka.coordinator.group.assignor.UniformAssignor,"
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
}


def number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def expected(row: Row, version: str) -> str | None:
    """The default that a row names for a release; None if the release should not have the setting."""
    until = row.setting.until
    if until and number(version)[:2] > number(until):
        return None
    values = [value for release, value in row.history if number(release) <= number(version)]
    return values[-1] if values else None


def found(defaults: dict[str, str | None], name: str) -> str | None:
    """The same of Kafka's; None if it does not have it."""
    if name not in defaults:
        return None
    value = REPLACED.get(name, defaults[name])
    if value in ("True", "False"):
        value = value.lower()
    return written(value)


@pytest.mark.parametrize("version", ["1.1.1", "3.9.1", "4.1.1"])
def test_defaults_in_the_tables_are_those_of_the_release(version: str) -> None:
    require(version)
    kafka = java_defaults(version)
    differing, compared = {}, 0
    for row in rows():
        name = row.setting.name
        if row.part in OF_0_8 or name in ELSEWHERE or not row.setting.kafka:
            continue
        of_kafka = found(kafka[BROKER if row.part == BROKERS else CONSUMER], name)
        ours = expected(row, version)
        if ours is not None and name == "partition.assignment.strategy":
            ours = ",".join(CLASSES[each] for each in ours.split(","))
        ours = IN_WORDS.get(ours, ours) if ours is not None else None
        compared += of_kafka is not None
        if ours != of_kafka:
            differing[name] = (ours, of_kafka)
    assert differing == {}
    assert compared > 40


@pytest.mark.parametrize("version", ["0.8.2.2", "1.1.1"])
def test_defaults_of_the_zookeeper_design_are_those_of_the_consumer_of_0_8(version: str) -> None:
    require(version)
    original = java_defaults(version)[OLD_CONSUMER]
    derived = {
        "rebalance.backoff.ms": "2000",
        "zookeeper.connection.timeout.ms": "6000",
        "dual.commit.enabled": "false",
        "client.id": "required",
        "consumer.id": "None",
    }
    required = {"zookeeper.connect": "required", "group.id": "required"}
    ours = {setting.name: written(setting.default) for setting in KAFKA_SETTINGS}
    assert {name: str(value).replace("True", "true").replace("False", "false") for name, value in original.items()} == (
        ours | derived | required
    )
