"""What the terminal says of a result first: a screenful, whatever there is to say."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from rich.console import Console

from comparison.pipeline.analysis import compose
from comparison.pipeline.figures.judging import judge
from comparison.report.brief import LINES_MAX, render_brief
from comparison.results.result import Result
from comparison.results.run import Run
from comparison.scenarios.plan.catalogue import CATALOGUE
from kernel.designs import DESIGN_NAMES
from tests.comparison.report.test_terminal import result
from tests.support.runs.results import change, every_design, run

GOLDEN = Path(__file__).with_name("brief.golden.txt")


def brief(shown: Result, width: int = 80) -> str:
    return render_brief(shown, Console(width=width, force_terminal=False))


def judged(scenario: str, design: str, **given: float) -> Run:
    """A run that is as expected by the checks that judge every scenario."""
    return judge(run(scenario, design, parameters={"checks": []}, **given))


def unbroken(text: str) -> str:
    return " ".join(text.split())


def everything(**given: float) -> Result:
    """A run of each scenario in each design."""
    return compose([judge(run(scenario, design, **given)) for scenario, design in product(CATALOGUE, DESIGN_NAMES)])


def test_first_words_equal_the_recorded_ones() -> None:
    """After an intended change, check the difference and update the golden file."""
    assert brief(result()) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    assert max(map(len, brief(result(), width).splitlines())) <= width


@pytest.mark.parametrize("width", [60, 80, 200])
def test_nothing_makes_it_longer_than_a_screen(width: int) -> None:
    worst = everything(
        lost=1.0, skipped=1.0, stale_writes=1.0, moved_back=1.0, started_behind=1.0, rebalances_failed=1.0,
        stale_deliveries=1.0, pauses_dropped=1.0, left_unnamed=1.0,
    )  # fmt: skip
    for shown in (everything(), worst, every_design(), result()):
        assert brief(shown, width).count("\n") <= LINES_MAX
    text = unbroken(brief(worst, width))
    assert re.search(r" and [2-8] more --details", text)
    assert "all designs broke 9 promises" in text


def test_what_is_in_order_is_counted_and_not_named() -> None:
    runs = [judged(name, design) for name, design in product(("join", "leave"), ("eager", "static"))]
    text = brief(compose(runs))
    assert "join" not in text
    assert "leave" not in text
    assert re.search(r"^ eager +\+ all 2 +\+ kept +0\.3 ", text, re.MULTILINE)


def test_a_broken_promise_has_its_figure_where_there_is_one_scenario_and_its_place_otherwise() -> None:
    lost = judge(run("join", "eager", lost=3.0))
    alone = brief(compose([lost, judge(run("join", "static"))]))
    assert "! every record is delivered: eager (lost: 3)" in alone
    assert "\n\n\n" not in alone
    several = [lost, judge(run("leave", "eager")), *(judge(run(name, "server", lost=1.0)) for name in CATALOGUE)]
    text = unbroken(brief(compose(several)))
    assert f"! every record is delivered: server in {len(CATALOGUE)} scenarios, eager 1" in text


def test_figures_of_scenarios_that_not_all_designs_have_run_are_left_out() -> None:
    runs = [judged("join", "eager", duplicates=1.0), judged("join", "static", duplicates=2.0)]
    text = brief(compose([*runs, judged("leave", "eager", duplicates=70.0, converge_ms=9_000.0)]))
    assert re.search(r"^ eager .* 0\.3 .* 1$", text, re.MULTILINE)
    assert "worst times and summed counts of the 1 scenario run in all designs" in text
    assert "no scenario was run in all designs" in brief(compose([judged("join", "eager"), judged("leave", "static")]))


def test_a_sum_without_an_unknown_figure_is_a_least() -> None:
    runs = [judge(run(name, "eager", converge_ms=ms)) for name, ms in (("join", 300.0), ("leave", None))]
    assert re.search(r"^ eager .* ≥0\.3 ", brief(compose(runs)), re.MULTILINE)


def test_a_run_that_two_scenarios_share_is_summed_up_in_both_and_complete() -> None:
    names = ("split-brain", "split-brain-ensemble")
    others = [judge(run(name, "eager", duplicates=1.0)) for name in names]
    text = brief(compose([judge(run(names[0], "zookeeper", duplicates=5.0)), *others]))
    assert re.search(r"^ zookeeper .* 0\.3 .* 10$", text, re.MULTILINE)
    assert re.search(r"^ eager .* 0\.3 .* 2$", text, re.MULTILINE)


def test_time_to_settle_is_since_the_heal_where_there_is_one_as_in_the_report() -> None:
    healed, not_healed = (
        judge(run(name, "eager", converge_ms=6_709.0, converge_healed_ms=ms))
        for name, ms in (("pause", 1_709.0), ("crash", None))
    )
    text = brief(compose([healed]))
    assert "settled, s" in text
    assert "after heal" in text
    assert re.search(r"^ eager .* 1\.7 +<0\.1 ", text, re.MULTILINE)
    text = brief(compose([healed, not_healed]))
    assert re.search(r"^ eager .* 6\.7 +<0\.1 ", text, re.MULTILINE)
    assert "worst times (without a heal: since the change)" in unbroken(text)
    assert "heal" not in brief(compose([not_healed]))


def test_what_the_width_leaves_no_room_for_is_named() -> None:
    found = {
        width: "(not shown at this width: stopped, delivered again)" in brief(every_design(), width)
        for width in (60, 80)
    }
    assert found == {60: True, 80: False}


def test_what_a_run_that_was_cut_short_leaves_open_is_said_once() -> None:
    cut = run("join", "eager", outcome="failed", error="m1 is frozen", lost=None)
    text = brief(compose([judge(cut), judge(run("join", "static"))]))
    assert text.count("m1 is frozen") == 1
    assert "? join in eager: the run failed: m1 is frozen" in text
    assert re.search(r"^ eager +\? unknown +\? unknown", text, re.MULTILINE)


def test_the_same_check_of_several_runs_is_one_entry() -> None:
    late: list[Run] = [run("join", design, changes=[change(converge_ms=None)]) for design in ("eager", "static")]
    text = unbroken(brief(compose([judge(each) for each in late])))
    assert "! settles: join in eager and 1 more: partitions stayed unowned" in text
