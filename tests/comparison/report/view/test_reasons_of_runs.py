"""What simulated runs say about why partitions stood still or had two readers, held against what the analysis found."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping

import pytest

from comparison.report.view.model import Reason, RunView
from comparison.report.view.runs import read_views
from comparison.results.run import Run
from comparison.scenarios.plan.links import DEFAULT
from kernel.designs import CONSUMER, COOPERATIVE, EAGER, ZOOKEEPER
from tests.support.runs.cells import LOW_RATE
from tests.support.runs.seen_runs import analysed_inline

SCENARIOS = ("crash", "pause", "split-brain", "slow-member", "rolling-restart", "brokers-rolling")
DESIGNS = (ZOOKEEPER, EAGER, COOPERATIVE, CONSUMER)
#: A standstill of this length is one that somebody asks about.
LONG_S = 1.0
#: Words of which a chain has one, for the cause with the largest share by the analysis.
WORDS = {
    "frozen": "was frozen",
    "slow record": "took long over a record",
    "no owner": "was killed|ended the session of|left|joined the group|noticed that it had lost",
    "rebalance": "joined the group|began to wait|rebalanced|left|began a rebalance|took long over a record|was cut off",
    "no leader": "broker-[0-9.]+ was|could not fetch",
    "fetch refused": "broker-[0-9.]+ was|could not fetch",
    "fault": "was cut off",
}
Runs = Mapping[tuple[str, str], tuple[Run, RunView]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("told")
    arguments: list[str] = []
    for scenario in SCENARIOS:
        for design in DESIGNS:
            arguments += [str(folder / scenario / design), scenario, design, "7", DEFAULT, str(LOW_RATE), "--"]
    command = [sys.executable, "-m", "tests.support.runs.one_simulated_run", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result = analysed_inline(folder)
    views = read_views(result, folder)
    return {
        (run.scenario, run.design): (run, view)
        for run, view in zip(result.runs, views, strict=True)
        if view is not None
    }


def longest(view: RunView, what: str) -> Reason:
    return max((each for each in view.reasons if re.search(what, each.text)), key=lambda each: each.length_ms)


@pytest.mark.parametrize("design", DESIGNS)
def test_partitions_of_a_crashed_member_wait_for_the_end_of_its_session(runs: Runs, design: str) -> None:
    _, view = runs["crash", design]
    (fault,) = view.faults
    told = longest(view, "Nobody delivered")
    authority = "ZooKeeper" if design == ZOOKEEPER else "the coordinator"
    found = re.search(
        rf"{fault.target} was killed at 0\.0 s; {authority} ended the session of {fault.target} (\d\.\d) s later",
        told.text,
    )
    assert found, told.text
    assert 2.0 <= float(found[1]) <= 3.3  # the timeout is 3 s, since its last sign of life
    assert re.search(r"(m\d was|the new owners were) assigned \w+ ", told.text)


@pytest.mark.parametrize("design", DESIGNS)
def test_partitions_of_a_frozen_member_wait_too_and_without_a_fence_it_goes_on_when_it_wakes(
    runs: Runs, design: str
) -> None:
    _, view = runs["pause", design]
    (fault,) = view.faults
    assert f"{fault.target} was frozen at 0.0 s;" in longest(view, "Nobody delivered").text
    both = [each for each in view.reasons if "both delivered" in each.text and each.length_ms >= 1_000 * LONG_S]
    assert bool(both) == (design == ZOOKEEPER)
    for each in both:
        assert re.search(rf"{fault.target} woke up, and went on with what it had \d\.\d s later", each.text)


def test_late_commit_in_the_name_of_a_frozen_member_is_the_runners(runs: Runs) -> None:
    _, view = runs["pause", COOPERATIVE]
    (fault,) = view.faults
    assert fault.healed_ms is not None
    refused = [each for lane in view.partitions for each in lane.commits if not each.is_accepted]
    during = [each.member == fault.target and each.at_ms < fault.healed_ms for each in refused]
    assert any(during)
    assert [each.is_by_runner for each in refused] == during


@pytest.mark.parametrize("design", [ZOOKEEPER, CONSUMER])
def test_two_deliver_because_the_one_that_was_cut_off_was_not_told(runs: Runs, design: str) -> None:
    _, view = runs["split-brain", design]
    (fault,) = view.faults
    told = longest(view, "both delivered")
    assert re.search(
        rf"{fault.target} was cut off at 0\.0 s; .* ended the session of {fault.target} \d\.\d s later; .* assigned "
        rf".*; {fault.target} (gave \w+ up|noticed that it had lost \w+) \d+\.\d s later\.$",
        told.text,
    ), told.text


def test_everybody_waits_for_a_slow_member_where_rebalances_have_a_barrier(runs: Runs) -> None:
    _, view = runs["slow-member", EAGER]
    told = longest(view, "the owners gave them up")
    (slow,) = view.faults
    assert re.search(
        rf"{slow.target} took long over a record at 0\.0 s; m5 joined the group .*; the rebalance began to wait for "
        rf"{slow.target} .*; the new owners were assigned them 4\.\d s later\.",
        told.text,
    ), told.text


@pytest.mark.parametrize("design", DESIGNS)
def test_restarts_are_told_by_who_left_and_who_came(runs: Runs, design: str) -> None:
    _, view = runs["rolling-restart", design]
    texts = [each.text for each in view.reasons if each.from_ms >= view.zero_ms - 500]
    assert any(re.search(r"m1 left ", text) for text in texts)
    assert any("m1.2 joined the group at " in text for text in texts)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_killed_broker_is_behind_what_could_not_be_fetched(runs: Runs, design: str) -> None:
    _, view = runs["brokers-rolling", design]
    told = longest(view, "Nobody delivered")
    assert re.search(r"broker-1\.2 was killed .*could not fetch \w+ \(\w+\) .*took \w+ over", told.text), told.text


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("design", DESIGNS)
def test_long_standstills_of_the_analysis_are_told_with_a_cause_that_fits(
    runs: Runs, scenario: str, design: str
) -> None:
    run, view = runs[scenario, design]
    for each in run.standstills:
        if each.until_ms - each.from_ms < 1_000 * LONG_S:
            continue
        name = f"{each.topic}-{each.partition}"
        covering = [
            reason
            for reason in view.reasons
            if name in reason.partitions
            and reason.from_ms <= each.from_ms + 1
            and reason.until_ms >= each.until_ms - 1
            and reason.text.startswith("Nobody")
        ]
        assert covering, (name, each)
        main = max((cause for cause in each.causes if cause != "unknown"), key=lambda cause: each.causes[cause])
        assert any(re.search(WORDS[main], reason.text) for reason in covering), (main, [one.text for one in covering])
