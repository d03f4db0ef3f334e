"""`--simulated`: the result says what it is, and is judged as any other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from comparison.exits import Exit
from tests.support.commands.called import code_of
from tests.support.runs.cells import LOW_RATE


@pytest.mark.usefixtures("without_spark")
def test_simulated_runs_are_judged_and_say_what_they_are(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    given = ("run", "crash", "split-brain", "--design", "zookeeper", "--simulated", "--seed", "7", "-o", "runs")

    assert code_of(*given, "--rate", LOW_RATE, "-v") == Exit.AS_EXPECTED

    stdout = capsys.readouterr().out
    assert "simulated, 4 members, 12 partitions" in stdout
    assert stdout.count("zookeeper  + as expected") == 2
    assert "69 reads (=)" in stdout  # the members read as often as those of a real run
    # The cut lasts 10 s, and the takeover comes after a session of 3 s: as in real runs.
    assert re.search(r"two members delivered one partition for [5-9]\.\d s", " ".join(stdout.split()))
    page = (own_folder / "runs" / "latest" / "report.html").read_text(encoding="utf-8")
    assert "simulated: virtual time, a modelled network and a modelled ZooKeeper" in page


def test_a_dry_run_names_the_clock_and_the_zookeeper(capsys) -> None:
    given = ("run", "crash", "--design", "eager", "--simulated", "--dry-run", "--seed", "7")
    assert code_of(*given) == Exit.AS_EXPECTED
    assert capsys.readouterr().out.splitlines()[2:4] == ["ZooKeeper: modelled", "clock: simulated"]

    for more, expected in ((), ("modelled", "simulated")), (("--zookeeper", "docker:3"), ("docker:3", "monotonic")):
        options = [each for each in given if not more or each != "--simulated"]
        assert code_of(*options, *more, "--format", "json") == Exit.AS_EXPECTED
        plan = json.loads(capsys.readouterr().out)
        assert (plan["zookeeper"], plan["clock"]) == expected


def test_links_of_real_processes_are_refused(capsys) -> None:
    assert code_of("run", "crash", "--link", "zone") == Exit.USAGE
    assert "--link zone has no effect on real processes. Add --simulated, or leave it out" in capsys.readouterr().err


def test_links_are_part_of_the_plan_and_what_is_none_is_refused(capsys) -> None:
    command = ("run", "crash", "--design", "eager", "--simulated", "--dry-run", "--format", "json")

    assert code_of(*command, "--link", "member-broker=1ms±0.5", "--link", "zone") == Exit.AS_EXPECTED
    (planned,) = json.loads(capsys.readouterr().out)["runs"]
    assert planned["parameters"]["links"] == "zone,member-broker=1ms+-0.5"

    assert code_of(*command, "--link", "loopback") == Exit.AS_EXPECTED
    (planned,) = json.loads(capsys.readouterr().out)["runs"]
    assert "links" not in planned["parameters"]

    assert code_of(*command, "--link", "zoen") == Exit.USAGE
    assert "unknown --link 'zoen'. Did you mean 'zone'?" in capsys.readouterr().err


def test_a_simulated_run_takes_no_other_zookeeper(capsys) -> None:
    assert code_of("run", "crash", "--simulated", "--zookeeper", "docker") == Exit.USAGE
    assert "--simulated runs on a modelled ZooKeeper: leave out --zookeeper docker" in capsys.readouterr().err
