"""Judgements of hand-written traces: each promise broken once, and what cannot be judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.fuzzing.judging import Judgement, Outcome, judge_folder
from tests.support.trace.judged_run import END, KEPT, NAMED, PARAMETERS, cleared, named, wrote
from tests.support.trace.traces import e, write_run


def judged(folder: Path, *more: dict[str, Any], without: str = "", log: str = "", design: str = "eager") -> Judgement:
    """The judgement of `KEPT` with further events, without those of one kind."""
    events = sorted([*(each for each in KEPT if each["kind"] != without), *more], key=lambda each: each["t_ns"])
    run = write_run(folder / "run", events, scenario="fuzz", design=design)
    if log:
        (run / "m1.log").write_text(log)
    return judge_folder(run)


def test_a_run_that_kept_every_promise(tmp_path: Path) -> None:
    judgement = judged(tmp_path)
    assert (judgement.outcome, judgement.in_words()) == (Outcome.HELD, "")
    assert judgement.counts["delivered"] == 10
    assert judgement.counts["commits"] == 1


@pytest.mark.parametrize(
    ("more", "check", "reason"),
    [
        (wrote(400, 10, "g_m1", 1), "no stale write", "1 commit accepted from a member that was not the owner"),
        (wrote(400, 3, "g_m2", 2), "no offset moved back", "1 offset moved back, by 7 records"),
        (
            e(151, "runner", "records_acked", p=0, first=10, last=10, serial_first=10, serial_last=10),
            "no record lost",
            "1 record lost",
        ),
        (named(400, "g_m1", 2), "never two owners", "t-0 of g_m2 and g_m1 in generation 2"),
        (
            e(400, "runner", "process_ended", target="m2", how="itself", code=3),
            "no process ends by itself",
            "m2 ended with exit code 3",
        ),
        (
            e(940, "runner", "process_ended", target="m2", how="stop", code=1),
            "no process ends by itself",
            "m2 ended with exit code 1",
        ),
    ],
)
def test_a_broken_promise(tmp_path: Path, more: dict[str, Any], check: str, reason: str) -> None:
    judgement = judged(tmp_path, more)
    assert judgement.outcome is Outcome.VIOLATED
    assert reason in {each.check: each.reason for each in judgement.violations}[check]
    assert check in judgement.broken


@pytest.mark.parametrize(("setting", "is_broken"), [("true", True), ("false", False)])
def test_an_owner_node_that_is_gone_is_a_broken_promise_of_checked_releases_alone(
    tmp_path: Path, setting: str, is_broken: bool
) -> None:
    started = e(0, "runner", "run_started", parameters={**PARAMETERS, "settings": {"fix.checked.release": setting}})
    more = (started, cleared(400, "g_m2", 2), e(850, "runner", "stage_entered", stage="drain"))
    judgement = judged(tmp_path, *more, without="run_started", design="zookeeper")
    assert ("owner nodes kept" in judgement.broken) == is_broken


def test_a_killed_process_is_nobodys_crash(tmp_path: Path) -> None:
    assert judged(tmp_path, e(400, "runner", "process_ended", target="m2", how="kill", code=-9)).violations == ()


def test_the_next_generation_may_name_another_owner_and_the_next_broker_the_same_one(tmp_path: Path) -> None:
    again = e(400, "broker-2", "authority_named", **NAMED, owner="g_m2", epoch=2)
    assert judged(tmp_path, again).violations == ()


def test_a_traceback_in_a_log_is_told_with_its_exception(tmp_path: Path) -> None:
    log = "all is well\nTraceback (most recent call last):\n  File x, line 1\n    f()\nKeyError: 'a'\n"
    (violation,) = judged(tmp_path, log=log).violations
    assert violation == ("no traceback", "m1: KeyError: 'a'")


def test_a_group_that_does_not_settle_after_the_last_heal(tmp_path: Path) -> None:
    freeze = {"fault": "freeze", "target": "m1"}
    judgement = judged(
        tmp_path,
        e(310, "runner", "fault_started", **freeze),
        e(400, "runner", "fault_ended", **freeze),
        e(998, "runner", "run_ended", outcome="failed", error=END),
        without="run_ended",
    )
    assert [each.check for each in judgement.violations] == ["settles"]
    assert END in judgement.in_words()


def test_a_group_that_does_not_settle_while_a_fault_is_in_effect_is_unknown(tmp_path: Path) -> None:
    judgement = judged(
        tmp_path,
        e(310, "runner", "fault_started", fault="freeze", target="m1"),
        e(998, "runner", "run_ended", outcome="failed", error=END),
        without="run_ended",
    )
    assert (judgement.outcome, judgement.in_words()) == (Outcome.UNKNOWN, END)


def test_members_that_have_joined_for_good_are_no_fault_in_effect(tmp_path: Path) -> None:
    judgement = judged(
        tmp_path,
        e(310, "runner", "fault_started", fault="join", target="m3"),
        e(998, "runner", "run_ended", outcome="failed", error=END),
        without="run_ended",
    )
    assert judgement.outcome is Outcome.VIOLATED


@pytest.mark.parametrize("goes_on", [True, False])
@pytest.mark.parametrize("replaced_ms", [380, 420])
@pytest.mark.parametrize("error", ["FENCED_INSTANCE_ID", "INVALID_GROUP_ID"])
def test_a_member_that_a_replaced_coordinator_gave_its_id_may_be_fenced(
    tmp_path: Path, replaced_ms: int, error: str, goes_on: bool
) -> None:
    end = {"outcome": "complete"} if goes_on else {"outcome": "failed", "error": END}
    led = {"topic": "__consumer_offsets", "partition": 3}
    judgement = judged(
        tmp_path,
        e(replaced_ms, "broker-1", "leader_changed", **led, leader=1, leader_epoch=1),
        e(400, "broker-2", "group_member_joined", group="g", id="m2-b"),
        e(430, "broker-2", "leader_changed", **led, leader=-1, leader_epoch=0),
        e(440, "m2", "member_refused", member="m2-b", group="g", api="JoinGroup", error=error),
        e(998, "runner", "run_ended", **end),
        without="run_ended",
    )
    if (replaced_ms, error) == (380, "FENCED_INSTANCE_ID"):
        assert judgement.outcome is Outcome.UNKNOWN
        why = "broker-2 gave m2-b its id after broker-1 had replaced it"
        assert judgement.in_words() == (why if goes_on else f"{why}: {END}")
    else:
        assert judgement.broken == {"nobody is refused", *([] if goes_on else ["settles"])}


def attempt(begun_ms: float, ended_ms: float, outcome: str) -> tuple[dict[str, Any], ...]:
    """An attempt of m2 to rebalance."""
    begun = e(begun_ms, "m2", "attempt_started", member="g_m2", attempt=2)
    return begun, e(ended_ms, "m2", "attempt_ended", member="g_m2", attempt=2, outcome=outcome)


@pytest.mark.parametrize(
    ("outcome", "given_up_ms", "kept"),
    [("conflict", None, True), ("conflict", 419, False), ("conflict", 450, True), ("ok", None, False)],
)
def test_an_attempt_that_lost_a_claim_has_given_up_the_others(
    tmp_path: Path, outcome: str, given_up_ms: float | None, kept: bool
) -> None:
    events = [cleared(400, "g_m2-0", 2), named(410, "g_m2-0", 3), *attempt(405, 420, outcome)]
    if given_up_ms is not None:
        events.append(cleared(given_up_ms, "g_m2-0", 3))
    found = judged(tmp_path, *events, design="zookeeper")
    reasons = {each.check: each.reason for each in found.violations}
    assert reasons == ({"failed claims given up": "g_m2 lost a claim, and kept the owner nodes of t-0"} if kept else {})


@pytest.mark.parametrize("checks", [True, False])
@pytest.mark.parametrize(("by", "ok"), [("g_m1", True), ("g_m1", False), ("g_m2", True)])
def test_with_checked_releases_nobody_deletes_the_owner_node_of_another(
    tmp_path: Path, by: str, ok: bool, checks: bool
) -> None:
    settings = {"fix.checked.release": "true"} if checks else {}
    found = judged(
        tmp_path,
        e(0, "runner", "run_started", parameters={**PARAMETERS, "settings": settings}),
        e(390, "broker-1", "authority_cleared", cause="zxid:9", **NAMED, owner="g_m2-0", epoch=2, reason="delete"),
        e(391, by.removeprefix("g_"), "zk_op", member=by, op="delete", path="/o/t/0", ok=ok, step="R5", zxid=9),
        without="run_started",
        design="zookeeper",
    )
    reasons = [each.reason for each in found.violations if each.check == "owner nodes kept"]
    assert reasons == (["g_m1 deleted /o/t/0, which named g_m2-0"] if checks and ok and by == "g_m1" else [])


@pytest.mark.parametrize("missing", ["records_delivered", "offset_written", "run_ended"])
def test_without_evidence_a_run_is_unknown(tmp_path: Path, missing: str) -> None:
    judgement = judged(tmp_path, without=missing)
    assert judgement.outcome is Outcome.UNKNOWN
    assert judgement.in_words()


def test_a_producer_that_a_broker_has_forgotten_shows_lost_records(tmp_path: Path) -> None:
    error = "the load has failed: orders-0-1: OUT_OF_ORDER_SEQUENCE_NUMBER: a batch before this one is missing"
    found = judged(tmp_path, e(998, "runner", "run_ended", outcome="failed", error=error), without="run_ended")
    assert found.broken == {"no record lost"}
    assert found.violations[0].reason == f"a broker has lost what it acknowledged: {error}"


def test_a_broken_promise_is_worse_than_what_is_unknown(tmp_path: Path) -> None:
    failed = e(998, "runner", "run_ended", outcome="failed", error="the load has failed")
    judgement = judged(tmp_path, failed, wrote(400, 3, "g_m2", 2), without="run_ended")
    assert judgement.outcome is Outcome.VIOLATED
    assert judgement.unknown == "the load has failed"
