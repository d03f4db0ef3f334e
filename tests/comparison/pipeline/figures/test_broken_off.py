"""What a run that broke off leaves unknown: figures that rest on its end are null; what was seen was seen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from comparison.fuzzing.judging import LOST, judge_folder
from comparison.report.summaries.glance import glanced
from comparison.report.summaries.repeats import columns_of
from comparison.report.terminal import render
from comparison.results.result import read_result
from comparison.results.run import Run
from tests.support.runs.seen_runs import analysed_inline
from tests.support.trace.traces import e, write_run

MEMBER = {"member": "g_m1", "stream": 0}
FINAL_OFFSET = {"group": "g", "p": 0, "end": 10}


def broken_off(
    folder: Path,
    *,
    delivered: int = 3,
    stage: str = "fault",
    settled: bool = False,
    outcome: str = "failed",
    final: int | None = None,
) -> Run:
    """The result of a run in which ten records were acknowledged, and in which a member was frozen at the end."""
    last = delivered - 1
    polled = {"first": 0, "last": last, "serial_first": 0, "serial_last": last}
    events = [
        e(0, "runner", "run_started", parameters={"members": 1, "checks": ["no offset moved back"]}),
        e(100, "m1", "member_started", group="g", member="g_m1"),
        e(200, "m1", "partitions_assigned", t="t0", **MEMBER),
        e(300, "runner", "records_acked", p=0, first=0, last=9, serial_first=0, serial_last=9),
        e(400, "m1", "records_delivered", p=0, **polled, **MEMBER),
        e(450, "m1", "commit_answered", group="g", p=0, offset=3, outcome="accepted", member="g_m1"),
        e(450, "observer", "offset_written", group="g", p=0, offset=3, by="g_m1", epoch=1),
        e(500, "runner", "change_started", change="restart", round=1, members=1, detail={"target": "m1"}),
        *([e(700, "runner", "change_settled", change="restart", round=1, members=1)] if settled else []),
        e(800, "runner", "stage_entered", stage=stage),
        *([] if final is None else [e(850, "runner", "final_offset", committed=final, **FINAL_OFFSET)]),
        e(900, "runner", "run_ended", outcome=outcome, error="m1 is frozen"),
    ]
    write_run(folder / "run", events)
    (run,) = analysed_inline(folder).runs
    return run


def reasons(run: Run) -> dict[str, str]:
    return {verdict.check: verdict.reason for verdict in run.verdicts}


def test_records_are_lost_only_once_the_log_was_drained(tmp_path: Path) -> None:
    run = broken_off(tmp_path)
    assert (run.metrics["delivered"], run.metrics["lost"]) == (3, None)
    assert reasons(run)["no record lost"] == "the run ended before the log was drained"


@pytest.mark.parametrize(
    ("given", "lost"), [({"stage": "final"}, 7), ({"delivered": 10}, 0), ({"stage": "final", "delivered": 10}, 0)]
)
def test_what_is_known_of_lost_records_is_told(given: dict[str, Any], lost: int, tmp_path: Path) -> None:
    assert broken_off(tmp_path, **given).metrics["lost"] == lost


def test_what_nobody_knows_of_lost_records_is_no_number_anywhere(tmp_path: Path) -> None:
    """Two repeats, of which one broke off before its log was drained."""
    broken_off(tmp_path / "a")
    broken_off(tmp_path / "b", stage="final")
    result = analysed_inline(tmp_path)
    assert [run.metrics["lost"] for run in read_result(tmp_path / "result.json").runs] == [None, 7]
    assert [lost.as_py() for lost in lost_in(tmp_path / "tables" / "metrics.parquet")] == [None, 7]
    spread = result.repeated[0].metrics["lost"]
    assert spread is not None
    assert (spread.n, spread.low, spread.high) == (1, 7, 7)
    alone = analysed_inline(tmp_path / "a")
    (shown,) = re.findall(r"^ +lost +(\S+)$", render(alone, Console(width=80)), re.MULTILINE)
    assert shown == "-"
    assert "lost" in glanced(columns_of(alone.scenarios[0], alone)).unknown
    assert LOST not in {check for check, _ in judge_folder(tmp_path / "a" / "run").violations}


def lost_in(path: Path) -> pa.ChunkedArray:
    table = pq.read_table(path)
    return table.filter(pc.equal(table["metric"], "lost"))["value"]


@pytest.mark.parametrize("outcome", ["failed", "interrupted"])
def test_change_that_was_under_way_has_not_settled(outcome: str, tmp_path: Path) -> None:
    run = broken_off(tmp_path, outcome=outcome)
    last = run.changes[-1]
    assert (last.converge_ms, last.moved, last.counted) == (None, None, [])
    assert (run.metrics["converge_ms"], run.metrics["moved"]) == (None, None)
    assert reasons(run)["settles"] == "the run ended before the group had settled after restart 1"


def test_change_that_settled_before_keeps_its_time(tmp_path: Path) -> None:
    assert broken_off(tmp_path, settled=True).metrics["converge_ms"] is not None


@pytest.mark.parametrize(("outcome", "final", "read"), [("failed", 3, None), ("complete", 3, 1), ("failed", 1, 1)])
def test_final_offsets_are_told_if_all_were_read_or_one_was_lost(
    outcome: str, final: int, read: int | None, tmp_path: Path
) -> None:
    run = broken_off(tmp_path, stage="final", outcome=outcome, final=final)
    assert run.metrics["final_read"] == read
    assert run.metrics["final_behind"] == (None if read is None else int(final < 3))


def test_verdicts_say_that_the_run_failed_and_the_run_says_why(tmp_path: Path) -> None:
    run = broken_off(tmp_path)
    assert run.error == "m1 is frozen"
    assert reasons(run)["no offset moved back"].startswith("the run failed; as recorded: ")
    assert not [reason for reason in reasons(run).values() if "frozen" in reason]
