"""Which promises a run kept: from its figures and verdicts, never against them."""

from __future__ import annotations

from typing import Any

import pytest

from comparison.pipeline.analysis import compose
from comparison.pipeline.figures.judging import judge
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.results.promised import PROMISES
from comparison.results.promises import PromiseOutcome, by_design, over, promises_of, summary, title
from comparison.results.run import Added, Run
from kernel.designs import DESIGN_NAMES
from tests.support.runs.results import change, refused, run, skipped

KEPT, BROKEN, UNKNOWN, NOT_ASKED = PromiseOutcome
DELIVERED, SKIPPED, ONE, OWNER, BACK, GOES_ON, OWNED, GIVES_UP, GETS_IN, PAUSED = (each.name for each in PROMISES)

#: Of each fault that a design is known for, the promises that it breaks; with none it is a price.
BREAKS = {
    "refused for good": (GETS_IN,),
    "no common strategy": (GETS_IN,),
    "zombie commits": (OWNER, BACK),
    "two members deliver": (ONE,),
    "old offsets used": (GOES_ON,),
    "skips what came meanwhile": (SKIPPED,),
    "forgets where it was": (SKIPPED,),
    "pauses dropped": (PAUSED,),
    "gives up": (GIVES_UP,),
    "owner znodes deleted": (OWNED,),
    **dict.fromkeys(
        (
            *("claims conflict", "nobody takes over", "waits for the slow member", "early return does not help"),
            *("waits for the dead member", "its place is gone", "given away after the delay"),
            *("missed although healthy", "copied twice", "idle member stops the others", "each rebalances"),
            *("unnoticed for minutes", "stands still though owned", "slow listener stops all", "stands still"),
            *("everybody rebalances", "storm", "outlives the silence"),
        ),
        (),
    ),
}
#: Of a run in which a member's tries end before the session of the killed one.
SHORT_TRIES: dict[str, Any] = {
    "changes": [change("kill")],
    "parameters": {
        "timers": {"session_ms": 6_000},
        "member_settings": {"rebalance.max.retries": 4, "rebalance.backoff.ms": 100},
    },
}
#: Runs that show these faults.
SHOWING: list[tuple[str, Run]] = [
    ("zombie commits", run("pause", stale_writes=3.0, moved_back=1.0)),
    ("two members deliver", run("pause", two_delivering_partition_s=1.5)),
    ("two members deliver", run("pause", stale_deliveries=2.0)),
    ("old offsets used", run("topic-recreated", "server", old_offsets_used=4.0, changes=[change("delete-topic")])),
    ("skips what came meanwhile", run("uncommitted-reset", "eager", skipped=5.0, skips=[skipped()])),
    ("forgets where it was", run("expired-offsets", "eager", skipped=5.0, skips=[skipped(committed=3)])),
    ("gives up", run("rebalance-failed", **SHORT_TRIES, rebalances_failed=1.0, attempts_failed=4.0)),
    ("pauses dropped", run("paused-partition", "eager", pauses_dropped=2.0)),
    ("refused for good", run("group-full", "zookeeper", refusals=[refused("m5", "SOME_ERROR")])),
]


def outcomes(of: Run) -> dict[str, PromiseOutcome]:
    return {each.promise.name: each.outcome for each in promises_of(of)}


def broken(of: Run) -> list[str]:
    return [name for name, outcome in outcomes(of).items() if outcome is BROKEN]


def judged(*args: Any, **given: Any) -> Run:
    return judge(run(*args, **given))


def test_each_fault_that_a_design_is_known_for_breaks_a_promise_or_is_a_price() -> None:
    assert {check.name for check in CHECKS if check.kind is Kind.HISTORY} == BREAKS.keys()


@pytest.mark.parametrize(("fault", "shows"), SHOWING, ids=[fault for fault, _ in SHOWING])
def test_a_fault_that_shows_as_the_model_says_breaks_its_promises(fault: str, shows: Run) -> None:
    shown = judge(shows)
    (verdict,) = [each for each in shown.verdicts if each.check == fault]
    assert (verdict.kind, verdict.outcome) == (Kind.HISTORY, VerdictOutcome.EXPECTED)
    assert set(BREAKS[fault]) <= set(broken(shown))


def test_promises_know_the_checks_that_they_include() -> None:
    promised = {check.name for check in CHECKS if check.kind is Kind.PROMISE}
    assert {name for promise in PROMISES for name in promise.checks} <= promised


def test_a_run_that_keeps_all_asks_for_all_but_pauses() -> None:
    kept = judged("join", "eager")
    assert outcomes(kept) == {each.name: KEPT for each in PROMISES} | {PAUSED: NOT_ASKED}
    assert summary(promises_of(kept)) == "kept"


def test_a_record_in_hand_that_a_crash_loses_is_as_expected_and_lost() -> None:
    crashed = judged("crash", changes=[change("crash")], lost=1.0)
    assert {each.check: each.outcome for each in crashed.verdicts}["no record lost"] == VerdictOutcome.EXPECTED
    assert broken(crashed) == [DELIVERED]
    assert promises_of(crashed)[0].shown == "lost: 1"


def test_a_broken_promise_of_a_design_breaks_the_one_that_includes_it() -> None:
    late = judged("join", "eager", changes=[change(converge_ms=None)])
    assert broken(late) == [OWNED]
    unread = Added(partitions=6, owned=4, delivered=4, delivered_ms=None, parts={})
    assert broken(run("join", "eager", changes=[change("partition-increase", added=unread)])) == [OWNED]


