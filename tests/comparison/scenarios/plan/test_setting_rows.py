"""The tables of settings: every row says all there is to know, and every setting is read somewhere."""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import fields
from pathlib import Path

import click
import pytest

from comparison.cli.main import cli
from comparison.cli.setting_text import default_of, in_full, sentence
from comparison.consumers import CONSUMERS
from comparison.member_settings import MEMBER_SETTINGS
from comparison.scenarios.plan.applicability import check_applicability, require_effect
from comparison.scenarios.plan.catalogue import CATALOGUE, designs_named, scenario_named
from comparison.scenarios.plan.configuration import check, for_part
from comparison.scenarios.plan.doubts import doubts
from comparison.scenarios.plan.setting_rows import BROKERS, OURS, Row, elsewhere, named, rows
from comparison.scenarios.run.experiments import plan
from coordinator.client.server.settings import ServerConsumerConfig
from coordinator.client.settings import CoordinatorConsumerConfig
from docs.generators.settings_page import PAGE
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.designs import DESIGN_NAMES, DESIGNS
from kernel.settings import boolean, split_pairs, written
from zkconsumer.settings import ZK_CONSUMER_SETTINGS, ZkConsumerConfig

ROOT = Path(__file__).parents[4]
ROWS = rows()
#: Options that set what has a setting's name.
OPTIONS = {
    "group": "group.id",
    "connect": "zookeeper.connect",
    "bootstrap": "bootstrap.servers",
    "port": "port",
    "folder": "log.dirs",
}


def ids(row: Row) -> str:
    return f"{row.part.split()[0]}-{row.setting.name}"


@pytest.mark.parametrize(
    "line", re.findall(r"^    rebalance-lab (run .+)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
)
def test_every_run_of_the_introduction_can_be_made_and_causes_no_warning(line: str) -> None:
    words = shlex.split(line)
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    given = command.make_context(words[0], words[1:]).params
    designs, settings = designs_named(given["designs"]), split_pairs(given["pairs"])
    assert [*check(settings), *check_applicability(designs, settings)] == []
    planned = plan(given["names"], designs, {"settings": settings, "session_timeout_ms": given["session_timeout_ms"]})
    assert len(planned) == len(designs) * len(given["names"])
    assert doubts([(each.scenario, each.design, each.parameters) for each in planned], settings) == []


def test_every_setting_of_every_part_is_a_row_of_it() -> None:
    for design in DESIGN_NAMES:
        assert CONSUMERS[design].settings is MEMBER_SETTINGS[design]
        of_it = {row.setting.name for row in rows([design]) if row.part != BROKERS}
        unused = set(MEMBER_SETTINGS[design]) - of_it
        assert unused <= {"scheduled.rebalance.max.delay.ms", "group.instance.id"}
        assert not unused or DESIGNS[design].classic
    assert [row.setting for row in ROWS if row.part == BROKERS] == list(BROKER_SETTINGS.values())
    assert len({(row.part, row.setting.name) for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_a_row_says_all_there_is_to_know(row: Row) -> None:
    setting, history = row.setting, row.history
    assert setting.doc
    assert not setting.doc.endswith(".") or ": " in setting.doc  # a topic's own text follows the colon
    assert setting.allowed != "a text" or setting.parse is str
    assert {row.setting.name for row in ROWS} >= set(setting.see), setting.see
    assert setting.name not in setting.see
    releases = [tuple(map(int, release.split("."))) for release, _ in history]
    assert releases == sorted(releases)
    assert all(before != after for (_, before), (_, after) in itertools.pairwise(history))
    if history:
        ours, theirs = written(setting.default), history[-1][1]
        assert bool(setting.differs) == (ours != theirs and theirs != "no default"), (ours, theirs)
    else:
        assert not setting.until
        assert not setting.differs
    if setting.parse in (int, boolean) and setting.default is not None:
        assert setting.valid(setting.default) is None
    for text in (setting.advice, setting.differs):
        assert text == text.strip()
        assert "  " not in text


def plain(text: str) -> str:
    """Without links, marks of code and ends of lines."""
    return " ".join(re.sub(r"\]\(#\w+\)|[\[`]", "", text).split())


#: (heading of the part, name of the setting, what the page says of it, what it says of the part)
ENTRIES = [
    (part.splitlines()[0], name, plain(text), plain(part.partition("####")[0]))
    for part in re.split("^### ", PAGE.read_text(encoding="utf-8"), flags=re.M)
    for name, text in re.findall(r"^#### `(.+?)`$(.+?)(?=^#|\Z)", part, flags=re.M | re.S)
]
#: Numbers that count nothing.
NAMES = {"broker.id", "port", "seed"}


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_a_row_has_default_unit_era_meaning_and_advice(row: Row) -> None:
    setting = row.setting
    assert default_of(row)
    assert setting.unit or setting.parse is not int or setting.name in NAMES
    assert (row.era == OURS) is not bool(setting.kafka)
    assert setting.doc
    assert len(setting.advice.split()) > 5
    assert setting.advice.endswith(".")
    printed = " ".join(" ".join(in_full(row)).split())
    for text in (f"default {default_of(row)}", f"era {row.era}", f"advice {setting.advice}", sentence(setting.doc)):
        assert text in printed
    ((entry, of_part),) = [
        said for part, name, *said in ENTRIES if name == setting.name and part.lower().startswith(row.part)
    ]
    for text in (f"Default {default_of(row)}", sentence(setting.doc), setting.advice, setting.source):
        assert plain(text) in entry
    said = entry if re.search(r"\. Kafka(: | since| \d)", entry) else of_part
    assert all(release in said for release in setting.kafka) if setting.kafka else " Ours." in entry


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_the_command_of_a_row_is_one_that_takes_the_setting(row: Row) -> None:
    name = row.setting.name
    words = shlex.split(row.setting.shown_by)
    command = cli.get_command(click.Context(cli), words[0])
    assert command is not None
    given = command.make_context(words[0], words[1:]).params
    settings = split_pairs(given["pairs"])
    by_option = {OPTIONS[option] for option, value in given.items() if option in OPTIONS and value is not None}
    if words[0] == "broker":
        assert row.part == BROKERS
        assert for_part(BROKER_SETTINGS, settings) == (settings, [])
        assert name in settings or name in by_option
    elif words[0] == "consume":
        design = given["design"]
        assert design in row.designs
        assert for_part(MEMBER_SETTINGS[design], settings) == (settings, [])
        require_effect(design, settings)
        assert name in settings or name in by_option
    else:
        taken_by_run(row, given, settings)


def taken_by_run(row: Row, given: dict[str, object], settings: dict[str, str]) -> None:
    names = given["names"]
    assert isinstance(names, tuple)
    assert isinstance(given["designs"], tuple)
    designs = designs_named(given["designs"])
    assert set(designs) <= set(row.designs) or row.setting.name in ("offsets.storage", "dual.commit.enabled")
    scenario = scenario_named(*names)
    of_steps = {each for step in scenario.steps for each in getattr(step, "settings", {})}
    assert row.setting.name in {*settings, *of_steps} or scenario.name == "duplicate-instance-id"
    assert [*check(settings), *check_applicability(designs, settings)] == []
    planned = plan(names, designs, {"settings": settings, "brokers": given["brokers"]})
    assert [each.design for each in planned] == list(designs)
    assert doubts([(each.scenario, each.design, each.parameters) for each in planned], settings) == []


def test_every_setting_of_a_member_is_read() -> None:
    """Each is a field of its configuration, and each field is used by the consumer."""
    read = set(re.findall(r'values\["([a-z.]+)"\]', source_of("zkconsumer/settings.py")))
    read |= {field.name.replace("_", ".") for field in fields(ZkConsumerConfig)}
    assert {name for name in ZK_CONSUMER_SETTINGS if not name.startswith("fix.")} <= read
    for config, package in (
        (ZkConsumerConfig, "zkconsumer"),
        (CoordinatorConsumerConfig, "coordinator"),
        (ServerConsumerConfig, "coordinator"),
    ):
        code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / package).rglob("*.py")))
        assert [field.name for field in fields(config) if not re.search(rf"\.{field.name}\b", code)] == []


