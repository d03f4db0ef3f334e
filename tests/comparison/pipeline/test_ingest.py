"""Ingest: every line becomes an event or is flagged, with the same reason as from the plain reader."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from comparison.pipeline.ingest import (
    TOLERANCE_ACROSS_BOOTS_NS,
    TOLERANCE_NS,
    find_runs,
    ingest,
)
from kernel.trace.reader import Reason, read_trace
from tests.support.traces import MS, e, write_run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

EVENTS = [
    e(0, "runner", "run_started", parameters={"members": 2}),
    e(5, "m0", "member_started", group="g", member="a"),
    e(7, "m0", "partitions_assigned", t="t0 t1", member="a", stream=0, cause="zxid:9"),
]
BAD_LINES = {
    '{"seq":9,"ns":1,"kind":"member_fai': Reason.TORN,
    "garbage": Reason.NOT_JSON,
    '{"seq":"x","ns":1,"kind":"member_closed","process":"m0","member":null,"stream":null,"cause":"","group":"g"}': (
        Reason.FLAWED
    ),
    '{"seq":9,"ns":1,"kind":"member_closed","process":"m0","member":null,"stream":null,"cause":""}': Reason.FLAWED,
    '{"seq":9,"kind":"member_closed","process":"m0","member":null,"stream":null,"cause":"","group":"g"}': (
        Reason.FLAWED
    ),
    '{"seq":9,"ns":1,"kind":"member_danced","process":"m0","member":null,"stream":null,"cause":""}': None,
}


def test_events_are_read_as_emitted(spark: SparkSession, tmp_path: Path) -> None:
    run = write_run(tmp_path / "with space+and [sign] é", EVENTS)
    rows = ingest(spark, find_runs([run]), tmp_path / "out").orderBy("t_ns").collect()
    assert [(row.kind, row.role, row.t_ns, row.problem) for row in rows] == [
        ("run_started", "runner", 0, None),
        ("member_started", "member", 5 * MS, None),
        ("partitions_assigned", "member", 7 * MS, None),
    ]
    assert json.loads(rows[0].parameters) == {"members": 2}
    assert [(tp.topic, tp.partition) for tp in rows[2].partitions] == [("t", 0), ("t", 1)]
    assert (rows[2].member, rows[2].stream, rows[2].cause) == ("a", 0, "zxid:9")


def test_unusable_lines_are_kept_and_flagged(spark: SparkSession, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", EVENTS)
    path = run / "trace" / "m0.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(BAD_LINES) + "\n")
    rows = ingest(spark, find_runs([run]), tmp_path / "out").collect()
    found = {row.line: row.problem for row in rows if row.problem is not None}
    assert found == {line[:200]: reason for line, reason in BAD_LINES.items() if reason is not None}
    assert len(rows) == len(EVENTS) + len(BAD_LINES)
    # The plain reader returns the same.
    assert sorted(found.values()) == sorted(q.reason for q in read_trace(path).quarantined)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [('{"header"', '{"footer"', Reason.NO_HEADER), ('"schema":2', '"schema":99', Reason.NEWER_SCHEMA)],
)
def test_all_lines_of_a_file_without_a_usable_header_are_flagged(
    spark: SparkSession, tmp_path: Path, old: str, new: str, reason: Reason
) -> None:
    run = write_run(tmp_path / "run", EVENTS)
    path = run / "trace" / "m0.jsonl"
    path.write_text(path.read_text().replace(old, new))
    rows = ingest(spark, find_runs([run]), tmp_path / "out").collect()
    assert [row.problem for row in rows if row.role == ""] == [reason] * 4  # the header and the end marker too
    assert len(rows) == 5


def test_events_are_analysed_from_parquet(spark: SparkSession, tmp_path: Path) -> None:
    first = write_run(tmp_path / "a" / "zookeeper", EVENTS)
    second = write_run(tmp_path / "a" / "eager", EVENTS[:2], design="eager")
    runs = find_runs([tmp_path / "a"])
    assert [run.folder for run in runs] == sorted([first, second])
    for _ in range(2):  # a second analysis replaces them
        events = ingest(spark, runs, tmp_path / "events.parquet")
    assert {row.run: row["count"] for row in events.groupBy("run").count().collect()} == {0: 2, 1: 3}


def test_clocks_of_one_boot_need_no_alignment(tmp_path: Path) -> None:
    (run,) = find_runs([write_run(tmp_path / "run", EVENTS)])
    assert run.tolerance_ns == TOLERANCE_NS
    assert {file.offset_ns for file in run.files} == {0}
    assert run.header["process"] == "runner"


def test_clocks_of_two_boots_are_aligned_by_their_wall_clocks(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", EVENTS)
    path = folder / "trace" / "m0.jsonl"
    header, _, rest = path.read_text().partition("\n")
    other = json.loads(header)
    # This machine's monotonic clock is at 3 s when the runner's is at 0; its wall clock is 1 s later.
    other["header"] |= {"boot_id": "other", "monotonic_ns": 3_000 * MS}
    other["header"]["wall_ns"] += 1_000 * MS
    path.write_text(json.dumps(other) + "\n" + rest)
    (run,) = find_runs([folder])
    assert run.tolerance_ns == TOLERANCE_ACROSS_BOOTS_NS
    assert {file.path.name: file.offset_ns for file in run.files} == {"m0.jsonl": -2_000 * MS, "runner.jsonl": 0}


def test_empty_traces_have_no_events(spark: SparkSession, tmp_path: Path) -> None:
    assert find_runs([tmp_path]) == []
    assert ingest(spark, [], tmp_path / "out").collect() == []
