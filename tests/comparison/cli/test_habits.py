"""One habit for all commands: the same options for the same things, one document for programs, the same exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from comparison.cli.main import cli
from comparison.exits import Exit
from kernel.platform.ports import free_ports
from tests.comparison.cli.test_options import commands
from tests.support.commands.called import code_of

ALL = dict(commands(cli))
LEAVES = {name: command for name, command in ALL.items() if not isinstance(command, click.Group)}
#: Commands that print no facts: a script, the place of what was written or started, that something is gone.
WITHOUT_FACTS = {
    *("completion", "report", "trace", "playground", "zookeeper start", "zookeeper stop", "broker stop"),
    "topic delete",
}
#: Commands that make runs or analyse them, and say how far they are.
WITH_PROGRESS = {"run", "compare", "sweep", "fuzz", "analyze"}
#: Commands that print one document, and need no server.
DOCUMENTS = [
    ["scenarios"],
    ["scenarios", "crash"],
    ["scenarios", "restart"],
    ["scenarios", "--steps"],
    ["settings"],
    ["settings", "session.timeout.ms"],
    ["settings", "backoff", "--design", "zookeeper"],
    ["assign", "--members", "C0,C1", "--topics", "t=3"],
    ["choose"],
    ["run", "crash", "--dry-run"],
    ["compare", "--smoke", "--dry-run"],
    ["sweep", "--grid", "scenario=join", "--dry-run"],
    ["fuzz", "--dry-run", "--schedules", "2"],
    ["broker", "coordinator", "g", "--partitions", "50"],
]
#: Status commands where nothing runs: a document all the same.
NOTHING = [["zookeeper", "status"], ["broker", "status"]]
BROKER, ZOOKEEPER = ("--bootstrap-server", "127.0.0.1:{port}"), ("--zookeeper", "127.0.0.1:{port}")
SOON = ("--set", "zookeeper.connection.timeout.ms=500")
#: Every command that connects, with the address of a server that is not there.
UNREACHABLE = [
    *(["topic", what, "t", *BROKER] for what in ("create", "describe", "recreate", "delete")),
    ["topic", "add-partitions", "t", "2", *BROKER],
    ["topic", "list", *BROKER],
    ["produce", "--topic", "t", *BROKER],
    ["watch", "--group", "g", "--once", *BROKER],
    ["watch", "--group", "g", *BROKER],
    ["broker", "coordinator", "g", *BROKER],
    ["doctor", "--broker", "127.0.0.1:{port}"],
    ["consume", "--design", "eager", "--group", "g", "--topic", "t", *BROKER],
    ["consume", "--design", "consumer", "--group", "g", "--topic", "t", *BROKER],
    ["consume", "--design", "zookeeper", "--group", "g", "--topic", "t", *ZOOKEEPER, *SOON],
    ["consume", "--design", "server", "--group", "g", "--topic", "t", *ZOOKEEPER, *BROKER, *SOON],
    ["zookeeper", "znodes", "/", *ZOOKEEPER],
    ["broker", "--port", "0", *ZOOKEEPER, *SOON],
    ["broker", "--port", "0", "--detach", *ZOOKEEPER, *SOON],
    ["run", "crash", *ZOOKEEPER],
    ["compare", "crash", *ZOOKEEPER],
    ["sweep", "--grid", "scenario=crash", *ZOOKEEPER],
]


pytestmark = pytest.mark.usefixtures("own_folder")


def options(command: click.Command) -> dict[str, click.Option]:
    """{spelling: option}"""
    return {spelled: each for each in command.params if isinstance(each, click.Option) for spelled in each.opts}


def named(names: set[str]) -> Iterator[tuple[str, click.Command]]:
    yield from ((name, LEAVES[f"rebalance-lab {name}"]) for name in sorted(names))


def test_every_command_that_prints_facts_has_one_option_for_their_format() -> None:
    names = {name.removeprefix("rebalance-lab ") for name in LEAVES}
    assert names > WITHOUT_FACTS
    for name, command in named(names - WITHOUT_FACTS):
        form = options(command).get("--format")
        assert form is not None, name
        assert isinstance(form.type, click.Choice)
        choices = ("mermaid", "markdown", "svg", "json") if name == "diagram" else ("text", "json")
        assert tuple(form.type.choices) == choices, name
    for name, command in named(WITHOUT_FACTS):
        assert "--format" not in options(command), name


def test_no_option_has_a_second_meaning() -> None:
    for name, command in ALL.items():
        found = options(command)
        assert "--json" not in found, name
        if "--state" in found:
            assert (found["--state"].name, found["--state"].is_flag) == ("state_folder", False), name
        if "-q" in found:
            assert found["-q"].name == "quiet", name
        if "--dry-run" in found:
            assert found["--dry-run"].is_flag, name
            assert "--format" in found, name
        if "--set" in found:
            assert {"--set", "-c", "--config"} <= found.keys(), name


def test_every_command_that_reports_progress_can_be_quiet() -> None:
    quiet = {name.removeprefix("rebalance-lab ") for name, command in LEAVES.items() if "--quiet" in options(command)}
    assert quiet == WITH_PROGRESS


@pytest.mark.parametrize("arguments", DOCUMENTS, ids=" ".join)
def test_output_for_programs_is_one_document(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*arguments, "--format", "json") == Exit.AS_EXPECTED
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("arguments", NOTHING, ids=" ".join)
def test_nothing_is_a_document_too(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*arguments, "--format", "json") == Exit.NOT_AS_EXPECTED
    assert not json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("arguments", [each for each in DOCUMENTS if "--dry-run" in each], ids=" ".join)
def test_a_dry_run_says_what_and_where_and_starts_nothing(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*arguments, "--seed", "5") == Exit.AS_EXPECTED
    output = capsys.readouterr()
    what, where, *rest = output.out.splitlines()
    assert what.startswith("would ")
    assert "seed" in what
    assert where.startswith("results: runs/")
    assert any(line.startswith("  ") for line in rest)
    assert output.err == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_help_has_no_blanks_at_the_ends_of_lines(columns: int) -> None:
    for name in ALL:
        given = [*name.split()[1:], "--help"]
        said = CliRunner(env={"COLUMNS": str(columns)}).invoke(cli, given, terminal_width=columns)
        assert said.exit_code == 0, name
        assert [line for line in said.output.splitlines() if line != line.rstrip()] == [], name


@pytest.mark.parametrize("columns", ["60", "80", "200"])
@pytest.mark.parametrize("arguments", DOCUMENTS, ids=" ".join)
def test_text_has_no_blanks_at_the_ends_of_lines(
    arguments: list[str], columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code_of(*arguments)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("arguments", UNREACHABLE, ids=lambda arguments: " ".join(arguments[:5]))
def test_server_that_does_not_answer_has_its_exit_code(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (port,) = free_ports(1)
    assert code_of(*(each.format(port=port) for each in arguments)) == Exit.INTERNAL
    output = capsys.readouterr()
    assert output.out == ""
    assert f"127.0.0.1:{port}" in output.err
    assert "Traceback" not in output.err


def test_every_command_that_connects_is_among_them() -> None:
    tried = {" ".join(each for each in arguments[:2] if not each.startswith("-")) for arguments in UNREACHABLE}
    servers = {"--bootstrap-server", "--zookeeper"}
    connecting = {name.removeprefix("rebalance-lab ") for name, each in ALL.items() if servers & options(each).keys()}
    assert len(connecting) > 10
    assert {name for name in connecting if not any(each.startswith(name) for each in tried)} == set()
