"""The whole analysis: from trace files to result.json."""

from __future__ import annotations

import functools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq
import pytest

from comparison.pipeline import analysis
from comparison.pipeline.analysis import NothingToAnalyse, analyze, compose
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.generated.runs import write_synthetic
from comparison.results.metrics import METRICS
from comparison.results.outcomes import VerdictOutcome
from comparison.results.result import Result, formatted
from comparison.results.run import Overlap
from tests.support.runs.results import run
from tests.support.trace.traces import e, write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Figures that go by the same name in the truth of a synthetic run and among the metrics.
SYNTHETIC_COUNTS = (
    *("duplicates", "lost", "delivered", "out_of_order", "stale_deliveries", "commits", "stale_writes", "moved_back"),
    *("moved_back_records", "started_behind", "final_read", "final_behind", "final_beyond", "rebalances"),
)

PARAMETERS = {"members": 2, "partitions": 2, "topics": 1, "streams": 1, "brokers": 1, "rate": 10, "preset": "p"}
PARAMETERS |= {"checks": ["zombie commits after a pause", "two members deliver after a pause"]}


def ownership_changed(at_ms: float, process: str, what: str, t: str) -> dict:
    return e(at_ms, process, f"partitions_{what}", t=t, member=f"g_{process}", stream=0)


def named(at_ms: float, partition: int, owner: str) -> dict:
    return e(at_ms, "observer", "authority_named", group="g", p=partition, owner=f"g_{owner}-0", epoch=at_ms)


def cleared(at_ms: float, partition: int, owner: str) -> dict:
    return e(
        at_ms, "observer", "authority_cleared", group="g", p=partition, owner=f"g_{owner}-0", epoch=1, reason="session"
    )


def written(at_ms: float, partition: int, by: str, offset: int) -> dict:
    return e(at_ms, "observer", "offset_written", group="g", p=partition, offset=offset, by=f"g_{by}", epoch=at_ms)


def records(at_ms: float, process: str, kind: str, partition: int, first: int, last: int) -> dict:
    who = {} if process == "runner" else {"member": f"g_{process}", "stream": 0}
    return e(at_ms, process, kind, p=partition, first=first, last=last, serial_first=first, serial_last=last, **who)


#: m1 owns t0 and m2 owns t1. m1 is frozen and m2 gets both; then m1 resumes, delivers and commits.
PAUSE = [
    e(0, "runner", "run_started", parameters=PARAMETERS),
    e(1, "m1", "member_started", member="g_m1", group="g"),
    e(1, "m2", "member_started", member="g_m2", group="g"),
    named(10, 0, "m1"),
    named(10, 1, "m2"),
    ownership_changed(11, "m1", "assigned", "t0"),
    ownership_changed(11, "m2", "assigned", "t1"),
    e(50, "runner", "stage_entered", stage="steady"),
    records(60, "runner", "records_acked", 0, 0, 29),
    records(70, "m1", "records_delivered", 0, 0, 9),
    written(80, 0, "m1", 10),
    e(100, "runner", "fault_started", fault="freeze", target="m1"),
    cleared(3_100, 0, "m1"),
    named(3_110, 0, "m2"),
    ownership_changed(3_112, "m2", "assigned", "t0"),
    records(3_120, "m2", "records_delivered", 0, 10, 19),
    records(3_900, "m2", "records_delivered", 0, 20, 29),
    written(3_950, 0, "m2", 30),
    e(4_000, "runner", "fault_ended", fault="freeze", target="m1"),
    records(4_010, "m1", "records_delivered", 0, 10, 14),
    records(4_110, "m1", "records_delivered", 0, 15, 19),
    written(4_120, 0, "m1", 20),
    ownership_changed(4_200, "m1", "lost", "t0"),
    records(4_250, "m2", "records_delivered", 1, 0, 0),
    e(5_000, "runner", "stage_entered", stage="final"),
    e(5_001, "runner", "run_ended", outcome="complete"),
]


def test_zombie_is_found_from_the_files_to_the_verdict(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "pause" / "zookeeper", PAUSE, scenario="pause")
    reports: list[str] = []
    result = analyze(spark, [tmp_path], progress=reports.append)
    (found,) = result.runs
    assert reports
    assert found.path == str(folder)
    assert (found.scenario, found.design, found.outcome, found.seed) == ("pause", "zookeeper", "complete", 1)
    assert found.parameters == PARAMETERS
    expected = {
        "double_owned_partition_s": 1.088,  # m2 from 3112 on, m1 until 4200
        "two_delivering_partition_s": 0.0,  # m2's last poll of t-0 was before m1's return
        "unowned_partition_s": 0.0,
        "unowned_authority_partition_s": 0.01,
        "delivered": 41.0,
        "duplicates": 10,
        "lost": 0,
        "stale_deliveries": 10,
        "commits": 3,
        "stale_writes": 1,
        "moved_back": 1,
        "moved_back_records": 10,
        "converge_ms": 4_100.0,
    }
    assert {name: found.metrics[name] for name in expected} == expected
    assert found.metrics.keys() == METRICS.keys()
    assert found.overlaps == [
        Overlap(
            view="believed",
            topic="t",
            partition=0,
            from_ms=3_112.0,
            until_ms=4_200.0,
            owners=["m1/g_m1/0", "m2/g_m2/0"],
        )
    ]
    assert {verdict.check: verdict.outcome for verdict in found.verdicts} == {
        "no record lost": "as expected",
        "settles": "as expected",
        "zombie commits": "as expected",
        "two members deliver": "as expected",
    }
    assert result.verdict == "as expected"
    assert msgspec.json.decode(formatted(result), type=Result) == result


