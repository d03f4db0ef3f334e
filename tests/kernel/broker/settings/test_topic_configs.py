"""The table of a topic's settings compared with the answers of a 4.1.1 broker (recorded by
`tests.kernel.broker.settings.asking_configs`)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kernel.broker.apis.configs import topic_rows
from kernel.broker.settings.effective_configs import BrokerLayers, Source, effective
from kernel.broker.settings.group_configs import GROUP_CONFIGS
from kernel.broker.settings.topic_configs import (
    LONG_MAX,
    TOPIC_SETTINGS,
    Effect,
    TopicConfig,
    problem,
    problem_of_all,
    warnings_of,
)

RECORDED = json.loads((Path(__file__).parent / "topic-configs-4.1.1.json").read_text(encoding="utf-8"))
DEFAULTS = {name: setting.default for name, setting in TOPIC_SETTINGS.items()}


def test_settings_have_the_names_types_and_defaults_of_4_1_1() -> None:
    ours = {name: {"type": int(setting.type), "default": setting.default} for name, setting in TOPIC_SETTINGS.items()}
    theirs = {name: {"type": row["type"], "default": row["default"]} for name, row in RECORDED["settings"].items()}
    assert ours == theirs


def test_settings_name_the_broker_setting_behind_them_as_4_1_1_does() -> None:
    ours = {name: setting.broker_name for name, setting in TOPIC_SETTINGS.items()}
    theirs = {name: row["broker_name"] for name, row in RECORDED["settings"].items()}
    # 4.1.1 derives it from log.retention.hours, and names log.retention.ms only once that is set.
    assert ours == {**theirs, "retention.ms": "log.retention.ms"}


@pytest.mark.parametrize("name", RECORDED["said"])
def test_values_are_refused_with_the_messages_of_4_1_1(name: str) -> None:
    said = RECORDED["said"][name]
    assert {value: problem(name, value) for value in said} == said


def test_null_and_settings_in_conflict_are_refused_with_the_messages_of_4_1_1() -> None:
    assert problem_of_all({"retention.ms": None}) == "Null value not supported for topic configs: retention.ms"
    assert problem_of_all({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}) == (
        "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (4)"
    )
    assert problem_of_all({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}) is None


def test_applied_settings_are_read_from_their_text() -> None:
    assert TopicConfig.of(DEFAULTS) == TopicConfig()
    given = {
        "cleanup.policy": "compact , delete",
        "message.timestamp.type": "LogAppendTime",
        "message.timestamp.before.max.ms": " 7 ",
        "retention.ms": "-1",
        "retention.bytes": "-5",
        "max.message.bytes": "0",
    }
    assert TopicConfig.of(DEFAULTS | given) == TopicConfig(
        max_message_bytes=0,
        log_append_time=True,
        timestamp_before_ms_max=7,
        compact=True,
        delete=True,
        retention_ms=-1,
        retention_bytes=-5,
    )
    assert TopicConfig.of(DEFAULTS).timestamp_before_ms_max == LONG_MAX
    assert not TopicConfig.of(DEFAULTS | {"cleanup.policy": ""}).delete


def test_settings_without_effect_cause_warnings_unless_default() -> None:
    assert warnings_of(DEFAULTS) == []
    unapplied = {name for name, setting in TOPIC_SETTINGS.items() if setting.effect is Effect.NONE}
    assert "segment.bytes" in unapplied
    assert "retention.ms" not in unapplied
    (warning,) = warnings_of(
        {"segment.bytes": "1048576", "retention.ms": "5", "flush.messages": DEFAULTS["flush.messages"]}
    )
    assert warning.startswith("segment.bytes=1048576 has no effect")
    (warning,) = warnings_of({"cleanup.policy": "compact"})
    assert warning.startswith("cleanup.policy=compact: ")


def test_documentation_has_each_setting_with_its_effect() -> None:
    page = (Path(__file__).parents[4] / "docs" / "administration.md").read_text(encoding="utf-8")
    found = {}
    for line in page.splitlines():
        if line.startswith("| `"):
            name, default, broker_name, effect, doc = [cell.strip(" `") for cell in line.strip("|").split("|")]
            found[name] = (default, broker_name, effect, doc)
    settings = {**TOPIC_SETTINGS, **GROUP_CONFIGS}
    without = {name for name, setting in settings.items() if setting.effect is Effect.NONE}
    assert found == {
        name: (setting.default, setting.broker_name, str(setting.effect), setting.doc)
        for name, setting in settings.items()
        if name not in without
    }
    (listed,) = re.findall(r"^Without effect: (.*?)\.\n\n", page, re.MULTILINE | re.DOTALL)
    assert set(re.findall(r"`([\w.]+)`", listed)) == without


# -- where a value comes from, as a 4.1.1 broker answered with the same settings ---------------------------------------

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
