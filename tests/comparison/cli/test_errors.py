"""A user's error ends in one clear line and the right exit code, without a traceback."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from comparison.cli.interrupted import after_interrupt
from comparison.cli.options import with_seed
from comparison.exits import Exit
from tests.support.commands.called import code_of

COMMANDS = (
    *([], ["scenarios"], ["sweep"], ["run"], ["compare"], ["analyze"], ["diagram"], ["trace"], ["zookeeper"]),
    *(["zookeeper", "start"], ["zookeeper", "status"], ["zookeeper", "stop"], ["broker"], ["broker", "status"]),
    *(["broker", "stop"], ["consume"], ["produce"], ["describe"], ["watch"], ["doctor"], ["assign"], ["choose"]),
)


CONSUMED = ("consume", "--group", "g", "--topic", "t", "--design")


pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_examples(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(*command, "--help") == Exit.AS_EXPECTED
    assert "Example" in capsys.readouterr().out


def test_help_and_docs_explain_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code_of("--help")
    codes = " ".join(capsys.readouterr().out.split()).lower().partition("exit codes: ")[2].partition(".")[0]
    assert [int(each.split()[0]) for each in codes.split(", ")] == sorted(Exit)
    assert codes.endswith("255 internal error or a server that did not answer")
    page = (Path(__file__).parents[3] / "docs" / "command-line.md").read_text(encoding="utf-8")
    table = page.partition("### Exit codes\n")[2].partition("\n#")[0]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == sorted(Exit)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["fly"], "no such command 'fly'"),
        (["run"], "missing argument 'SCENARIO...'"),
        (["run", "crush"], "unknown scenario 'crush'. Did you mean 'crash'? `rebalance-lab scenarios` lists all"),
        (["run", "crash", "--design", "raft"], "unknown design 'raft'"),
        (["run", "protocol-migration", "--design", "eager"], "protocol-migration is not applicable to eager: "),
        (["compare", "--smoke", "--all"], "--smoke, --all and scenarios exclude each other"),
        (["run", "crash", "--members", "0"], "--members is 0: must be between 1 and 200"),
        (["run", "crash", "--rate", "12345678"], "--rate is 12345678: must be between 1 and 20000"),
        (["run", "crash", "--session-timeout", "10"], "--session-timeout is 10: must be between 1000 and 60000"),
        (["run", "crash", "--members", "many"], "invalid value for '--members': 'many' is not a valid integer"),
        (["run", "crash", "--time-limit", "0"], "--time-limit is 0: must be between 1 and 3600"),
        (["run", "crash", "--preset", "fast"], "'fast' is not one of"),
        (["run", "crash", "-c", "sesion.timeout.ms=1"], "Did you mean 'session.timeout.ms'"),
        (["run", "crash", "-c", "session.timeout.ms"], "is not a setting. Use key=value"),
        (["run", "crash", "-c", "session.timeout.ms=soon"], "session.timeout.ms='soon'"),
        (["run", "crash", "-c", "partition.assignment.strategy=nonesuch"], "applies to none of the chosen designs"),
        (["run", "crash", "--seed", "-1"], "-1 is not in the range"),
        (["run", "crash", "--zookeeper", "somewhere"], "somewhere"),
        (["compare", "--zookeeper", "127.0.0.1:99999"], "99999 is not a port"),
        (["scenarios", "crush"], "unknown scenario 'crush'"),
        (["scenarios", "--as-file"], "--as-file needs the name of a scenario, and excludes --format json"),
        (["run", "nowhere.toml"], "no such file or folder 'nowhere.toml'. Give a file with a scenario"),
        (["compare", "crash", "--smoke"], "--smoke, --all and scenarios exclude each other"),
        (["analyze", "nowhere"], "no such file or folder 'nowhere'. Give a folder that `run` or `compare` created"),
        (["analyze", "."], "no run in "),
        (["broker"], "no ZooKeeper. Start one with `rebalance-lab zookeeper start`"),
        (["broker", "--zookeeper", "127.0.0.1:1", "--set", "brker.id=1"], "Did you mean 'broker.id'"),
        (["broker", "--zookeeper", "127.0.0.1:1", "--port", "70000"], "70000 is not in the range"),
        (["consume", "--design", "zookeeper", "--group", "g", "--topic", "t"], "no ZooKeeper. Start one"),
        (["consume", "--design", "eager", "--group", "g", "--topic", "t"], "no broker. Start one with"),
        (["consume", "--design", "raft", "--group", "g", "--topic", "t"], "'raft' is not one of"),
        (["consume", "--design", "eager", "--topic", "t"], "missing option '--group'"),
        (
            ["consume", "--design", "eager", "--group", "g", "--topic", "t:0", "--bootstrap-server", "127.0.0.1:1"],
            "Write TOPIC or TOPIC:STREAMS",
        ),
        (
            ["consume", "--design", "eager", "--group", "g", "--topic", "t", "--bootstrap-server", "here"],
            "--bootstrap-server 'here': 'here' is not HOST:PORT",
        ),
        (
            ["consume", "--design", "consumer", "--group", "g", "--topic", "t", "--set", "session.timeout.ms=5000"],
            "session.timeout.ms cannot be set with group.protocol=consumer. Set the group's",
        ),
        (["consume", "--design", "zookeeper", "--group", "g"], "topics are to be chosen in one way. Give --topic"),
        (["consume", "--design", "zookeeper", "--group", "g", "--topic", "t", "--whitelist", "t"], "in one way"),
        (["consume", "--design", "zookeeper", "--group", "g", "--topic", "t", "--streams", "2"], "Use --topic t:2"),
        (["consume", "--design", "zookeeper", "--group", "g", "--blacklist", "t("], "t( is an invalid regex"),
        (["consume", "--design", "eager", "--group", "g", "--blacklist", "t"], "Use --whitelist '(?!(?:PATTERN)$).*'"),
        (["consume", "--design", "eager", "--group", "g", "--whitelist", "t("], "t( is an invalid regex"),
        (["consume", "--design", "eager", "--group", "g", "--regex", "t("], "t( is an invalid regex"),
        (["consume", "--design", "consumer", "--group", "g", "--regex", ""], "Write an RE2 regular expression"),
        (["consume", "--design", "server", "--group", "g", "--regex", "t.*"], "server assigns topics by name, so it"),
        (["consume", "--design", "eager", "--group", "g", "--topic", "t", "--regex", "t"], "in one way"),
        (["produce", "--topic", "t", "--rate", "0"], "0.0 is not in the range"),
    ],
)
def test_wrong_arguments_end_with_advice(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*arguments) == Exit.USAGE
    output = capsys.readouterr()
    assert complaint in output.err
    assert "Traceback" not in output.err
    assert output.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "crash", "--zookeeper", "127.0.0.1:{port}"],
        ["broker", "--zookeeper", "127.0.0.1:{port}", "--port", "0", "--set", "zookeeper.connection.timeout.ms=500"],
        ["produce", "--topic", "t", "--bootstrap-server", "127.0.0.1:{port}"],
        [
            *("consume", "--design", "zookeeper", "--group", "g", "--topic", "t", "--zookeeper", "127.0.0.1:{port}"),
            *("--set", "zookeeper.connection.timeout.ms=500"),
        ],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_command_names_the_server_that_is_down(
    arguments: list[str], unused_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*(argument.format(port=unused_port) for argument in arguments)) == Exit.INTERNAL
    stderr = capsys.readouterr().err
    assert f"127.0.0.1:{unused_port}" in stderr
    assert "Traceback" not in stderr


def test_zookeeper_refuses_a_port_in_use(taken_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("zookeeper", "start", "--port", str(taken_port)) == Exit.USAGE
    assert str(taken_port) in capsys.readouterr().err


def test_detached_zookeeper_says_why_it_did_not_start(taken_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("zookeeper", "start", "--detach", "--port", str(taken_port)) == Exit.USAGE
    stderr = capsys.readouterr().err
    assert str(taken_port) in stderr
    assert "Traceback" not in stderr


def test_broker_refuses_a_port_in_use(chroot: str, taken_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("broker", "--zookeeper", chroot, "--port", str(taken_port)) == Exit.USAGE
    assert f"cannot listen on 127.0.0.1:{taken_port}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["zookeeper", "status"], ["zookeeper", "stop"], ["broker", "status"], ["broker", "stop"]]
)
def test_exit_code_says_that_nothing_was_started(command: list[str]) -> None:
    assert code_of(*command) == Exit.NOT_AS_EXPECTED


def test_a_run_folder_that_cannot_be_created_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert code_of("run", "crash", "--design", "eager", "-o", str(tmp_path / "file")) == Exit.USAGE
    assert f"cannot write the run folder {tmp_path / 'file'}" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a read-only file system")
def test_a_run_folder_that_is_read_only_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "crash", "--design", "eager", "-o", "/proc/runs") == Exit.USAGE
    assert "cannot write the run folder /proc/runs" in capsys.readouterr().err


def test_a_full_disk_is_reported_before_anything_is_started(tmp_path: Path) -> None:
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "comparison.cli.main",
            "run",
            "crash",
            "--design",
            "eager",
            "-q",
            "-o",
            str(tmp_path / "runs"),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
    )
    assert result.returncode == Exit.USAGE, result.stderr
    assert "cannot write the run folder" in result.stderr
    assert "File too large" in result.stderr
    assert "Traceback" not in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("Error: ")]) == 1


def test_a_dry_run_prints_the_plan_and_the_seed_and_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("compare", "--dry-run", "--seed", "5") == Exit.AS_EXPECTED
    output = capsys.readouterr()
    what, where, zookeeper, runs, first, *_, skipped, last = output.out.splitlines()
    assert (what, where) == ("would make 15 runs with seed 5, in about 5 minutes", "results: runs/<time>-compare")
    assert (zookeeper, runs, first) == ("ZooKeeper: embedded", "runs:", "  herd · zookeeper: about 25 s")
    assert (skipped, last) == ("left out:", "  split-brain-ensemble · zookeeper: same run as split-brain")
    assert output.out.count(": about ") == 15
    assert output.err == ""
    assert not (tmp_path / "runs").exists()


def test_a_comparison_shows_its_number_of_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("compare", "--smoke", "--repeat", "3", "--dry-run", "--seed", "5") == Exit.AS_EXPECTED
    output = capsys.readouterr()
    assert "would make 12 runs (3 repeats of 4) with seed 5, in about" in output.out
    assert "crash · eager · seed 7: about" in output.out


@pytest.mark.parametrize("spelling", [["--seed", "7"], ["--seed=7"]])
def test_a_command_with_a_seed_is_repeated_unchanged(spelling: list[str]) -> None:
    command = ["rebalance-lab", "run", "crash", *spelling]
    assert with_seed(command, 7) == (command, 7)


@pytest.mark.parametrize("rest", [[], ["--", "crash"]])
def test_a_command_without_a_seed_is_repeated_with_the_drawn_one(rest: list[str]) -> None:
    command, seed = with_seed(["rebalance-lab", "run", *rest], None)
    assert command == ["rebalance-lab", "run", "--seed", str(seed), *rest]


def test_a_comparison_of_everything_shows_its_duration_and_skipped_combinations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of("compare", "--all", "--dry-run") == Exit.AS_EXPECTED
    output = capsys.readouterr()
    assert "protocol-migration · cooperative: about" in output.out
    assert "protocol-migration · eager: the migration begins with this design" in output.out


def test_a_comparison_takes_any_designs(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("compare", "--smoke", "--design", "static,cooperative", "--dry-run") == Exit.AS_EXPECTED
    titles = [line.strip().split(":")[0] for line in capsys.readouterr().out.splitlines()[4:]]
    assert titles == ["herd · static", "herd · cooperative", "crash · static", "crash · cooperative"]


def test_the_catalogue_is_shown_as_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("scenarios") == Exit.AS_EXPECTED
    assert "split-brain" in capsys.readouterr().out
    assert code_of("scenarios", "pause") == Exit.AS_EXPECTED
    assert "What to look for:" in capsys.readouterr().out
    assert code_of("scenarios", "--format", "json") == Exit.AS_EXPECTED
    assert '"same_run_as"' in capsys.readouterr().out


def test_a_setting_that_only_kafka_has_causes_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "crash", "--dry-run", "-c", "compression.gzip.level=3") == Exit.AS_EXPECTED
    assert (
        "warning: compression.gzip.level is a Kafka setting that rebalance-lab does not implement"
        in capsys.readouterr().err
    )


def test_a_setting_for_one_of_two_designs_causes_a_warning_that_names_the_option_for_both(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert code_of("run", "crash", "--dry-run", "-c", "session.timeout.ms=6000") == Exit.AS_EXPECTED
    assert (
        "warning: session.timeout.ms=6000 applies only to eager: zookeeper does not have it; "
        "--session-timeout sets it in all designs"
    ) in capsys.readouterr().err
    assert code_of("run", "crash", "--dry-run", "--session-timeout", "6000") == Exit.AS_EXPECTED
    assert "warning" not in capsys.readouterr().err


def test_an_unused_number_of_members_causes_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "herd", "join", "--members", "6", "--dry-run") == Exit.AS_EXPECTED
    assert "warning: --members 6 is ignored by herd, which sets its own group sizes" in capsys.readouterr().err


def test_several_scenarios_that_ignore_the_number_of_members_are_named_in_the_plural(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("scenarios", "herd", "--as-file") == Exit.AS_EXPECTED
    copy = tmp_path / "copy.toml"
    copy.write_text(capsys.readouterr().out.replace('name = "herd"', 'name = "mine"'))
    assert code_of("run", "herd", str(copy), "join", "--members", "6", "--dry-run") == Exit.AS_EXPECTED
    assert "--members 6 is ignored by herd, mine, which set their own group sizes" in capsys.readouterr().err


def test_an_interrupt_advises_to_analyse_only_what_there_is(tmp_path: Path) -> None:
    assert after_interrupt(tmp_path) == "interrupted before the first run"
    (tmp_path / "run.json").write_text("{}")
    assert after_interrupt(tmp_path) == f"interrupted; to analyse the traces: rebalance-lab analyze {tmp_path}"


def test_an_option_that_every_scenario_ignores_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("run", "herd", "--members", "6", "--dry-run") == Exit.USAGE
    assert "--members 6 is ignored by herd, which sets its own group sizes. Leave it out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["broker", "--port", "9093", "stop"], "--port would have no effect with `stop`"),
        (["produce", "--topic", "t", "--stdin", "--rate", "3"], "--rate would have no effect with --stdin"),
        (["watch", "--group", "g", "--once", "--interval", "3"], "--interval would have no effect with --once"),
        (["watch", "--group", "g", "--format", "json", "--members"], "--members would have no effect with --format"),
        (["describe", "x", "--format", "json", "--offsets"], "--offsets would have no effect with --format json"),
        (["sweep", "x", "--analyse-only", "--rerun-failed"], "--rerun-failed would have no effect with --analyse-only"),
        (["diagram", "x", "--list", "-o", "y"], "--output would have no effect with --list"),
        (["diagram", "x", "--format", "json"], "--format json is for --list"),
        (
            ["consume", "--design", "zookeeper", "--group", "g", "--topic", "t", "--bootstrap-server", "h:1"],
            "Leave out",
        ),
        (
            ["consume", "--design", "eager", "--group", "g", "--topic", "t", "--zookeeper", "h:1"],
            "Leave out --zookeeper",
        ),
    ],
)
def test_an_option_without_effect_is_refused(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*arguments) == Exit.USAGE
    output = capsys.readouterr()
    assert complaint in output.err
    assert output.out == ""


def test_an_internal_error_is_one_line_with_its_traceback_in_a_file(tmp_path: Path) -> None:
    program = (
        "import tempfile, sys; tempfile.tempdir = sys.argv[1]\n"
        "import comparison.cli.main as cli\n"
        "cli.cli = None\n"
        "cli.main(['scenarios'])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=30, check=False
    )
    assert result.returncode == Exit.INTERNAL
    assert result.stderr.startswith("Error: internal error: AttributeError")
    (kept,) = tmp_path.glob("rebalance-lab-*.txt")
    assert "Traceback" in kept.read_text()
