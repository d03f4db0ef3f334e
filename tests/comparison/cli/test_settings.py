"""`rebalance-lab settings`: the list, one setting in full, JSON, and names that do not exist."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.cli.settings import settings
from comparison.scenarios.plan.setting_rows import rows
from kernel.errors import ConfigurationError
from tests.support.commands.called import output_of


def test_list_has_every_setting_under_its_part_in_80_columns() -> None:
    lines = output_of(settings).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.partition(" (")[0] for line in lines if line and not line.startswith(" ")] == [
        "zookeeper members",
        "classic members",
        "classic and consumer members",
        "consumer members",
        "members of the coordinator designs",
        "server members",
        "brokers",
    ]
    assert sum(" = " in line and not line.startswith("   ") for line in lines) == len(rows())


def test_every_setting_in_full_is_80_columns_wide_but_for_its_command() -> None:
    for name in {row.setting.name for row in rows()}:
        lines = output_of(settings, name).splitlines()
        assert all(len(line) <= 80 for line in lines if "--" not in line and "http" not in line), name


def test_one_setting_in_full_has_what_a_user_has_to_know() -> None:
    text = " ".join(output_of(settings, "session.timeout.ms").split())
    for part in (
        "of the members of eager, static, cooperative and delayed",
        "values 1 or more, in ms",
        "default 45000; in a run 3000 with equal-timers, 10000 with kafka-defaults",
        "era since Kafka 0.9",
        "Kafka 30000 since 0.9, 10000 since 0.10.1, 45000 since 3.0",
        "advice Make it three heartbeats or more",
        "source KIP-62, KIP-735, ConsumerConfig.java",
        "rebalance-lab run crash \\ --design eager",
    ):
        assert part in text


def test_a_setting_that_several_parts_have_is_shown_for_each() -> None:
    text = output_of(settings, "auto.offset.reset")
    assert "largest, 0.8 to 1.1" in text
    assert "latest since 0.9" in text


def test_a_part_of_a_name_lists_the_settings_that_have_it() -> None:
    assert output_of(settings, "backoff").splitlines()[1] == "  rebalance.backoff.ms = unset"


def test_design_leaves_out_what_does_not_matter_to_it() -> None:
    names = {each["name"] for each in json.loads(output_of(settings, "--design", "zookeeper", "--format", "json"))}
    assert {"rebalance.backoff.ms", "message.max.bytes"} <= names
    assert not names & {"session.timeout.ms", "group.initial.rebalance.delay.ms", "command.wait.ms"}


def test_json_has_everything_of_every_setting() -> None:
    data = json.loads(output_of(settings, "--format", "json"))
    assert len(data) == len(rows())
    (session,) = (each for each in data if each["name"] == "session.timeout.ms")
    assert session["kafka"] == {"0.9": "30000", "0.10.1": "10000", "3.0": "45000"}
    assert session["unit"] == "ms"
    assert session["in_runs"]["equal-timers"]["eager"] == "3000"
    assert session["shown_by"].startswith("rebalance-lab run crash")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["sesion.timeout.ms"], r"unknown setting 'sesion.timeout.ms'. Did you mean 'session.timeout.ms'\?"),
        (["check.crcs"], "check.crcs is a Kafka setting that rebalance-lab does not implement"),
        (["command.wait.ms", "--design", "eager"], "command.wait.ms does not matter to eager. Leave --design out"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_what_to_do(arguments: list[str], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        output_of(settings, *arguments)


def test_the_command_loads_no_consumer_and_no_schemas() -> None:
    """They take longer to load than the list takes to read."""
    heavy = "aiokafka", "kio", "kazoo", "pyspark", "hypothesis", "coordinator.client.fetcher"
    program = f"import sys, comparison.cli.settings; print([name for name in {heavy} if name in sys.modules])"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.strip() == "[]"
