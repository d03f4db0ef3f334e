"""What a sync before the reads promises, over hand-written traces of a member that joins at a server that lags."""

from __future__ import annotations

import json
from typing import Any

import pytest

from comparison.pipeline.figures.assemble import assemble
from comparison.pipeline.figures.judging import judge
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.pipeline.gold.run import measure
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import FirstAttempt, Run
from comparison.scenarios.plan.catalogue import CATALOGUE
from tests.support.runs.results import change, run
from tests.support.trace.traces import e, tables, traced_run

YES, NO, UNKNOWN = VerdictOutcome.EXPECTED, VerdictOutcome.NOT_EXPECTED, VerdictOutcome.UNKNOWN
SYNCED = {"fix.sync.before.reads": "true"}
LAG = [{"fault": "delay", "target": "follower->ensemble", "by_ms": 1500, "ways": "in"}]


def attempt(process: str, at_ms: int, outcome: str, *, waits_ms: int, syncs: int = 2) -> list[dict[str, Any]]:
    """An attempt whose two phases of reading begin with a sync, and take so long."""
    member = {"member": f"{process}-id", "stream": 0}
    join_ms, end_ms = at_ms + waits_ms + 10, at_ms + 2 * waits_ms + 20
    answered = [(at_ms + waits_ms, "/brokers/ids"), (join_ms + waits_ms, "/consumers/g/ids")][:syncs]
    return [
        e(at_ms, process, "phase_entered", phase="detect", attempt=1, **member),
        e(at_ms + waits_ms, process, "phase_entered", phase="stop", attempt=1, **member),
        e(join_ms, process, "phase_entered", phase="join", attempt=1, **member),
        e(join_ms + waits_ms, process, "phase_entered", phase="decide", attempt=1, **member),
        *(
            e(ms, process, "zk_op", op="sync", path=path, ok=True, step="R6", member=member["member"])
            for ms, path in answered
        ),
        e(end_ms, process, "attempt_ended", attempt=1, outcome=outcome, **member),
    ]


def judged(
    *attempts: list[dict[str, Any]], settings: dict[str, str] = SYNCED, injected: list[dict[str, Any]] = LAG
) -> Run:
    """A run in which m3 joins at the server that lags after 1 s, and the group settles after 9 s."""
    parameters = {"settings": settings, "injected": injected, "partitions": 6, "topics": 1, "brokers": 2}
    parameters["checks"] = CATALOGUE["stale-view"].checks
    events = [
        e(0, "runner", "run_started", parameters=json.loads(json.dumps(parameters))),
        e(1_000, "runner", "change_started", change="join-behind", round=1, members=4, detail={"target": "m3"}),
        *(event for each in attempts for event in each),
        e(9_000, "runner", "change_settled", change="join-behind", round=1, members=4),
        e(10_000, "runner", "run_ended", outcome="complete"),
    ]
    traced = traced_run(scenario="stale-view")
    measured, _ = measure(traced, tables(sorted(events, key=lambda event: event["t_ns"])))
    return judge(assemble(traced, measured))


def verdict(of: Run, check: str) -> tuple[VerdictOutcome, str]:
    (found,) = [each for each in of.verdicts if each.check == check]
    return found.outcome, found.reason


#: Of a member elsewhere, whose claims meet what is not released yet.
OTHER = attempt("m1", 2_000, "conflict", waits_ms=5)


def test_the_first_attempt_of_the_lagging_member_that_met_no_conflict_keeps_the_promise_and_names_the_price() -> None:
    later = attempt("m3", 6_000, "conflict", waits_ms=1_000)
    outcome, reason = verdict(judged(attempt("m3", 1_500, "ok", waits_ms=1_600), OTHER, later), "knows the group")
    assert outcome is YES
    assert reason == (
        "the first attempt of m3, whose server lags by 1.5 s, met no claim of others; it waited 3.2 s in the two "
        "phases that begin with a sync, the group did not settle, and members sent 6 syncs"
    )


def test_the_price_has_the_time_to_settle_as_the_verdict_on_it_has() -> None:
    first = FirstAttempt(outcome="ok", detect_ms=1_500.0, join_ms=1_600.0)
    behind = change("join-behind", target="m5", converge_ms=8_000.0, target_attempts=1, target_first=first, syncs=1)
    found = run("stale-view", changes=[behind], parameters={"settings": SYNCED, "injected": LAG})
    outcome, reason = verdict(judge(found), "knows the group")
    assert outcome is YES
    assert reason.endswith(
        "waited 3.1 s in the two phases that begin with a sync, the group settled after 8.0 s, and members sent 1 sync"
    )


@pytest.mark.parametrize(
    ("attempts", "injected", "outcome", "expected_reason"),
    [
        ([attempt("m3", 1_500, "conflict", waits_ms=1_600)], LAG, NO, "met claims of others; it waited 3.2 s"),
        ([attempt("m3", 1_500, "error", waits_ms=1_600)], LAG, UNKNOWN, "ended with 'error'"),
        ([OTHER], LAG, UNKNOWN, "no attempt of the member at the server that lags"),
        # Without the lag, a first attempt without a conflict shows nothing.
        ([attempt("m3", 1_500, "ok", waits_ms=700)], LAG, UNKNOWN, "does not show a server that lags by 1.5 s"),
        ([attempt("m3", 1_500, "conflict", waits_ms=700)], LAG, UNKNOWN, "does not show a server that lags"),
        ([attempt("m3", 1_500, "ok", waits_ms=1_600)], [], UNKNOWN, "does not show a server that lags by 0 s"),
        ([attempt("m3", 1_500, "ok", waits_ms=1_600, syncs=0)], LAG, UNKNOWN, "members sent 0 syncs; that does not"),
    ],
)
def test_the_promise_is_broken_by_a_conflict_and_unknown_without_the_lag(
    attempts: list[list[dict[str, Any]]], injected: list[dict[str, Any]], outcome: VerdictOutcome, expected_reason: str
) -> None:
    found, reason = verdict(judged(*attempts, injected=injected), "knows the group")
    assert (found, expected_reason in reason) == (outcome, True), reason


def test_without_the_sync_the_conflict_is_expected_instead() -> None:
    found = judged(attempt("m3", 1_500, "conflict", waits_ms=5, syncs=0), OTHER, settings={})
    assert verdict(found, "claims conflict")[0] is YES
    assert "knows the group" not in {each.check for each in found.verdicts}


def test_the_catalogues_variant_is_judged_by_the_promise_and_not_by_the_fault() -> None:
    for name, expected in (("stale-view", {"claims conflict"}), ("stale-view-synced", {"knows the group"})):
        scenario = CATALOGUE[name]
        checks = {check.name for check in CHECKS if check.judges("zookeeper", scenario.checks, dict(scenario.settings))}
        assert checks & {"claims conflict", "knows the group"} == expected
