"""`choose`: what is asked, what is printed at any width, exit codes, own sweeps, and the page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from comparison.choosing.choice import EVENTS
from comparison.choosing.costs import MEASURES
from comparison.cli.choose import choose
from comparison.exits import Exit
from comparison.results.sweep import SWEEP_DATA
from comparison.run_folder import write_json
from kernel.designs import DESIGN_NAMES
from tests.support.commands.called import code_of, output_of
from tests.support.runs.sweeps import data_of, plan_of, result_of

DAY = ("--deploys", "40/day", "--members", "12", "--partitions", "48", "--slowest-record", "2s")

pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_answer_fits_the_screen_with_a_row_for_each_design(columns: int) -> None:
    said = output_of(choose, *DAY, columns=columns)
    assert max(cell_len(line) for line in said.splitlines()) <= columns
    blocks = {line.split()[0] for line in said.splitlines() if line and line.split()[0] in DESIGN_NAMES}
    assert blocks == set(DESIGN_NAMES)
    text = " ".join(said.split())
    assert "all: figures from rolling-restart, crash, join, slow-record-2s with 8 or 16 members and 24 or 96 " in text
    assert "- consumer: group.protocol=consumer" in text
    assert text.startswith(
        "A week of 12 members with 48 partitions and 200 records/s, slowest record 2 s: 280 deploys, 1 crash, "
        "1 slow join. Tolerated: anything."
    )
    assert "Choose " in text
    assert "Left out: - live machines" in text


def test_command_that_is_printed_gives_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--crashes", "2/month", "--tolerated-repeats", "1000/day", "--tolerated-standstill", "30s")
    assert code_of("choose", *DAY, *given, "--format", "json") == Exit.AS_EXPECTED
    found = msgspec.json.decode(capsys.readouterr().out)
    again = found["command"].split()[1:]
    assert code_of(*again, "--format", "json") == Exit.AS_EXPECTED
    assert msgspec.json.decode(capsys.readouterr().out) == found
    assert all(f"--{each.name}" in again for each in EVENTS)
    assert [each["design"] for each in found["designs"]] == list(DESIGN_NAMES)
    for design in found["designs"]:
        assert design["figures"].keys() == {each.metric for each in MEASURES}
        assert all(figure["runs"] > 0 for figure in design["figures"].values())


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (("--tolerated-standstill", "1h"), Exit.AS_EXPECTED, "Choose "),
        (("--tolerated-standstill", "1ms"), Exit.NOT_AS_EXPECTED, "No design of today's consumers meets"),
        (("--members", "100"), Exit.UNKNOWN, "deploys: members 100 is not within"),
        (("--slowest-record", "1h"), Exit.UNKNOWN, "slow-joins: slowest record, s: 3600 is not within"),
    ],
)
def test_exit_code_says_whether_a_design_meets_what_is_tolerated(given: tuple[str, ...], code: Exit, said: str) -> None:
    text = " ".join(output_of(choose, *DAY, *given, code=code).split())
    assert said in text
    assert ("This sweep would answer it" in text) is (code == Exit.UNKNOWN)
    assert (text.count("cannot say") >= len(DESIGN_NAMES)) is (code == Exit.UNKNOWN)


def test_no_design_is_chosen_that_only_perhaps_meets_what_is_tolerated() -> None:
    given = ("--tolerated-repeats", "0/week", "--tolerated-standstill", "2s")
    text = " ".join(output_of(choose, *given, code=Exit.UNKNOWN).split())
    assert "Cannot say which to choose: in the way are longest standstill (2 tolerated" in text
    assert "Choose " not in text
    assert "1 run of each scenario, design and size, with seed 1" in text


def test_how_often_has_its_unit(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("choose", "--deploys", "40") == Exit.USAGE
    assert "'40' is not a number with /hour, /day, /week, /month, /year, such as 40/day" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "given", "complaint"),
    [
        ("--html", "no/c.html", "cannot write no/c.html: No such file or directory. Choose another with --html"),
        ("--html", "", "cannot write .: Is a directory. Choose another with --html"),
        ("--rate", "nan", "invalid value for '--rate': 'nan' is not a number"),
        ("--design", "eager,raft", "unknown design 'raft'. Use one of "),
    ],
)
def test_value_that_cannot_be_used_is_named(
    option: str, given: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("choose", option, given) == Exit.USAGE
    assert complaint in capsys.readouterr().err


def test_page_is_written_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to("choice.html")
    output_of(choose, "--html", "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert "What to choose" in (tmp_path / "choice.html").read_text()


@pytest.fixture
def own_sweep(tmp_path: Path) -> Path:
    """Of one scenario in two designs; one is worse, and its name is an attempt to be more than text."""
    plan = plan_of("scenario=leave", "design=eager,consumer", "members=2,4", "partitions=8,16", seeds=2, simulated=True)
    data = data_of(
        plan,
        lambda run: result_of(
            {
                each.metric: (2.0 if run.cell.design == "eager" else 1.0) + run.seed
                for each in MEASURES
                if each.metric != "authority_requests"
            }
        ),
    )
    folder = tmp_path / "own<b>"
    folder.mkdir()
    write_json(folder / SWEEP_DATA, data)
    return folder


def test_own_sweep_replaces_the_kept_table(own_sweep: Path) -> None:
    given = ("--deploys", "0", "--crashes", "0", "--slow-joins", "0", "--leaves", "2/week", "--members", "3")
    said = output_of(choose, *given, "--partitions", "8", "--from", own_sweep, columns=200)
    assert "Cannot say which of eager, consumer to choose." in said
    assert f"--from '{own_sweep}'" in said
    rows = [line.split() for line in said.splitlines() if line.startswith(("eager", "consumer"))]
    assert [row[:3] for row in rows[:2]] == [["eager", "3.5", "7"], ["consumer", "2.5", "5"]]
    assert "cannot say: leaves: not known of every run of leave" in said  # the requests, of which there are none


def test_what_is_left_out_is_that_of_the_runs(own_sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = own_sweep / SWEEP_DATA
    made = msgspec.json.decode(path.read_bytes())
    timers = {"name": "session-timeout", "values": [45000], "numeric": True}
    write_json(path, made | {"simulated": False, "axes": [*made["axes"], timers]})
    assert code_of("choose", "--leaves", "1/week", "--from", own_sweep, "--format", "json") == Exit.UNKNOWN
    live = msgspec.json.decode(capsys.readouterr().out)["left_out"]
    assert live[0].startswith("timers other than those of the runs: sessions of 45 s, and of 10 s in deploys")
    assert code_of("choose", "--format", "json") == Exit.AS_EXPECTED
    kept = msgspec.json.decode(capsys.readouterr().out)["left_out"]
    assert [each.partition(":")[0] for each in kept if each not in live] == [
        "live machines and networks",
        "timers other than those of the runs",
        "what chance does",
    ]


def test_a_design_that_is_given_twice_has_one_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("choose", "--design", "consumer,eager", "--design", "eager", "--format", "json") == Exit.AS_EXPECTED
    found = msgspec.json.decode(capsys.readouterr().out)
    assert [each["design"] for each in found["designs"]] == ["eager", "consumer"]
    assert found["command"].endswith(" --design eager,consumer")
    assert code_of("choose", "--design", "all", "--format", "json") == Exit.AS_EXPECTED
    assert [each["design"] for each in msgspec.json.decode(capsys.readouterr().out)["designs"]] == list(DESIGN_NAMES)


def test_own_sweep_without_the_event_cannot_say(own_sweep: Path) -> None:
    said = output_of(choose, "--members", "3", "--partitions", "8", "--from", own_sweep, code=Exit.UNKNOWN, columns=200)
    assert "all: cannot say: deploys: no run of rolling-restart" in said


def test_page_has_the_same_answer_and_escapes_what_it_is_given(own_sweep: Path, tmp_path: Path) -> None:
    given = ("--deploys", "0", "--crashes", "0", "--slow-joins", "0", "--leaves", "2/week", "--members", "3")
    output_of(choose, *given, "--partitions", "8", "--from", own_sweep, "--html", "choice.html")
    page = (tmp_path / "choice.html").read_text()
    assert "Cannot say which of eager, consumer to choose." in page
    assert "own&lt;b&gt;" in page
    assert "<b>" not in page


def test_a_design_that_is_not_advised_does_not_make_the_exit_code() -> None:
    """`zookeeper` repeats fewest here, and no consumer of today has it."""
    text = " ".join(output_of(choose, "--tolerated-repeats", "47/week", code=Exit.UNKNOWN).split())
    assert "surely met by zookeeper" in text
    assert code_of("choose", "--tolerated-repeats", "47/week", "--design", "zookeeper") == Exit.AS_EXPECTED