def test_analysis_of_a_synthetic_run_finds_its_true_figures(spark: SparkSession, tmp_path: Path) -> None:
    truth = write_synthetic(tmp_path / "run", events_min=12_000, seed=3)
    (found,) = analyze(spark, [tmp_path]).runs
    assert found.events == truth.events
    metrics = found.metrics
    expected = {
        "double_owned_partition_s": truth.double_owned_ms / 1000,
        "unowned_partition_s": truth.unowned_ms / 1000,
        "unowned_authority_partition_s": truth.unowned_authority_ms / 1000,
        **{name: getattr(truth, name) for name in SYNTHETIC_COUNTS},
    }
    expected["delivered"] += truth.duplicates
    assert {name: metrics[name] for name in expected} == expected
    assert truth.stale_writes > truth.moved_back > 0
    assert (found.quarantined, found.missing_events) == ({}, 0)


def test_run_in_many_parts_is_analysed_as_one_that_is_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_synthetic(tmp_path / "run", events_min=12_000, seed=5)
    whole = analyze(spark, [tmp_path / "run"], output=tmp_path / "whole")
    monkeypatch.setattr(analysis, "parts_of", functools.partial(parts_of, chunk_bytes=100_000, whole_bytes=0))
    assert analyze(spark, [tmp_path / "run"], output=tmp_path / "cut") == whole
    for name in ("ownership", "segments"):
        assert _rows(tmp_path / "cut", name) == _rows(tmp_path / "whole", name)
    assert len(list((tmp_path / "cut" / "tables" / "events" / "kind=records_delivered").iterdir())) > 4


def _rows(folder: Path, name: str) -> Counter[str]:
    return Counter(map(str, pq.read_table(folder / "tables" / name).to_pylist()))


def test_tables_say_which_run_a_row_is_of(spark: SparkSession, tmp_path: Path) -> None:
    write_run(tmp_path / "bundle", PAUSE, scenario="pause")
    (found,) = analyze(spark, [tmp_path], output=tmp_path / "out").runs
    tables = tmp_path / "out" / "tables"
    for path in sorted(tables.rglob("*.parquet")):
        table = pq.read_table(path, partitioning=None)
        assert table.column_names[:5] == ["run_id", "scenario", "design", "seed", "repeat"]
        assert {tuple(row.values()) for row in table.select(range(5)).to_pylist()} <= {
            ("bundle", "pause", "zookeeper", 1, 1)
        }
    metrics = {row["metric"]: row["value"] for row in pq.read_table(tables / "metrics.parquet").to_pylist()}
    assert metrics == found.metrics
    assert not list((tmp_path / "out").glob(".tables*"))


def test_analysis_without_traces_fails_and_says_what_to_give(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NothingToAnalyse, match="Give the folder of a run"):
        analyze(spark, [tmp_path])


def test_run_that_belongs_to_two_scenarios_is_shown_in_both() -> None:
    runs = [
        run("split-brain", "zookeeper", verdict=VerdictOutcome.EXPECTED),
        run("split-brain", "eager", verdict=VerdictOutcome.EXPECTED),
        run("split-brain-ensemble", "eager", verdict=VerdictOutcome.UNKNOWN),
    ]
    result = compose(runs)
    assert [(scenario.scenario, scenario.runs, scenario.verdict) for scenario in result.scenarios] == [
        ("split-brain", [0, 1], VerdictOutcome.EXPECTED),
        ("split-brain-ensemble", [0, 2], VerdictOutcome.UNKNOWN),
    ]
    assert result.verdict is VerdictOutcome.UNKNOWN


def test_run_without_a_usable_trace_is_unknown(spark: SparkSession, tmp_path: Path) -> None:
    trace = tmp_path / "run" / "trace"
    trace.mkdir(parents=True)
    (trace / "m1.jsonl").write_text("garbage\n{}\n")
    (trace / "m2.jsonl").touch()
    (found,) = analyze(spark, [tmp_path]).runs
    assert (found.events, found.quarantined, found.verdict) == (0, {"no header": 2}, "unknown")
