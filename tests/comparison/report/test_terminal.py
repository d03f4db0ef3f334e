"""The terminal report: its text in 80 columns, without colour and without a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from comparison.pipeline.analysis import compose
from comparison.pipeline.figures.judging import judge
from comparison.report.terminal import render
from comparison.results.result import Result
from comparison.results.run import Overlap, Run
from kernel.designs import DESIGN_NAMES
from tests.support.runs.results import change, counted, every_design, run

GOLDEN = Path(__file__).with_name("terminal.golden.txt")


def herd(design: str) -> Run:
    costs = {
        "zookeeper": [[counted("reads", 61, 61), counted("notifications", 2, 2)], [counted("reads", 112, 111)]],
        "eager": [[counted("JoinGroup", 4, 4), counted("SyncGroup", 3, 3)], [counted("JoinGroup", 7, 7)]],
    }[design]
    changes = [
        change("form", members=2, moved=0),
        change(round=1, members=3, counted=costs[0], converge_ms=1_234.5),
        change(round=2, members=6, counted=costs[1], attempts_failed=1),
    ]
    reads = 173.0 if design == "zookeeper" else 0.0
    waited = {
        f"bystander_{op}_{stage}_{share}_ms": ms + 0.25 * (op == "set") + 30.0 * (stage == "during" and reads > 0)
        for op in ("get", "set")
        for stage in ("before", "during")
        for share, ms in (("p50", 0.5), ("p99", 4.0))
    }
    counts = {"zk_reads": reads, "notifications": reads and 7.0, "converge_ms": 1_234.5}
    return run("herd", design, changes=changes, **counts, **waited)


def result() -> Result:
    overlap = Overlap(
        view="delivering", topic="orders", partition=3, from_ms=12_431.2, until_ms=14_020.0, owners=["m1/a/0", "m7/b/0"]
    )
    runs = [
        herd("zookeeper"),
        herd("eager"),
        run(
            "pause", "zookeeper", stale_writes=3.0, moved_back=2.0, two_delivering_partition_s=1.25, overlaps=[overlap]
        ),
        run("pause", "eager", outcome="interrupted", lost=None, failures=["m1: no broker answers"]),
    ]
    return compose([judge(each) for each in runs])


def rendered(shown: Result, *, width: int = 80) -> str:
    return render(shown, Console(width=width, force_terminal=False))


def test_report_equals_the_recorded_one() -> None:
    """After an intended change, check the difference and update the golden file."""
    assert rendered(result()) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    assert max(map(len, rendered(result(), width=width).splitlines())) <= width


def test_unknown_figure_is_a_dash_without_a_ratio() -> None:
    lines = [line.split() for line in rendered(result()).splitlines() if line.strip().startswith("lost")]
    assert lines == [["lost", "0", "0"], ["lost", "0", "-"]]


def test_one_of_a_kind_is_named_in_the_singular() -> None:
    alone = run("join", "eager", parameters={"members": 1, "partitions": 12, "brokers": 1})
    assert "\n1 member, 12 partitions, 1 broker, seed" in rendered(compose([judge(alone)]))


def test_traces_cannot_inject_markup_into_the_report() -> None:
    evil = compose([judge(run("join", "eager", failures=["m1: [bold red]alarm[/] [link=x]y[/link]"]))])
    assert "[bold red]alarm[/] [link=x]y[/link]" in rendered(evil)


def test_rolling_restart_shows_its_costs_side_by_side() -> None:
    text = rendered(every_design())
    rows = [line.split() for line in text.splitlines()]
    assert ["eager", "10", "108", "46", "13.90", "0", "1,800"] in rows
    assert ["static", "0", "0", "0", "13", "0", "1,100"] in rows
    assert "but no less unowned time" in " ".join(text.split())


def test_settings_for_only_some_designs_cause_one_warning_above_the_figures() -> None:
    warning = "session.timeout.ms=6000 applies only to eager"
    runs = [run("crash", design, parameters={"warnings": [warning], "rate": 5}) for design in ("zookeeper", "eager")]
    assert rendered(compose(runs)).count(f"warning: {warning}") == 1


def test_slow_member_shows_who_waited_and_what_was_delivered() -> None:
    text = rendered(every_design())
    assert "  eager        ▄▄▄▄▄▄▄▄▄▄____________________▄▄▄▄▄▄▄▄▄▄\n" in text
    assert "m2 is slow; 3 members waited 5.0 s for m2; nothing delivered for 4.80 s" in " ".join(text.split())


def test_scenario_that_is_not_applicable_has_a_reason() -> None:
    text = " ".join(rendered(every_design()).split())
    assert "not applicable: slow-member in server: no member is slow" in text
    assert "protocol-migration" not in text


@pytest.mark.parametrize("width", [80, 160])
def test_every_design_fit_on_the_screen(width: int) -> None:
    text = rendered(every_design(), width=width)
    assert max(map(len, text.splitlines())) <= width
    (header,) = [line for line in text.splitlines() if line.split() == list(DESIGN_NAMES)]
    assert header


def test_report_needs_no_spark() -> None:
    code = "import sys; import comparison.report.terminal; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_first_line_of_a_failed_run_says_why_and_nothing_else_repeats_it() -> None:
    failures = ["m1: no broker answers", "m2: no broker answers", "m1: no broker answers"]
    failed = run("join", "eager", outcome="failed", error="m1 is frozen", lost=None, failures=failures)
    lines = rendered(compose([judge(failed), judge(run("join", "zookeeper"))])).splitlines()
    assert lines[0].startswith("join  ? unknown ")
    assert lines[1] == "eager: the run failed: m1 is frozen"
    assert "\n".join(lines).count("m1 is frozen") == 1
    assert [line.strip() for line in lines if "no broker" in line] == [
        "an error reached the application: m1, m2: no broker answers"
    ]
