"""Where a value comes from, as a 4.1.1 broker answered with the same settings."""

from __future__ import annotations

import pytest

from kernel.broker.apis.configs import topic_rows
from kernel.broker.settings.effective_configs import BrokerLayers, Source, effective

HOURS = [("log.retention.hours", "1", Source.STATIC), ("log.retention.hours", "168", Source.DEFAULT)]
OWN, OF_ALL = ("log.retention.ms", "7200000", Source.BROKER), ("log.retention.ms", "7300000", Source.ALL_BROKERS)
STATIC = {"log.retention.hours": "1"}


@pytest.mark.parametrize(
    ("topic", "own", "of_all", "value", "shown"),
    [
        (None, None, None, "3600000", []),
        (None, "7200000", None, "7200000", [OWN, *HOURS]),
        (None, "7200000", "7300000", "7200000", [OWN, OF_ALL, *HOURS]),
        (None, None, "7300000", "7300000", [OF_ALL, *HOURS]),
        ("5000", None, None, "5000", [("retention.ms", "5000", Source.TOPIC)]),
        ("5000", None, "7300000", "5000", [("retention.ms", "5000", Source.TOPIC), OF_ALL, *HOURS]),
    ],
)
def test_retention_names_the_hours_only_behind_milliseconds(
    topic: str | None, own: str | None, of_all: str | None, value: str, shown: list[tuple[str, str, Source]]
) -> None:
    layers = BrokerLayers(
        own={} if own is None else {"log.retention.ms": own},
        of_all={} if of_all is None else {"log.retention.ms": of_all},
        static=STATIC,
    )
    given = {} if topic is None else {"retention.ms": topic}
    (row,) = [row for row in topic_rows(given, layers) if row["name"] == "retention.ms"]
    assert row["value"] == effective(given, layers)["retention.ms"] == value
    assert [tuple(synonym.values()) for synonym in row["synonyms"]] == shown
    assert row["config_source"] == (shown[0][2] if shown else Source.DEFAULT)


def test_default_is_the_last_synonym_of_a_setting_that_was_altered() -> None:
    layers = BrokerLayers(own={"message.max.bytes": "7"}, of_all={"message.max.bytes": "8"})
    (row,) = [row for row in topic_rows({}, layers) if row["name"] == "max.message.bytes"]
    assert [tuple(synonym.values()) for synonym in row["synonyms"]] == [
        ("message.max.bytes", "7", Source.BROKER),
        ("message.max.bytes", "8", Source.ALL_BROKERS),
        ("message.max.bytes", "1048588", Source.DEFAULT),
    ]
