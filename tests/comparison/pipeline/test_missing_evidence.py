"""Damaged traces: if anything is missing, duplicated or out of order, the verdict is unknown, with file and reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from comparison.pipeline.analysis import Again, analyze
from comparison.results.outcomes import VerdictOutcome
from comparison.results.run import Run
from kernel.trace.reader import Reason
from tests.comparison.pipeline.test_analysis import PAUSE
from tests.support.runs.inline_spark import InlineSpark
from tests.support.trace.traces import e, write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def judged(folder: Path) -> Run:
    """The run in a folder, without Spark."""
    return analyze(cast("SparkSession", InlineSpark(1)), [folder], again=Again.READING).runs[0]


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def rewrite(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def delete(trace: Path) -> None:
    (trace / "m2.jsonl").unlink()


def cut_the_tail(trace: Path) -> None:
    rewrite(trace / "m2.jsonl", lines_of(trace / "m2.jsonl")[:-2])


def double_one_and_lose_one(trace: Path) -> None:
    header, first, *rest = lines_of(trace / "m2.jsonl")
    rewrite(trace / "m2.jsonl", [header, first, first, *rest[1:]])


def copy(trace: Path) -> None:
    (trace / "m2-copy.jsonl").write_bytes((trace / "m2.jsonl").read_bytes())


def turn_back_the_clock(trace: Path) -> None:
    lines = lines_of(trace / "m2.jsonl")
    event = json.loads(lines[-2])
    event["ns"] -= 2_000_000_000
    rewrite(trace / "m2.jsonl", [*lines[:-2], json.dumps(event, separators=(",", ":")), lines[-1]])


def spoil_the_header(trace: Path) -> None:
    header, *rest = lines_of(trace / "m2.jsonl")
    rewrite(trace / "m2.jsonl", [header.replace('"seed":1', '"seed":null'), *rest])


def put_in_another_run(trace: Path) -> None:
    header, *rest = lines_of(trace / "m2.jsonl")
    rewrite(trace / "m2.jsonl", [header.replace('"run":"pause"', '"run":"other"'), *rest])


def nest_deep(trace: Path) -> None:
    header, *rest = lines_of(trace / "m2.jsonl")
    rewrite(trace / "m2.jsonl", [header, "[" * 10_000 + "]" * 10_000, *rest])


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (delete, "m2.jsonl is in the list of run.json, but not in the folder"),
        (cut_the_tail, "m2.jsonl has no end marker"),
        (double_one_and_lose_one, "m2.jsonl has 1 event whose sequence number another event has"),
        (copy, "m2-copy.jsonl"),
        (turn_back_the_clock, "m2.jsonl: time goes backwards 1 time"),
        (spoil_the_header, "m2.jsonl has no usable header"),
        (put_in_another_run, "m2.jsonl is of the run 'other'"),
        (nest_deep, "m2.jsonl has 1 unusable line"),
    ],
)
def test_damaged_trace_is_unknown_with_the_reason(tmp_path: Path, damage: Callable[[Path], None], reason: str) -> None:
    folder = write_run(tmp_path / "pause", PAUSE, scenario="pause")
    listed = [
        {"file": f"{process}.jsonl", "process": process, "role": role}
        for process, role in (("m1", "member"), ("m2", "member"), ("runner", "runner"), ("observer", "observer"))
    ]
    (folder / "run.json").write_text(json.dumps({"traces": listed}))
    assert judged(folder).verdict is VerdictOutcome.EXPECTED
    damage(folder / "trace")
    run = judged(folder)
    assert run.verdict is VerdictOutcome.UNKNOWN
    assert {verdict.outcome for verdict in run.verdicts} == {VerdictOutcome.UNKNOWN}
    assert any(reason in problem for problem in run.problems)
    assert all("as recorded" in verdict.reason for verdict in run.verdicts)


@pytest.mark.parametrize("tail", [b'{"seq":99,"ns":', b'{"seq":99,"partitions":[{"topic":"t","partition":0}'])
def test_line_that_a_kill_tore_is_missed_by_nobody(tmp_path: Path, tail: bytes) -> None:
    killed = e(4_300, "runner", "process_ended", target="m2", how="kill")
    folder = write_run(tmp_path / "pause", sorted([*PAUSE, killed], key=lambda event: event["ns"]), scenario="pause")
    rewrite(folder / "trace" / "m2.jsonl", lines_of(folder / "trace" / "m2.jsonl")[:-1])
    expected = judged(folder)
    with (folder / "trace" / "m2.jsonl").open("ab") as file:
        file.write(tail)
    torn = judged(folder)
    assert torn.quarantined == {Reason.TORN: 1}
    assert torn.problems == expected.problems == []
    assert (torn.metrics, torn.verdicts) == (expected.metrics, expected.verdicts)


def test_every_file_has_a_row_even_a_missing_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "pause", PAUSE, scenario="pause")
    listed = [{"file": f"{process}.jsonl", "process": process, "role": "member"} for process in ("m1", "m3")]
    (folder / "run.json").write_text(json.dumps({"traces": listed}))
    files = {file.file: file for file in judged(folder).files}
    assert list(files) == ["m1.jsonl", "m2.jsonl", "observer.jsonl", "runner.jsonl", "m3.jsonl"]
    one = files["m1.jsonl"]
    assert (one.members, one.first_ns, one.last_ns, one.ended) == (["g_m1"], 1_000_000, 4_200_000_000, True)
    assert files["m3.jsonl"].problems == ["m3.jsonl is in the list of run.json, but not in the folder"]
    assert files["observer.jsonl"].problems == ["observer.jsonl is not in the list of run.json"]