def test_every_setting_of_a_broker_is_read_and_none_is_read_that_is_not_declared() -> None:
    rooms = ((ROOT / room).rglob("*.py") for room in ("kernel", "coordinator", "comparison"))
    paths = [
        path for path in itertools.chain(*rooms) if path.name not in ("setting_table.py", "group_setting_table.py")
    ]
    code = "\n".join(path.read_text(encoding="utf-8") for path in paths)
    names = set(re.findall(r'"([a-z]+(?:\.[a-z0-9]+)*)"', code))
    names |= {f"fix.kafka.{ticket}" for ticket in re.findall(r"\b(\d{4,5}) in [\w.]*\bmended\b", code)}
    for_topics = {setting.name for setting in BROKER_SETTINGS.values() if setting.doc.startswith("default ")}
    assert set(BROKER_SETTINGS) - for_topics <= names
    read = {name for name in re.findall(r'\.(?:number|flag|text)\(\s*"([a-z0-9.]+)"', code) if "." in name}
    assert len(read) > 20
    assert read <= set(BROKER_SETTINGS)


def source_of(path: str | Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def test_a_name_that_no_row_has_is_a_part_of_names_or_one_of_kafkas_others() -> None:
    assert {row.setting.name for row in named("session.timeout.ms", ROWS)} == {"session.timeout.ms"}
    assert {row.setting.name for row in named("backoff", ROWS)} >= {"rebalance.backoff.ms", "retry.backoff.ms"}
    assert named("check.crcs", ROWS) == []
    assert {"check.crcs", "mirror.topics.whitelist", "num.io.threads"} <= elsewhere()
    assert not elsewhere() & {row.setting.name for row in ROWS}


def test_settings_that_the_catalogue_sets_are_in_the_tables() -> None:
    for scenario in CATALOGUE.values():
        assert {row.setting.name for row in ROWS} >= set(scenario.settings)
