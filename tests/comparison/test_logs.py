"""Log lines in the form of Kafka's tools, the levels, and the options for them on every command."""

from __future__ import annotations

import io
import logging
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from comparison.cli.idle import PATIENCE_S
from comparison.cli.main import COMMANDS, cli
from comparison.logs import LEVEL_VARIABLE, KafkaFormatter, PrintableFormatter, set_inherited_level, set_level
from tests.support.commands.terminals import Terminals

OURS = ("kernel", "zkconsumer", "coordinator", "comparison")


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loggers and the environment as they were."""
    monkeypatch.setenv(LEVEL_VARIABLE, "")
    root = logging.getLogger()
    loggers = [root, *map(logging.getLogger, OURS)]
    levels, handlers = [each.level for each in loggers], list(root.handlers)
    yield
    root.handlers[:] = handlers
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)


def formatted(level: int, text: str, *arguments: object) -> str:
    return KafkaFormatter().format(logging.LogRecord("a.b", level, "f.py", 1, text, arguments, None))


def test_line_has_the_form_of_kafkas_log4j_and_no_control_characters() -> None:
    time = r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\]"
    assert re.fullmatch(time + r" INFO group g \(a\.b\)", formatted(logging.INFO, "group %s", "g"))
    assert " WARN x (a.b)" in formatted(logging.WARNING, "x")
    assert "\\x1b[2J\\n" in formatted(logging.INFO, "%s", "\x1b[2J\n")


@pytest.mark.parametrize("formatter", [KafkaFormatter(), PrintableFormatter()])
def test_no_text_of_a_line_or_a_traceback_is_raw(formatter: logging.Formatter) -> None:
    # Bidirectional marks, characters of no width, C1 controls and an escape, each of which a terminal acts on.
    hostile = [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200B, 0x200E, 0x200F, 0x061C, 0xFEFF, 0x85, 0x9B, 0x1B]
    text = "".join(map(chr, hostile))
    error = (ValueError, ValueError(text), None)
    record = logging.LogRecord("a.b", logging.WARNING, "f.py", 1, "of %s", (f"group {text}",), error)
    shown = formatter.format(record)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.count("\\u202e") == 2
    assert shown.split("\n")[1].startswith("ValueError: ")


def test_warnings_without_a_level_are_printable_too() -> None:
    set_inherited_level()
    assert logging.lastResort is not None
    record = logging.LogRecord("a.b", logging.WARNING, "f.py", 1, "topic %s", ("a\u202eb",), None)
    assert logging.lastResort.format(record) == "topic a\\u202eb"


@pytest.mark.parametrize(
    ("level", "shown"), [("DEBUG", {"d", "i", "w"}), ("INFO", {"i", "w"}), ("WARNING", {"w"}), ("ERROR", set())]
)
def test_level_is_that_of_our_loggers_and_others_only_warn(
    level: str, shown: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = io.StringIO()
    monkeypatch.setattr("sys.stderr", errors)
    set_level(level)
    for name, logger in (("", logging.getLogger("coordinator.x")), ("others", logging.getLogger("somebody.else"))):
        logger.debug("d%s", name)
        logger.info("i%s", name)
        logger.warning("w%s", name)
    said = {line.split()[3] for line in errors.getvalue().splitlines()}
    assert said == shown | ({"wothers"} if "w" in shown else set())
    assert os.environ[LEVEL_VARIABLE] == level


def test_child_process_has_the_level_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LEVEL_VARIABLE, "debug")
    set_inherited_level()
    assert logging.getLogger("coordinator").level == logging.DEBUG
    monkeypatch.setenv(LEVEL_VARIABLE, "nonsense")
    set_inherited_level()
    assert logging.getLogger("coordinator").level == logging.DEBUG


def commands(context: click.Context, command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(context, found)


def test_every_command_and_subcommand_has_the_options_once() -> None:
    context = click.Context(cli)
    found = list(commands(context, cli)) + list(commands(context, cli))  # a second look adds nothing
    assert len(found) > 2 * len(COMMANDS)
    for command in found:
        names = [name for parameter in command.params for name in parameter.opts]
        assert names.count("-v") == names.count("--log-level") == 1, command.name


def logged(terminals: Terminals, *command: str) -> str:
    """What a command writes to standard error; if it takes long, without why, which it may say."""
    begun_s = time.monotonic()
    said = terminals.run(*command).stderr
    if time.monotonic() - begun_s < PATIENCE_S:
        return said
    return "".join(line for line in said.splitlines(keepends=True) if not line.startswith(("waiting: ", "over: ")))


def test_commands_are_quiet_unless_asked(tmp_path: Path) -> None:
    terminals = Terminals(tmp_path)
    try:
        quiet = terminals.run("zookeeper", "start", "--detach", "--port", "0")
        assert (quiet.returncode, quiet.stderr) == (0, "")
        broker = terminals.run("broker", "--detach", "--port", "0", "--log-level", "info")
        assert broker.returncode == 0, broker.stderr
        topic = ("--design", "eager", "--group", "g", "--topic", "t", "--set", "auto.offset.reset=earliest")
        assert not logged(terminals, "produce", "--topic", "t", "--count", "1")
        assert not logged(terminals, "consume", *topic, "--max-records", "1")
        assert not logged(terminals, "produce", "--topic", "t", "--count", "1")
        loud = terminals.run("-v", "consume", *topic, "--max-records", "1")
        assert "INFO [Consumer clientId=consume, groupId=g] (Re-)joining group" in loud.stderr
        assert "Received FindCoordinator response" not in loud.stderr
        (log,) = (tmp_path / "state").glob("broker-[0-9]*.log")
        assert re.search(
            r"INFO \[GroupCoordinator \d+\]: Stabilized group g generation 1 \(__consumer_offsets-\d+\) with 1 members",
            log.read_text(),
        )
        topic = (*topic[:3], "h", *topic[4:])
        louder = terminals.run("consume", "-vv", *topic, "--max-records", "2")
        assert "DEBUG [Consumer clientId=consume, groupId=h] Received FindCoordinator response" in louder.stderr
    finally:
        terminals.close()
