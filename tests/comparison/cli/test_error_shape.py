"""Every error has one shape, `Error: what was wrong (where). What to do.`, and names what may be meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from comparison.cli.main import COMMANDS
from comparison.exits import Exit
from kernel.suggestions import closest, did_you_mean, placed, unknown, whole_sentences
from tests.support.commands.called import code_of

SCENARIO = """name = "mine"
[[steps]]
step = "form"
"""
#: What is wrong with a user's files, by the name that the command gives.
FILES = {
    "key.toml": f"symptm = 'x'\n{SCENARIO}",
    "step.toml": SCENARIO.replace("form", "from"),
    "setting.toml": f'{SCENARIO}[settings]\n"sesion.timeout.ms" = 1\n',
    "fault.toml": f'{SCENARIO}[[steps]]\nstep = "inject"\nfault = "frezee"\ntarget = "owner"\n',
    "check.toml": f'{SCENARIO}[expectations]\nchecks = ["setles"]\n',
    "several.toml": SCENARIO.replace("form", "from") + '[[steps]]\nstep = "stedy"\n',
    "text.toml": "name = mine",
    "grid.toml": "[grid]\nscenario = 'join'\nmember = 3\n",
    "group.toml": "",
    "grid-key.toml": "seds = 3\n[grid]\nscenario = 'join'\n",
    "preset.toml": f'{SCENARIO}[defaults]\npreset = "equal-timer"\n',
}
#: How a remedy begins, or a rule that says what is possible.
REMEDY = re.compile(r"[.?] [A-Z`].*[.?]$|: must (be|not) |exclude[s]? |cannot be combined|\?$")

#: What a command says before it fails.
NOTE = re.compile(r"warning: |\d+ runs with seed \d+, about ")

#: Commands with a name that does not exist, and the one that is meant.
MEANT = [
    (["comapre"], "compare"),
    (["topic", "creat", "x"], "create"),
    (["zookeeper", "stats"], "status"),
    (["run", "crash", "--membrs", "3"], "--members"),
    (["topic", "create", "x", "--partition", "3"], "--partitions"),
    (["run", "crsh"], "crash"),
    (["compare", "hred"], "herd"),
    (["scenarios", "split-brian"], "split-brain"),
    (["sweep", "--grid", "scenario=jion"], "join"),
    (["sweep", "--grid", "scenario=join", "--grid", "membrs=3"], "members"),
    (["sweep", "--grid", "scenario=join", "--metric", "converge"], "converge_ms"),
    (["sweep", "--grid", "scenario=join", "--metric", "join.round"], "join.rounds"),
    (["run", "crash", "--design", "egaer"], "eager"),
    (["consume", "--design", "coperative", "--group", "g", "--topic", "t"], "cooperative"),
    (["playground", "--design", "zookeper"], "zookeeper"),
    (["playground", "--simulated", "--link", "zoen"], "zone"),
    (["fuzz", "--design", "servr"], "server"),
    (["run", "crash", "--preset", "equal-timer"], "equal-timers"),
    (["run", "crash", "--format", "jsn"], "json"),
    (["run", "crash", "--log-level", "DEBGU"], "debug"),
    (["run", "crash", "-c", "sesion.timeout.ms=1"], "session.timeout.ms"),
    (["broker", "--zookeeper", "127.0.0.1:1", "--set", "brker.id=1"], "broker.id"),
    (["run", "crash", "--design", "zookeeper", "-c", "offsets.storage=zookeper"], "zookeeper"),
    (["run", "crash", "--design", "eager", "-c", "partition.assignment.strategy=rnge"], "range"),
    (["run", "key.toml"], "symptom"),
    (["run", "step.toml"], "form"),
    (["run", "setting.toml"], "session.timeout.ms"),
    (["run", "fault.toml"], "freeze"),
    (["run", "check.toml"], "settles"),
    (["run", "preset.toml"], "equal-timers"),
    (["run", "stpe.toml"], "step.toml"),
    (["sweep", "grid.toml"], "members"),
    (["sweep", "grid-key.toml"], "seeds"),
    (["settings", "sesion.timeout.ms"], "session.timeout.ms"),
    (["settings", "--design", "egaer"], "eager"),
    (["choose", "--design", "egaer"], "eager"),
    (["assign", "-s", "stiky", "--members", "C0", "--topics", "t=1"], "sticky"),
    (["assign", "--members", "C0", "--topics", "orders=1", "--subscribe", "C0=order"], "orders"),
    (["assign", "grop.toml"], "group.toml"),
    (["analyze", "runs/lates"], "runs/latest"),
    (["report", "runs/latest/crsh"], "runs/latest/crash"),
    (["diff", "x", "y", "--worse-than", "converge=20%"], "converge_ms"),
    (["diagram", "runs/latst/crash/eager"], "runs/latest/crash/eager"),
    (["describe", "runs/latest/crash/egaer"], "runs/latest/crash/eager"),
    (["trace", "runs/latest/crash/egaer", "--to", "jsonl"], "runs/latest/crash/eager"),
    (["trace", "runs/latest/crash/egaer"], "runs/latest/crash/eager"),
    *(([command, "latest"], "runs/latest") for command in ("analyze", "describe", "diagram", "report", "trace")),
    (["analyze", "latset"], "runs/latest"),
    (["analyze", "run/latest"], "runs/latest"),
    (["report", "latest/crsh"], "runs/latest/crash"),
    (["diagram", "latest/crash/eager/trace/mm1.jsonl"], "runs/latest/crash/eager/trace/m1.jsonl"),
    (["sweep", "runs/swep-join"], "runs/sweep-join"),
    (["sweep", "grd.toml"], "grid.toml"),
    (["scenarios", "--plugin", "on.py"], "own.py"),
]
#: Other mistakes.
WRONG = """
fly / run / run text.toml / run several.toml / run nowhere.toml / run crash --members 0 / run crash --members many /
run crash --seed -1 / run crash -c session.timeout.ms / run crash -c session.timeout.ms=soon / run crash -c zebra=1 /
run crash --zookeeper somewhere / run crash --zookeeper 127.0.0.1:99999 / run protocol-migration --design eager /
run crash --members 1 / run crash --memory 1 / run crash --zookeeper-log runs / compare --smoke --all /
scenarios --as-file / sweep / sweep --grid members / sweep --grid scenario=join --grid scenario=crash / sweep runs /
analyze . / analyze nothing-* / report runs / diagram runs/latest / trace runs/latest --to jsonl /
trace runs/latest/crash/eager / describe key.toml / broker / broker --port x / watch --group g / produce --topic t /
produce --topic t --bootstrap-server here / consume --design eager --topic t / consume --design eager --group g /
consume --design eager --group g --topic t:0 / consume --design eager --group g --whitelist t( / topic list / assign /
assign --members C0 --topics t / assign --members C0 --topics t=1 --then fly C0 / assign text.toml /
choose --deploys 40/dya / choose --slowest-record 2 / choose --members 0 / settings zebra / fuzz --first 0 /
completion tcsh / completion / doctor --reset / doctor --broker here
"""
CONSUMED = ("--design", "eager", "--group", "g", "--topic", "t")
#: Commands with a path, which is not there.
NOWHERE = [
    *([command, "{}"] for command in ("analyze", "describe", "diagram", "report", "trace", "sweep")),
    ["choose", "--from", "{}"],
    *([command, "{}.toml"] for command in ("run", "compare", "sweep", "assign")),
    ["diff", "{}", "{}"],
    ["run", "crash", "--plugin", "{}.py"],
    ["run", "crash", "--zookeeper", "127.0.0.1:1", "--zookeeper-log", "{}"],
]
SERVERS = [
    ["produce", "--topic", "t", "--bootstrap-server", "127.0.0.1:1"],
    ["topic", "list", "--bootstrap-server", "127.0.0.1:1"],
    ["watch", "--group", "g", "--once", "--bootstrap-server", "127.0.0.1:1"],
    ["run", "crash", "--zookeeper", "127.0.0.1:1"],
]


@pytest.fixture(autouse=True)
def folder_of_files(own_folder: Path) -> None:
    for name, text in FILES.items():
        (own_folder / name).write_text(text)
    (own_folder / "runs" / "one" / "crash" / "eager" / "trace").mkdir(parents=True)
    (own_folder / "runs" / "latest").symlink_to("one")
    (own_folder / "runs" / "sweep-join").mkdir()
    (own_folder / "runs" / "sweep-join" / "sweep-plan.json").write_text("{}")
    (own_folder / "tests").mkdir()
    (own_folder / "own.py").write_text("")


def complaints(arguments: list[str], code: Exit, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The lines of a command that fails, each checked."""
    ended = code_of(*arguments)
    output = capsys.readouterr()
    assert ended == code, output.err
    assert output.out == ""
    assert "Traceback" not in output.err
    lines = [line for line in output.err.splitlines() if not NOTE.match(line)]
    assert lines
    for line in lines:
        assert line.startswith("Error: "), line
        assert not line.startswith("Error: Error"), line
        assert line.endswith((".", "?")), line
        assert not line.endswith(".."), line
        assert REMEDY.search(line), line
    return lines


@pytest.mark.parametrize(("arguments", "meant"), MEANT, ids=[" ".join(arguments) for arguments, _ in MEANT])
def test_an_unknown_name_is_answered_with_the_one_that_may_be_meant(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path("runs/one/crash/eager")
    (run / "run.json").write_text("{}")
    (run / "trace" / "m1.jsonl").write_text("")
    (line,) = complaints(arguments, Exit.USAGE, capsys)
    assert re.search(rf". Did you mean '[^']*{re.escape(meant)}'\?", line), line


@pytest.mark.parametrize("arguments", NOWHERE, ids=" ".join)
def test_path_that_is_not_there_is_called_the_same_in_every_command(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints([each.format("nope") for each in arguments], Exit.USAGE, capsys)
    assert re.match(r"Error: no such file or folder 'nope(\.toml|\.py)?'\. Give ", line), line


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["analyze", "key.toml"], "key.toml is a file, not a folder. Give "),
        (["trace", "key.toml"], "key.toml is a file, not a folder. Give "),
        (["report", "key.toml"], "key.toml is a file, not a folder. Give "),
        (["consume", *CONSUMED, "--trace", "key.toml"], "'key.toml' is a file. See "),
        (["run", "runs/latest"], "runs/latest is a folder, not a file. Give "),
        (["assign", "runs"], "runs is a folder, not a file. Give "),
        (["run", "crash", "--members", "x"], "invalid value for '--members': 'x' is not a valid integer. See "),
        (["fuzz", "--minutes", "x"], "invalid value for '--minutes': 'x' is not a valid float range. See "),
    ],
)
def test_value_of_the_wrong_kind_is_answered_with_what_it_is(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints(arguments, Exit.USAGE, capsys)
    assert complaint in line


@pytest.mark.parametrize("arguments", [["fuzz", "--weigts"], ["doctor", "--foo"], ["run", "crash", "--zebra"]])
def test_option_that_is_like_no_other_is_answered_without_a_guess(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code_of(*arguments)
    line = capsys.readouterr().err.strip()
    assert line == f"Error: no such option {arguments[-1]!r}. See `rebalance-lab {arguments[0]} --help`."


@pytest.mark.parametrize("arguments", [each.split() for each in WRONG.split(" /")], ids=" ".join)
def test_every_error_says_what_was_wrong_and_what_to_do(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = complaints(arguments, Exit.USAGE, capsys)
    assert len(lines) == 1 + ("several.toml" in arguments)


@pytest.mark.parametrize("arguments", SERVERS, ids=" ".join)
def test_error_of_a_server_has_the_same_shape(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = complaints(arguments, Exit.INTERNAL, capsys)
    assert line.count("127.0.0.1") == 1
    assert re.search(r"Error: no (broker|ZooKeeper) (answers|serves) at 127\.0\.0\.1:1[.:]", line)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_an_unknown_option_in_the_same_shape(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = complaints([command, "--hlep"], Exit.USAGE, capsys)
    assert line == (f"Error: no such option '--hlep'. Did you mean '--help'? See `rebalance-lab {command} --help`.")


def test_place_goes_to_the_end_of_what_was_wrong() -> None:
    assert placed("unknown key 'a'. Did you mean 'b'? Use one of b, c", "my.toml, line 3") == (
        "unknown key 'a' (my.toml, line 3). Did you mean 'b'? Use one of b, c"
    )
    assert placed("session.timeout.ms='x': must be a whole number", "my.toml") == (
        "session.timeout.ms='x': must be a whole number (my.toml)"
    )
    assert placed("nothing", "") == "nothing"


def test_names_are_compared_without_their_case() -> None:
    assert closest("CRSH", ["herd", "crash"]) == "crash"
    assert closest("debgu", ["INFO", "DEBUG"]) == "DEBUG"
    assert did_you_mean("zebra", ["herd"]) == ""
    assert unknown("thing", "zebra", ["herd"]) == "unknown thing 'zebra'. Use one of herd"
    assert unknown("thing", "zebra", []) == "unknown thing 'zebra'. There is none"


def test_many_names_are_not_listed() -> None:
    few, many = ([f"{name}-{n:02}" for n in range(size)] for name, size in (("few", 12), ("many", 45)))
    assert unknown("thing", "few-00x", few).endswith(f"Did you mean 'few-00'? Use one of {', '.join(few)}")
    assert unknown("thing", "many-00x", many) == "unknown thing 'many-00x'. Did you mean 'many-00'?"
    assert unknown("thing", "zebra", many) == f"unknown thing 'zebra'. Use one of {', '.join(many[:12])} and 33 more"
    assert unknown("thing", "many-00x", many, hint="See x").endswith("'many-00'? See x")


def test_a_complaint_of_several_lines_becomes_one_sentence() -> None:
    assert whole_sentences("a\n  b") == "a b."
    assert whole_sentences("is it running?") == "is it running?"


def test_one_module_alone_looks_for_names_that_are_alike() -> None:
    root = Path(__file__).parents[3]
    packages = ("kernel", "zkconsumer", "coordinator", "comparison", "rebalance_lab")
    found = [path for package in packages for path in (root / package).rglob("*.py") if "difflib" in path.read_text()]
    assert found == [root / "kernel" / "suggestions.py"]
