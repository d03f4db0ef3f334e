"""What `run` says of a scenario that is judged by promises only: what the fuzzer says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from comparison.fuzzing.judging import SETTLES, judge_folder
from comparison.fuzzing.verdicts import promises_alone
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.gold.run import measure
from comparison.pipeline.judged import finished
from comparison.pipeline.reading import read_tables
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Run
from tests.support.trace.judged_run import END, KEPT, NAMED, PARAMETERS, named
from tests.support.trace.traces import e, write_run

STARTED = e(0, "runner", "run_started", parameters={**PARAMETERS, "only_promises": True})
FAILED = e(998, "runner", "run_ended", outcome="failed", error=END)


def run_with(folder: Path, *more: dict[str, Any], without: tuple[str, ...] = (), design: str = "eager") -> Run:
    """`KEPT` with further events, without those of some kinds, as the pipeline measures and judges it."""
    events = sorted([*(each for each in KEPT if each["kind"] not in without), *more], key=lambda each: each["t_ns"])
    (traced,) = find_runs([write_run(folder / "run", events, scenario="fuzz", design=design)])
    (part,) = parts_of([traced], 1)
    found, read = read_tables([traced], part.chunks)
    measured, _ = measure(traced, found[0])
    return promises_alone(traced, finished(traced, measured, read))


def outcomes(run: Run) -> dict[str, VerdictOutcome]:
    return {each.check: each.outcome for each in run.verdicts}


def test_a_scenario_that_does_not_ask_for_it_has_the_verdicts_of_the_pipeline(tmp_path: Path) -> None:
    run = run_with(tmp_path, FAILED, without=("run_ended",))
    assert "no traceback" not in outcomes(run)
    assert outcomes(run)[SETTLES] is VerdictOutcome.UNKNOWN


def test_what_is_kept_is_as_expected(tmp_path: Path) -> None:
    run = run_with(tmp_path, STARTED, without=("run_started",))
    assert run.verdict is VerdictOutcome.EXPECTED
    assert {SETTLES, "never two owners", "no process ends by itself", "no traceback", "no record lost"} <= {
        *outcomes(run)
    }


def test_a_group_that_does_not_settle_breaks_its_promise_as_the_fuzzer_says(tmp_path: Path) -> None:
    run = run_with(tmp_path, STARTED, FAILED, without=("run_started", "run_ended"))
    (broken,) = (each for each in run.verdicts if each.outcome is VerdictOutcome.NOT_EXPECTED)
    assert (broken.check, broken.reason) == (SETTLES, f"after the last heal: {END}")
    assert run.verdict is VerdictOutcome.NOT_EXPECTED
    assert f"{broken.check}: {broken.reason}" == judge_folder(tmp_path / "run").in_words()


def test_a_run_that_failed_while_a_fault_was_in_effect_is_unknown(tmp_path: Path) -> None:
    frozen = e(310, "runner", "fault_started", fault="freeze", target="m1")
    run = run_with(tmp_path, STARTED, FAILED, frozen, without=("run_started", "run_ended"))
    assert run.verdict is VerdictOutcome.UNKNOWN
    assert END in {each.check: each.reason for each in run.verdicts}[SETTLES]


@pytest.mark.parametrize(
    ("more", "check"),
    [
        (named(400, "g_m1", 2), "never two owners"),
        (e(400, "runner", "process_ended", target="m2", how="itself", code=3), "no process ends by itself"),
        (e(400, "broker-1", "offset_written", **NAMED, offset=3, by="g_m2", epoch=2), "no offset moved back"),
    ],
)
def test_what_else_is_broken(tmp_path: Path, more: dict[str, Any], check: str) -> None:
    run = run_with(tmp_path, STARTED, more, without=("run_started",))
    assert outcomes(run)[check] is VerdictOutcome.NOT_EXPECTED


def test_a_record_that_a_kill_loses_in_hand_is_no_broken_promise_of_zookeeper(tmp_path: Path) -> None:
    acked = e(151, "runner", "records_acked", p=0, first=10, last=10, serial_first=10, serial_last=10)
    killed = e(400, "runner", "process_ended", target="m2", how="kill", code=-9)
    run = run_with(tmp_path, STARTED, acked, killed, without=("run_started",), design="zookeeper")
    (lost,) = (each for each in run.verdicts if each.check == "no record lost")
    assert lost.outcome is VerdictOutcome.EXPECTED
    assert lost.reason.startswith("1 record lost")
    assert lost.reason.endswith("each kill may lose the one in hand")
