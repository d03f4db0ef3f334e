"""Shells complete commands, options and names of known sets, fast and without a word of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.cli.completing.cache import cached_table
from comparison.cli.completing.sets import table_of
from comparison.cli.completing.shells import SHELLS, VARIABLE, answer, script_for
from comparison.cli.completing.table import KINDS, About, Table
from comparison.cli.main import COMMANDS, cli
from kernel.designs import DESIGN_NAMES
from kernel.platform.cache_folder import CACHE_VARIABLE
from tests.support.commands.called import code_of

ENTRY = "from comparison.cli.entry import main; main()"


@pytest.fixture(scope="module")
def table() -> Table:
    return table_of(cli)


@pytest.fixture(autouse=True)
def folder_of_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "runs" / "one" / "crash" / "eager" / "trace").mkdir(parents=True)
    (tmp_path / "runs" / "latest").symlink_to("one")


@pytest.fixture
def table_in_cache(table: Table, folder_of_files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes find it, and need not make it."""
    with monkeypatch.context() as made:
        made.setattr("comparison.cli.completing.sets.table_of", lambda _: table)
        cached_table()


def completed(table: Table, line: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash offers after the line."""
    monkeypatch.setenv("COMP_WORDS", f"rebalance-lab {line}")
    return [each.removeprefix("plain,") for each in answer(table, "bash").splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("sc", ["scenarios"]),
        ("topic cr", ["create"]),
        ("zookeeper st", ["start", "status", "stop"]),
        ("run crash --part", ["--partitions"]),
        ("diagram x --fu", ["--full"]),
        ("run crash-and", ["crash-and-return", "crash-and-return-late"]),
        ("run crash mass", ["mass-start"]),
        ("settings session.", ["session.timeout.ms"]),
        ("run mi", ["mixed-subscriptions", "mine.toml"]),
        ("compare --smoke hr", []),
        ("scenarios quorum", ["quorum-loss"]),
        ("run crash --design co", ["cooperative", "consumer"]),
        ("run crash --design coo", ["cooperative"]),
        ("run crash --design eager,st", ["eager,static"]),
        ("consume --design z", ["zookeeper"]),
        ("run crash --preset k", ["kafka-defaults"]),
        ("run crash --format j", ["json"]),
        ("run crash --set rebalance.max.retr", ["rebalance.max.retries="]),
        ("run crash -c session.timeout.ms=", []),
        ("run crash --set auto.offset.reset=ear", ["earliest"]),
        ("broker --set broker.i", ["broker.id="]),
        ("broker --set auto.create.topics.enable=t", ["true"]),
        ("consume --design eager --set partition.assignment.strategy=stick", ["sticky"]),
        ("assign -s thread-ra", ["thread-range"]),
        ("consume --design zookeeper --set rebalance.max", ["rebalance.max.retries="]),
        ("consume --design eager --set rebalance.max", []),
        ("topic create orders --set retention.m", ["retention.ms="]),
        ("sweep --grid scen", ["scenario="]),
        ("sweep --grid design=eager,ser", ["eager,server"]),
        ("sweep --grid scenario=split-brain-", ["split-brain-ensemble"]),
        ("sweep --metric converge_m", ["converge_ms"]),
        ("analyze ru", ["runs/"]),
        ("report runs/latest/crash/e", ["runs/latest/crash/eager"]),
        ("diff runs/latest/crash/e", ["runs/latest/crash/eager"]),
        ("diff a b --worse-than converge_m", ["converge_ms="]),
        ("diff a b --worse-than lost=0,converge_m", ["0,converge_ms="]),
        ("settings rebalance.max", ["rebalance.max.retries"]),
        ("assign -s stick", ["sticky"]),
        ("assign -s range,co", ["range,cooperative-sticky"]),
        ("assign -s range -s ran", ["range", "random"]),
        ("assign --then ", ["join", "leave", "add-partitions", "subscribe", "restart"]),
        ("assign --members a,b --topics t=1 --then l", ["leave"]),
        ("assign --then join c --then add", ["add-partitions"]),
        ("assign --then join ", []),
        ("sweep --metric converge_ms,rou", ["converge_ms,rounds"]),
        ("topic describe o", []),
        ("nothing x", []),
        ("run 'crash", ["crash", "crash-and-return", "crash-and-return-late"]),
    ],
)
def test_bash_offers_what_may_follow(
    table: Table, line: str, offered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completed(table, line, monkeypatch) == offered


def test_every_command_and_design_is_offered(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(table, "", monkeypatch) == sorted(COMMANDS)
    assert set(completed(table, "fuzz --design ", monkeypatch)) == {*DESIGN_NAMES, "all"}


def test_files_and_folders_are_left_to_the_shell(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed(table, "diagram x -o pict", monkeypatch) == ["file,"]
    assert completed(table, "broker --state sta", monkeypatch) == ["dir,"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_given_the_help_as_well(table: Table, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_WORDS", "rebalance-lab run cra")
    monkeypatch.setenv("COMP_CWORD", "2" if shell == "zsh" else "cra")
    text = answer(table, shell)
    assert text.startswith("plain\ncrash\nA consumer died" if shell == "zsh" else "plain,crash\tA consumer died")


def test_every_kind_of_value_belongs_to_a_parameter(table: Table) -> None:
    def named(about: About, path: str) -> set[str]:
        here = {name for each in about["params"] for name in (each["name"], f"{path} {each['name']}")}
        below = about.get("commands", {})
        return here.union(*(named(each, f"{path} {name}".strip()) for name, each in below.items()))

    assert set(KINDS) <= named(table.root, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_script_says_how_to_install_it(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("completion", shell) == 0
    text = capsys.readouterr().out
    assert text == script_for(shell)
    assert f"rebalance-lab completion {shell}" in text
    assert f"{VARIABLE}={shell}_complete" in text


def test_table_is_kept_in_the_cache_until_the_program_changes(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cached_table() == table
    (kept,) = (tmp_path / "cache").glob("completion-*.json")
    monkeypatch.setattr("comparison.cli.completing.sets.table_of", None)  # it is not made again
    assert cached_table() == table
    kept.write_text("damaged")
    monkeypatch.setattr("comparison.cli.completing.sets.table_of", lambda _: table)
    assert cached_table() == table
    assert kept.read_text().startswith("{")


def test_table_is_made_anew_when_a_module_changes(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "program" / "kernel" / "broker").mkdir(parents=True)
    module = tmp_path / "program" / "kernel" / "broker" / "loop.py"
    module.write_text("one = 1")
    made: list[int] = []
    monkeypatch.setattr("comparison.cli.completing.cache._HOME", tmp_path / "program")
    monkeypatch.setattr("comparison.cli.completing.sets.table_of", lambda _: (made.append(1), table)[1])
    cached_table()
    cached_table()
    assert len(made) == 1
    module.write_text("three = 3")
    cached_table()
    assert len(made) == 2
    assert len(list((tmp_path / "cache").glob("completion-*.json"))) == 1


def test_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr("comparison.cli.completing.sets.table_of", lambda _: table)
    assert cached_table() == table


@pytest.mark.parametrize("asked", ["bash_complete", "bash_source", "tcsh_complete", ""])
@pytest.mark.usefixtures("table_in_cache")
def test_answer_imports_no_command_and_prints_no_error(asked: str) -> None:
    program = f"{ENTRY}\nimport sys\nprint(sorted({{'pandas', 'pyspark', 'rich', 'kazoo'}} & set(sys.modules)))"
    environment = {**os.environ, VARIABLE: asked, "COMP_WORDS": "rebalance-lab run 'cra"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    *offered, loaded = done.stdout.splitlines()
    assert loaded == "[]"
    assert done.stderr == ""
    assert bool(offered) == (asked == "bash_complete")


@pytest.mark.usefixtures("table_in_cache")
def test_line_that_breaks_the_program_prints_nothing() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COMP_WORDS"}
    done = subprocess.run(
        [sys.executable, "-c", ENTRY],
        env={**environment, VARIABLE: "bash_complete"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout + done.stderr == ""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.usefixtures("table_in_cache")
def test_bash_itself_completes_a_value_after_an_equals_sign(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "rebalance-lab"
    program.write_text(f"#!{sys.executable}\n{ENTRY}\n")
    program.chmod(0o755)
    asking = """
eval "$(rebalance-lab completion bash)"
ask() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$' \\t\\n"><=;|&(:'
    _rebalance_lab_completion rebalance-lab
    echo "${COMPREPLY[*]}"
}
ask "rebalance-lab run crash-a"
ask "rebalance-lab run crash --set rebalance.max.ret"
ask "rebalance-lab run crash --set auto.offset.reset=smal"
ask "rebalance-lab run no-such-"
complete -p rebalance-lab
"""
    done = subprocess.run(
        ["bash", "--norc", "-c", asking],
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "crash-and-return crash-and-return-late",
        "rebalance.max.retries=",
        "smallest",
        "",
        "complete -o nosort -F _rebalance_lab_completion rebalance-lab",
    ]
