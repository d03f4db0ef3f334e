"""Some runs of a result, or several results, are a result: indexes and verdicts follow."""

from __future__ import annotations

from comparison.pipeline.analysis import compose
from comparison.report.summaries.chosen import of_scenario, only, together
from comparison.results.outcomes import VerdictOutcome
from tests.support.runs.results import every_design, joins, run


def test_only_some_runs_keep_their_scenarios_and_verdicts() -> None:
    runs = [
        run("crash", "eager", seed=1, verdict=VerdictOutcome.EXPECTED),
        run("crash", "zookeeper", seed=1, verdict=VerdictOutcome.NOT_EXPECTED),
        run("join", "eager", seed=1, verdict=VerdictOutcome.EXPECTED),
    ]
    result = compose(runs)
    chosen = only(result, lambda each: each.design == "eager")
    assert [each.scenario for each in chosen.runs] == ["crash", "join"]
    assert [(each.scenario, each.runs) for each in chosen.scenarios] == [("crash", [0]), ("join", [1])]
    assert (result.verdict, chosen.verdict) == ("not as expected", "as expected")


def test_of_one_scenario_nothing_is_shown_that_belongs_to_another() -> None:
    runs = [run("split-brain", "zookeeper"), run("split-brain-ensemble", "eager"), *every_design().runs]
    reasons = every_design().not_applicable
    result = compose(runs, reasons)
    assert [0, 1] in [each.runs for each in result.scenarios], "both have the run of zookeeper"
    chosen = only(result, lambda each: each.scenario == "split-brain")
    assert [(each.scenario, each.runs) for each in chosen.scenarios] == [("split-brain", [0])]
    assert chosen.not_applicable == []
    assert only(result, lambda each: each.scenario == "slow-member").not_applicable == reasons


def test_repeats_are_kept_whole_or_not_at_all() -> None:
    runs = [run("crash", design, seed=seed) for design in ("eager", "static") for seed in (1, 2)]
    result = compose(runs)
    (repeated,) = only(result, lambda each: each.design == "static").repeated
    assert (repeated.design, repeated.runs) == ("static", [0, 1])
    assert only(result, lambda each: each.seed == 1).repeated == []


def test_growths_follow_their_runs() -> None:
    result = compose([run("crash", "eager"), joins("zookeeper"), joins("eager")])
    chosen = only(result, lambda each: each.design == "eager")
    figures = [(each.change, each.figure) for each in chosen.growths]
    assert len(set(figures)) == len(figures) > 1
    assert {(each.design, *each.runs) for each in chosen.growths} == {("eager", 1)}
    both = together([every_design(), chosen, chosen])
    assert [(each.change, each.figure) for each in both.growths] == figures
    assert {(each.design, *each.runs) for each in both.growths} == {("eager", 14)}


def test_several_results_are_one_in_their_order() -> None:
    one = compose([run("crash", "eager", seed=seed, path=f"/runs/crash/eager/seed-{seed}") for seed in (1, 2)])
    found = together([every_design(), one])
    assert len(found.runs) == 15
    assert found.scenarios[-1].runs == [13, 14]
    (repeated,) = found.repeated
    assert repeated.runs == [13, 14]
    assert len(found.not_applicable) == 1
    assert together([one]) == one


def test_scenario_is_shown_with_the_run_that_it_shares_with_another_one() -> None:
    """`report RUN/split-brain-ensemble` said that every promise was kept: zookeeper, which broke three, was missing."""
    names = ("split-brain", "split-brain-ensemble", "split-brain")
    runs = [run(name, design) for name, design in zip(names, ("zookeeper", "eager", "eager"), strict=True)]
    result = compose(runs)
    one, other = (of_scenario(result, each) for each in result.scenarios)
    assert [(each.scenario, each.runs) for each in other.scenarios] == [("split-brain-ensemble", [0, 1])]
    assert [(each.scenario, each.design) for each in other.runs] == [
        ("split-brain", "zookeeper"),
        ("split-brain-ensemble", "eager"),
    ]
    both = together([one, other])
    assert len(both.runs) == len(runs), "the run of zookeeper is there once"
    assert [each.runs for each in both.scenarios] == [[0, 1], [0, 2]]
