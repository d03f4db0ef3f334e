"""Verdicts: promises, historical faults and counts, by design and scenario."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from comparison.own_scenarios import why_not_judged
from comparison.pipeline.figures.judging import judge
from comparison.pipeline.figures.unpromised import UNPROMISED
from comparison.pipeline.figures.verdicts import CHECKS
from comparison.results.outcomes import VerdictOutcome, worst
from comparison.results.run import Counter, Term
from comparison.scenarios.plan.catalogue import CATALOGUE, judged_by
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form
from tests.comparison.pipeline.figures.judged import (
    NO,
    PARAMETERS,
    UNKNOWN,
    YES,
    assert_verdict,
    beside,
    rows_of,
    verdict_on,
    verdicts_on,
)
from tests.support.runs.results import change, counted, run


def checks_of(scenario: str, design: str) -> set[str]:
    return {f"{check.kind}: {check.name}" for check in CHECKS if check.covers(run(scenario, design))}


EVERYWHERE = {f"promise: {name}" for name in ("no record lost", "final offsets", "settles", "nobody is refused")}
IN_BROKER_DESIGNS = EVERYWHERE | {"promise: no offset moved back", "promise: no stale write"}
FENCED = IN_BROKER_DESIGNS | {"promise: old commits refused"}
SPLIT = EVERYWHERE | {"history: zombie commits", "history: two members deliver"}
ONE_OWNER = "promise: never owned by two members"
COUNTED = {"model: counts"}
COUNTERS = {"model: server's counters"}


@pytest.mark.parametrize(
    ("scenario", "zookeeper", "eager"),
    [
        ("herd", EVERYWHERE | COUNTED | COUNTERS, IN_BROKER_DESIGNS | COUNTED),
        ("split-brain", SPLIT, FENCED),
        ("split-brain-ensemble", SPLIT, IN_BROKER_DESIGNS | {"promise: old coordinator silenced"}),
        ("crash", EVERYWHERE | {"promise: no offset moved back"} | COUNTED, IN_BROKER_DESIGNS | COUNTED),
        ("pause", SPLIT, FENCED),
        ("zombie-commit", SPLIT | {"promise: no write of an ended session"}, FENCED),
        ("stale-view", EVERYWHERE | {"history: claims conflict", ONE_OWNER}, IN_BROKER_DESIGNS | {ONE_OWNER}),
        ("join", EVERYWHERE | COUNTED | COUNTERS, IN_BROKER_DESIGNS | COUNTED),
        ("leave", EVERYWHERE | COUNTED, IN_BROKER_DESIGNS | COUNTED),
        ("mass-start", EVERYWHERE, IN_BROKER_DESIGNS),
        ("playground", EVERYWHERE - {"promise: settles"}, IN_BROKER_DESIGNS - {"promise: settles"}),
    ],
)
def test_checks_of_a_scenario(scenario: str, zookeeper: set[str], eager: set[str]) -> None:
    assert checks_of(scenario, "zookeeper") == zookeeper
    assert checks_of(scenario, "eager") == eager


def checks_given(design: str, **parameters: Any) -> set[str]:
    """The checks of a run of a scenario that only its own file knows."""
    judged = run("mine", design, parameters={**run("mine", design).parameters, **parameters})
    return {f"{check.kind}: {check.name}" for check in CHECKS if check.covers(judged)}


def test_a_scenario_of_a_file_is_judged_by_what_holds_everywhere() -> None:
    assert checks_given("zookeeper") == EVERYWHERE
    assert checks_given("eager") == IN_BROKER_DESIGNS


@pytest.mark.parametrize("like", ["split-brain", "crash", "pause"])
def test_a_scenario_that_is_like_ours_is_judged_as_ours(like: str) -> None:
    mine = Scenario(name="mine", symptom="", look_for=(), steps=(Form(),), like=like)
    for design in ("zookeeper", "eager"):
        assert checks_given(design, checks=judged_by(mine)) == checks_of(like, design)


def test_checks_that_a_file_names_are_added_in_the_designs_that_they_are_about() -> None:
    named = ["never owned by two members", "no offset moved back"]
    assert checks_given("eager", checks=named) == IN_BROKER_DESIGNS | {ONE_OWNER}
    assert checks_given("zookeeper", checks=named) == EVERYWHERE | {ONE_OWNER, "promise: no offset moved back"}
    verdicts = [verdict.check for verdict in judge(run("mine", "eager", parameters={"checks": named})).verdicts]
    assert sorted(verdicts) == sorted(set(verdicts))


def test_a_check_that_is_decided_in_several_ways_is_decided_as_in_the_scenario_that_it_is_like() -> None:
    assert "Say which with like = NAME, one of split-brain, " in why_not_judged("zombie commits", "")
    assert why_not_judged("zombie commits", "pause") == ""
    assert "Did you mean 'settles'? `rebalance-lab scenarios --steps`" in why_not_judged("setles", "")
    named = (*judged_by(CATALOGUE["pause"]), "zombie commits")
    ways = [each.decide for each in CHECKS if each.name == "zombie commits" and each.judges("zookeeper", named)]
    assert len(ways) == 1


def test_a_scenario_about_refusals_is_judged_by_them_and_not_by_that_there_are_none() -> None:
    given = checks_given("eager", checks=["refused for good"])
    assert given == IN_BROKER_DESIGNS - {"promise: nobody is refused"} | {"history: refused for good"}


def test_every_check_that_a_row_of_the_catalogue_names_is_one_of_the_table() -> None:
    known = {check.key or check.name for check in CHECKS} | {each.key for each in UNPROMISED}
    named = {name for each in CATALOGUE.values() for name in each.checks}
    assert named <= known
    assert {check.key or check.name for check in CHECKS if not check.everywhere} <= named, "a check of no scenario"


FENCE = {"fix.commit.fence": "session"}
KEPT = {"promise: no stale write", "promise: no offset moved back"}


@pytest.mark.parametrize(
    ("scenario", "settings", "checks"),
    [
        ("pause", {"fix.commit.fence": "none"}, SPLIT),
        ("pause", FENCE, EVERYWHERE | KEPT | {"history: two members deliver"}),
        ("split-brain", FENCE, EVERYWHERE | KEPT | {"history: two members deliver"}),
        ("zombie-commit", FENCE, EVERYWHERE | KEPT | {"history: two members deliver"}),
        ("stale-view", {"fix.sync.before.reads": "true"}, EVERYWHERE | {"promise: knows the group", ONE_OWNER}),
        ("pause", {**FENCE, "fix.stop.on.disconnect": "true"}, EVERYWHERE | KEPT),
        ("split-brain", {"fix.stop.on.disconnect": "true"}, SPLIT),
        ("leave", {"fix.checked.release": "true"}, EVERYWHERE),
        ("leave", {"fix.checked.release": "false", "fix.quiet.ms": "0"}, EVERYWHERE | COUNTED),
    ],
)
def test_fix_turns_a_historical_fault_into_a_promise(scenario: str, settings: dict[str, str], checks: set[str]) -> None:
    fixed = run(scenario, "zookeeper", parameters={"settings": settings})
    assert {f"{check.kind}: {check.name}" for check in CHECKS if check.covers(fixed)} == checks


def term(broker: int, from_ms: float, **given: Any) -> Term:
    usual = {"group": "g", "broker": f"broker-{broker}", "leader_epoch": 0, "from_ms": from_ms, "commits": 9}
    return Term(**{**usual, "last_ms": from_ms + 100.0, "late": False, **given})


BROKE_OFF = {"outcome": "failed", "error": "time limit of 30 s reached", "drained": False}
INTERRUPTED = {"outcome": "interrupted", "drained": False}

#: The cut lasts from 1 s to 11 s.
FIRST, SECOND = term(2, 0.0), term(1, 4_200.0, leader_epoch=1)
CUT = change("cut", members=None, healed_ms=10_000.0, takeover_ms=3_500.0)
BEHIND = change("join-behind", target="m5", attempts=12, attempts_failed=3, target_attempts=2, unowned_longest_s=4.2)
CONFLICT = replace(BEHIND, target_conflicts=1)
LONG = change("cut", healed_ms=12_000.0, takeover_ms=12_900.0)
COUNTER = Counter(label="join-1", namespace="consumers", reads=True, server=5, traced=5, traced_min=5, traced_max=5)
OFF_BY_ONE = Counter(label="j", namespace="c", reads=False, server=6, traced=5, traced_min=4, traced_max=5)
UNDER_WAY = Counter(label="join-1", namespace="consumers", reads=False, server=5, traced=4, traced_min=4, traced_max=6)


VERDICTS = {
    ("no record lost", "crash", "eager"): [
        ({}, YES, "0 lost"),
        ({"lost": 1.0}, NO, "1 record lost"),
        ({"lost": None}, UNKNOWN, "no numbered record"),
    ],
    ("no record lost", "crash", "zookeeper"): [
        ({"lost": 1.0, "changes": [change("crash")]}, YES, "the one in hand"),
        ({"lost": 2.0}, NO, "2 records lost"),
    ],
    ("no record lost", "join", "zookeeper"): [({"lost": 1.0}, NO, "1 record lost")],
    ("final offsets", "crash", "eager"): [
        ({"final_read": 12.0}, YES, "12 final offsets, each as last committed"),
        ({"final_read": 12.0, "final_behind": 1.0}, NO, "1 behind the last"),
        ({"final_read": 12.0, "commits": None}, UNKNOWN, "no commit was traced"),
    ],
    ("final offsets", "crash", "zookeeper"): [({"final_read": 12.0, "final_beyond": 2.0}, NO, "2 beyond the end")],
    ("settles", "join", "eager"): [
        ({}, YES, "within 300 ms (slowest: join to 5)"),
        ({"changes": [change(converge_ms=None)]}, NO, "after join to 5"),
        ({"changes": [change("form")]}, UNKNOWN, "no change was made"),
    ],
    ("no offset moved back", "crash", "zookeeper"): [
        ({"moved_back": 1.0, "moved_back_records": 9.0}, NO, "by 9 records")
    ],
    ("no offset moved back", "crash", "eager"): [({"moved_back": None}, UNKNOWN, "no commit was traced")],
    ("no stale write", "pause", "eager"): [
        ({"stale_writes": 2.0}, NO, "2 commits accepted"),
        ({"stale_writes": None}, UNKNOWN, "was traced"),
    ],
    ("old commits refused", "pause", "eager"): [
        ({"fenced": 3.0}, YES, "3 refused"),
        ({"dropped": 3.0}, YES, "3 dropped"),
        ({}, UNKNOWN, "none was tried"),
        ({"fenced": 3.0, "old_accepted": 1.0}, NO, "1 commit with an old"),
    ],
    ("zombie commits", "pause", "zookeeper"): [
        ({"stale_writes": 1.0, "moved_back": 1.0}, YES, "nothing fences"),
        ({"stale_writes": 1.0}, NO, "at least 1 and 1"),
    ],
    ("zombie commits", "split-brain", "zookeeper"): [
        ({"stale_writes": 1.0, "moved_back": 1.0}, NO, "at least 2"),
        ({"stale_writes": 2.0, "moved_back": 1.0}, YES, "2 commits"),
        ({"stale_writes": 1.0, "moved_back": 3.0}, YES, "3 offsets"),
        ({"stale_writes": 0.0, "moved_back": 3.0}, NO, "at least 2"),
    ],
    ("two members deliver", "pause", "zookeeper"): [
        ({"two_delivering_partition_s": 0.3}, YES, "0.3 partition-seconds"),
        ({"stale_deliveries": 5.0}, YES, "5 records"),
        ({}, NO, "0 partition-seconds"),
        ({"two_delivering_partition_s": None}, UNKNOWN, "no delivery"),
    ],
    ("no write of an ended session", "zombie-commit", "zookeeper"): [
        ({"of_ended_sessions": 0.0, "stale_writes": 2.0}, YES, "none in a session"),
        ({"of_ended_sessions": 1.0, "stale_writes": 2.0}, NO, "1 commit stored"),
        ({"of_ended_sessions": 0.0}, UNKNOWN, "no zombie committed"),
        ({"of_ended_sessions": None}, UNKNOWN, "expired no session"),
    ],
    ("two members deliver", "split-brain", "zookeeper"): [
        ({"two_delivering_longest_s": 6.0, "changes": [CUT]}, YES, "10.0 s"),
        ({"two_delivering_longest_s": 3.0, "changes": [CUT]}, NO, "3.0 s"),
        ({"two_delivering_longest_s": 6.0}, UNKNOWN, "does not show the cut"),
    ],
    ("claims conflict", "stale-view", "zookeeper"): [
        ({"changes": [CONFLICT]}, YES, "1 of 2 attempts of m5, whose"),
        ({"changes": [BEHIND]}, NO, "0 of 2 attempts of m5"),
        ({"changes": [change("join-behind")]}, UNKNOWN, "no attempt of the member at the server that lags"),
        ({}, UNKNOWN, "does not show the members that joined"),
    ],
    ("nobody takes over", "double-owner-no-broker", "zookeeper"): beside(
        {"parameters": {"timers": {"session_ms": 3000}}},
        (
            {"changes": [LONG], "unowned_authority_partition_s": 27.0},
            YES,
            "27.0 partition-seconds without an owner in a cut of 12.0 s; nobody took anything over",
        ),
        ({"changes": [LONG], "unowned_authority_partition_s": 0.5}, NO, "0.5 partition-seconds"),
        (
            {"changes": [replace(LONG, takeover_ms=3500.0)], "unowned_authority_partition_s": 1.5},
            NO,
            "others took over after 3.5 s",
        ),
        (
            {"changes": [replace(LONG, healed_ms=2000.0)], "unowned_authority_partition_s": 1.5},
            UNKNOWN,
            "too short for a session to end",
        ),
        ({}, UNKNOWN, "does not show the cut"),
    ),
    ("counts", "join", "eager"): [
        ({"changes": [change(counted=[counted("JoinGroup", 6, 6)])]}, YES, "6 JoinGroup"),
        ({"changes": [change(counted=[counted("JoinGroup", 7, 6)])]}, NO, "7 JoinGroup inst"),
        ({}, UNKNOWN, "the model covers no change"),
    ],
    ("server's counters", "join", "zookeeper"): [
        ({"counters": [COUNTER]}, YES, "5 reads and 0 writes, as traced"),
        ({"counters": [UNDER_WAY]}, YES, "except for 1 in progress"),
        ({}, UNKNOWN, "were not read"),
        ({"counters": [OFF_BY_ONE]}, NO, "j c writes: 6 counted, 5 traced"),
    ],
    ("old coordinator silenced", "split-brain-ensemble", "eager"): beside(
        {"changes": [CUT]},
        (
            {"coordinators": [FIRST, SECOND], "misdirected": 4.0},
            YES,
            "broker-1 (leader epoch 1) took over from broker-2",
        ),
        ({"coordinators": [FIRST, SECOND]}, YES, "after 3.2 s and accepted 9 commits, broker-2 none after"),
        ({"coordinators": [FIRST, SECOND, term(2, 12_000.0, leader_epoch=2)]}, YES, "broker-1 (leader epoch 1) took"),
        ({"coordinators": [term(2, 0.0, late=True), SECOND]}, NO, "broker-2 (leader epoch 0) was still accepting"),
        ({"coordinators": [term(2, 0.0, late=True), SECOND], **INTERRUPTED}, NO, "was still accepting"),
        ({"coordinators": [FIRST, SECOND], "old_accepted": 1.0}, NO, "1 commit with an old generation"),
        ({"coordinators": [FIRST, term(1, 4_200.0, commits=0)]}, NO, "made no progress"),
        ({"coordinators": [FIRST, term(1, 4_200.0, commits=0)], **INTERRUPTED}, UNKNOWN, "made no progress"),
        ({"coordinators": [FIRST]}, UNKNOWN, "broker-2 (leader epoch 0) kept the group"),
        ({"coordinators": [FIRST, term(1, 12_000.0)]}, UNKNOWN, "kept the group during the cut"),
        ({"coordinators": [FIRST, term(2, 4_200.0)]}, UNKNOWN, "kept the group"),
        ({"coordinators": [FIRST, SECOND], "changes": []}, UNKNOWN, "does not show the cut"),
        ({"coordinators": [FIRST, SECOND], **INTERRUPTED}, UNKNOWN, "the run was interrupted"),
        ({}, UNKNOWN, "no takeover"),
    ),
}


@pytest.mark.parametrize(("design", "checked"), [("eager", False), ("zookeeper", True)])
def test_counts_of_members_with_several_streams_are_not_checked_without_a_prediction(
    design: str, checked: bool
) -> None:
    parameters = {"members": 4, "partitions": 12, "topics": 1, "streams": 2, "brokers": 2}
    judged = judge(run("join", design, parameters=parameters))
    assert ("counts" in {verdict.check for verdict in judged.verdicts}) is checked
    assert judge(run("herd", "eager", parameters=parameters)).verdict is YES


@pytest.mark.parametrize(
    ("given", "expected_reason"),
    [
        ({"outcome": "interrupted"}, "the run was interrupted"),
        ({"outcome": "failed", "error": "no broker"}, "the run failed; as recorded"),
        ({"outcome": ""}, "does not say how the run ended"),
        ({"problems": ["m1.jsonl has 2 torn lines"]}, "m1.jsonl has 2 torn lines"),
    ],
)
def test_promise_kept_in_a_doubtful_trace_is_unknown(given: dict[str, Any], expected_reason: str) -> None:
    judged = judge(run("mass-start", "eager", **given))
    assert {verdict.outcome for verdict in judged.verdicts} == {UNKNOWN}
    assert all(expected_reason in verdict.reason for verdict in judged.verdicts)


def test_torn_line_that_a_kill_excuses_leaves_no_doubt() -> None:
    assert judge(run("crash", "eager", quarantined={"torn": 1})) == replace(
        judge(run("crash", "eager")), quarantined={"torn": 1}
    )


NOT_YET = change(converge_ms=None, settled_ms=None, counted=[counted("JoinGroup", 3, 6)])


#: Only what a run shows that was cut short is held against it, or for it; the rest is unknown.
CUT_SHORT = {
    ("settles", "join", "eager"): [
        ({"changes": [NOT_YET], **INTERRUPTED}, UNKNOWN, ""),
        ({"changes": [NOT_YET], **BROKE_OFF}, UNKNOWN, ""),
        ({"changes": [NOT_YET], "problems": ["m1.jsonl lacks 2 sequence numbers"]}, UNKNOWN, ""),
        ({"changes": [NOT_YET]}, NO, ""),
    ],
    ("counts", "join", "eager"): [({"changes": [NOT_YET], **BROKE_OFF}, UNKNOWN, ""), ({"changes": [NOT_YET]}, NO, "")],
    ("server's counters", "join", "zookeeper"): [({"counters": [OFF_BY_ONE], **INTERRUPTED}, UNKNOWN, "")],
    ("zombie commits", "pause", "zookeeper"): [
        (INTERRUPTED, UNKNOWN, ""),
        ({"stale_writes": 1.0, "moved_back": 1.0, **BROKE_OFF}, YES, ""),
    ],
    ("zombie commits", "split-brain", "zookeeper"): [({"stale_writes": 1.0, **BROKE_OFF}, UNKNOWN, "")],
    ("two members deliver", "pause", "zookeeper"): [(BROKE_OFF, UNKNOWN, "")],
    ("two members deliver", "split-brain", "zookeeper"): [({"changes": [CUT], **BROKE_OFF}, UNKNOWN, "")],
    ("old commits refused", "pause", "eager"): [(BROKE_OFF, UNKNOWN, ""), ({"old_accepted": 1.0, **BROKE_OFF}, NO, "")],
    ("no record lost", "crash", "eager"): [
        ({"lost": None, **INTERRUPTED}, UNKNOWN, ""),
        ({"lost": 4.0, "problems": ["m1.jsonl lacks 1 sequence number"]}, UNKNOWN, ""),
        ({"lost": 4.0, "outcome": "failed"}, NO, ""),
    ],
    ("no stale write", "pause", "eager"): [({"stale_writes": 1.0, **BROKE_OFF}, NO, "")],
    ("no offset moved back", "crash", "zookeeper"): [({"moved_back": 1.0, **INTERRUPTED}, NO, "")],
}


@pytest.mark.parametrize(PARAMETERS, [*rows_of(VERDICTS), *rows_of(CUT_SHORT)])
def test_verdict(judged: tuple[str, str, str], given: Any, outcome: VerdictOutcome, reason: str) -> None:
    assert_verdict(judged, given, outcome, reason)


def test_final_offsets_are_not_checked_in_a_run_that_did_not_read_them() -> None:
    assert "final offsets" not in verdicts_on("join", "eager")


def test_reason_of_an_unknown_verdict_says_what_the_run_did_not_come_to() -> None:
    _, reason = verdict_on("settles", "join", "eager", changes=[NOT_YET], **BROKE_OFF)
    assert reason == "the run ended before the group had settled after join to 5"


@pytest.mark.parametrize(
    ("outcomes", "whole"), [([YES, YES], YES), ([YES, UNKNOWN], UNKNOWN), ([UNKNOWN, NO, YES], NO), ([], UNKNOWN)]
)
def test_overall_verdict_is_the_worst_one(outcomes: list[VerdictOutcome], whole: VerdictOutcome) -> None:
    assert worst(outcomes) is whole