def test_a_member_that_is_refused_has_not_given_up() -> None:
    told = [refused("m1", asked=2), refused("m2")]
    assert broken(judged("strategy-change-in-one-bounce", "eager", refusals=told, rebalances_failed=3.0)) == [GETS_IN]
    assert GIVES_UP in broken(judged("join", "eager", refusals=told, rebalances_failed=4.0))


def test_a_limit_that_somebody_has_set_refuses_members_without_breaking_a_promise() -> None:
    full = judged("group-full", "eager", refusals=[refused("m5", "GROUP_MAX_SIZE_REACHED")])
    assert outcomes(full)[GETS_IN] is NOT_ASKED
    unasked = judged("join", "eager", refusals=[refused("m5", "GROUP_MAX_SIZE_REACHED")])
    assert outcomes(unasked)[GETS_IN] is BROKEN


def test_nothing_is_kept_in_a_run_that_was_cut_short_and_what_broke_is_broken() -> None:
    cut = judged("pause", outcome="interrupted", moved_back=2.0, lost=None)
    assert outcomes(cut) == {each.name: UNKNOWN for each in PROMISES} | {BACK: BROKEN, PAUSED: NOT_ASKED}
    assert summary(promises_of(cut)) == "broke 1 of 9, 8 unknown"


def test_a_trace_with_problems_says_nothing() -> None:
    damaged = judged("pause", problems=["m1.jsonl: 3 lines are missing"], moved_back=2.0)
    assert set(outcomes(damaged).values()) == {UNKNOWN}
    assert summary(promises_of(damaged)) == "unknown"


def test_what_a_trace_does_not_show_is_unknown() -> None:
    assert outcomes(judged("join", stale_writes=None, commit_requests=9.0))[OWNER] is UNKNOWN
    assert outcomes(judged("join", stale_writes=None, commits=None))[OWNER] is NOT_ASKED


def test_repeats_break_what_one_of_them_breaks() -> None:
    runs = [judged("pause", seed=seed, moved_back=float(seed == 3)) for seed in (1, 2, 3)]
    (found,) = [each for each in over(runs) if each.outcome is BROKEN]
    assert (found.promise.name, found.shown) == (BACK, "in 1 of 3 runs, the first: offsets moved back: 1")
    (scenario,) = compose(runs).scenarios
    assert summary(by_design(scenario, compose(runs))["zookeeper"]) == "broke 1 of 9"


def expected(scenario: str, design: str, **given: Any) -> Run:
    verdict = given.pop("verdict", VerdictOutcome.EXPECTED)
    return run(scenario, design, verdict=verdict, **given)


UNJUDGED = VerdictOutcome.UNKNOWN
ZOMBIE = {"moved_back": 3.0, "stale_writes": 3.0}
TITLES: list[tuple[list[Run], str]] = [
    ([expected("join", "eager")], "the run is as the model says; every promise kept"),
    ([expected("pause", "zookeeper", **ZOMBIE)], "the run is as the model says; it broke 2 of 8 promises"),
    (
        [expected("join", "eager", verdict=VerdictOutcome.NOT_EXPECTED)],
        "the run is not as the model says; every promise kept",
    ),
    (
        [expected("pause", "zookeeper", **ZOMBIE), expected("pause", "eager"), expected("pause", "static")],
        "all 3 runs as the model says; zookeeper broke 2 promises that the others keep",
    ),
    (
        [expected("pause", "zookeeper", **ZOMBIE), expected("pause", "eager", stale_writes=None, verdict=UNJUDGED)],
        "1 of 2 runs as the model says, 1 unknown; zookeeper broke 2 promises, 1 of which the others keep",
    ),
    (
        [expected("pause", "zookeeper", **ZOMBIE), expected("split-brain", "zookeeper", lost=1.0)],
        "both runs as the model says; zookeeper broke 3 promises",
    ),
    (
        [
            expected("pause", "zookeeper", **ZOMBIE, stale_deliveries=9.0),
            expected("pause", "server", stale_deliveries=2.0),
            expected("pause", "eager"),
        ],
        "all 3 runs as the model says; zookeeper broke 2 promises that the others keep; zookeeper and server broke 1 "
        "promise",
    ),
    (
        [expected("uncommitted-reset", design, skipped=5.0) for design in DESIGN_NAMES],
        "all 7 runs as the model says; all designs broke 1 promise",
    ),
    (
        [
            expected("pause", "zookeeper", **ZOMBIE, verdict=VerdictOutcome.NOT_EXPECTED),
            *(expected(name, design, lost=1.0) for name, design in (("join", "eager"), ("pause", "static"))),
            expected("join", "server", skipped=1.0),
            expected("join", "zookeeper", skipped=1.0),
            expected("leave", "consumer", rebalances_failed=1.0, lost=1.0),
        ],
        "5 of 6 runs as the model says, 1 not; zookeeper broke 3 promises, 2 of which the others keep, consumer 2, the "
        "others 1",
    ),
    (
        [expected("join", design, outcome="failed", verdict=UNJUDGED) for design in ("zookeeper", "eager")],
        "none of 2 runs as the model says, 2 unknown; no promise was seen to break, but some are unknown",
    ),
]


@pytest.mark.parametrize(("runs", "said"), TITLES, ids=[said for _, said in TITLES])
def test_title_says_whether_the_model_was_right_and_who_broke_what(runs: list[Run], said: str) -> None:
    assert title(compose(runs)) == said
