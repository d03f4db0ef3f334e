"""A bad run affects only itself: the others are analysed, and its file, line and problem are named."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from comparison.cli.damage import damage_of
from comparison.cli.report_file import write_report
from comparison.pipeline.analysis import Again, analyze
from comparison.pipeline.bronze.quarantine import QUARANTINE_SCHEMA
from comparison.results.outcomes import VerdictOutcome
from comparison.results.result import Result
from comparison.results.run import Run
from kernel.trace.reader import LINE_BYTES_MAX, Reason
from tests.comparison.pipeline.test_analysis import PAUSE
from tests.support.runs.inline_spark import InlineSpark
from tests.support.trace.traces import e, write_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from comparison.pipeline.bronze.runs import TraceRun

LISTED = [
    {"file": f"{process}.jsonl", "process": process, "role": role}
    for process, role in (("m1", "member"), ("m2", "member"), ("runner", "runner"), ("observer", "observer"))
]


def run_in(folder: Path) -> Path:
    write_run(folder, PAUSE, scenario="pause")
    (folder / "run.json").write_text(json.dumps({"run": folder.name, "scenario": "pause", "traces": LISTED}))
    return folder


def analysed(folder: Path) -> Result:
    return analyze(cast("SparkSession", InlineSpark(1)), [folder], output=folder)


def change(path: Path, line: int, old: str, new: str) -> None:
    """Change one line; lines count from 1."""
    lines = path.read_text(encoding="utf-8").splitlines()
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def insert(path: Path, line: int, text: bytes) -> None:
    lines = path.read_bytes().splitlines()
    lines.insert(line - 1, text)
    path.write_bytes(b"\n".join(lines) + b"\n")


def header_field(old: str, new: str) -> Callable[[Path], None]:
    return lambda trace: change(trace / "m1.jsonl", 1, old, new)


def field(file: str, line: int, old: str, new: str) -> Callable[[Path], None]:
    return lambda trace: change(trace / file, line, old, new)


def loop(trace: Path) -> None:
    (trace / "loop.jsonl").symlink_to("loop.jsonl")
    (trace / "again").symlink_to(trace.parent, target_is_directory=True)


def of_foreign_name(trace: Path) -> None:
    shutil.copy(trace / "m1.jsonl", os.fsencode(trace) + b"/m\xff.jsonl")


def remove_trace(trace: Path) -> None:
    shutil.rmtree(trace)


def spoil_run_json(trace: Path) -> None:
    (trace.parent / "run.json").write_text('{"traces": [')


def remove_run_json(trace: Path) -> None:
    (trace.parent / "run.json").unlink()


def unlist(trace: Path) -> None:
    (trace.parent / "run.json").write_text('{"run": "bad", "scenario": "pause"}')


def spoil_run_json_with(content: bytes) -> Callable[[Path], None]:
    """Put the bytes, in a field that the analysis does not need, into run.json and command.json."""

    def spoil(trace: Path) -> None:
        for path in (trace.parent / "run.json", trace.parent.parent / "command.json"):
            path.write_bytes(b'{"versions": ' + content + b"}")

    return spoil


def use_another_clock(trace: Path) -> None:
    change(trace / "m1.jsonl", 1, '"boot_id":"', '"boot_id":"other')
    change(trace / "m1.jsonl", 1, '"wall_ns":', '"wall_ns":-2100000000000000000,"x":')


def append_bad_text(trace: Path) -> None:
    event = (trace / "m1.jsonl").read_bytes().splitlines()[2]
    insert(trace / "m1.jsonl", 3, event[:-1] + b',"x":"\xff"}')


def add_changes(trace: Path) -> None:
    event = {"ns": 9, "process": "runner", "member": None, "stream": None, "cause": "", "kind": "change_started"}
    change = {"change": "join", "round": 1, "members": 3}
    lines = (json.dumps({"seq": seq, **event, **change}) + "\n" for seq in range(3_000))
    with (trace / "runner.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(lines)


def event(process: str, kind: str, **fields: Any) -> Callable[[Path], None]:
    """Insert an event as the third line of a process's file."""
    common = {"seq": 9, "ns": 9, "kind": kind, "process": process, "member": None, "stream": None, "cause": ""}
    return lambda trace: insert(trace / f"{process}.jsonl", 3, json.dumps({**common, **fields}).encode())


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "null in the header": (header_field('"seed":1', '"seed":null'), "bad/trace/m1.jsonl:1: no header (seed is null)"),
    "text for a number": (
        header_field('"pid":', '"pid":"p","x":'),
        "bad/trace/m1.jsonl:1: no header (pid should be int, is str)",
    ),
    "time near 2^63 in the header": (
        header_field('"monotonic_ns":', '"monotonic_ns":9223372036854775807,"x":'),
        "bad/trace/m1.jsonl:1: no header (monotonic_ns is not a possible time)",
    ),
    "clock of another age": (use_another_clock, "bad/trace/m1.jsonl:1: impossible time (its clock is "),
    "time near 2^63": (
        field("m1.jsonl", 3, '"ns":', '"ns":9223372036854775807,"x":'),
        "bad/trace/m1.jsonl:3: impossible time (ns is not a possible time)",
    ),
    "time beyond 64 bits": (
        field("m1.jsonl", 3, '"ns":', '"ns":9223372036854775808,"x":'),
        "bad/trace/m1.jsonl:3: flawed event (ns does not fit into 64 bits)",
    ),
    "last record at 2^63-1": (
        field("m1.jsonl", 4, '"last":9', '"last":9223372036854775807'),
        "bad/trace/m1.jsonl:4: flawed event (last is out of range)",
    ),
    "more records than there are": (
        field("m1.jsonl", 4, '"last":9', '"last":99999999999'),
        "bad/trace/m1.jsonl:4: flawed event (first to last is not a range of records)",
    ),
    "a topic of 10^12 partitions": (
        event("runner", "topic_wanted", topic="t", wanted=10**12),
        "bad/trace/runner.jsonl:3: flawed event (wanted is not 0 to 100000)",
    ),
    "odd watch event": (
        event("m1", "zk_notified", path="/a", event="CHILD"),
        "bad/trace/m1.jsonl:3: flawed event (event is not created, deleted, changed, children or none)",
    ),
    "odd outcome": (
        field("runner.jsonl", 8, '"outcome":"complete"', '"outcome":"fine"'),
        "bad/trace/runner.jsonl:8: flawed event (outcome is not complete, interrupted or failed)",
    ),
    "odd reason": (
        event("observer", "group_member_left", group="g", id="g_m1", reason="tired"),
        "bad/trace/observer.jsonl:3: flawed event (reason is not leave, session, ",
    ),
    "odd request": (
        event("m1", "request_answered", api="FETCH", version=4, correlation=1, broker=1, error=""),
        "bad/trace/m1.jsonl:3: flawed event (api is not one of its 40 words)",
    ),
    "odd design": (
        header_field('"design":"zookeeper"', '"design":"lazy"'),
        "bad/trace/m1.jsonl:1: no header (design is not zookeeper, server, ",
    ),
    "odd role": (
        header_field('"role":"member"', '"role":"MEMBER"'),
        "bad/trace/m1.jsonl:1: no header (role is not member, broker, ",
    ),
    "folder": (lambda trace: (trace / "m3.jsonl").mkdir(), "bad/trace/m3.jsonl: unreadable file (not a regular file)"),
    "looping links": (loop, "bad/trace/loop.jsonl: unreadable file (Too many levels of symbolic links)"),
    "nesting": (
        lambda trace: insert(trace / "m1.jsonl", 3, b"[" * 10_000 + b"]" * 10_000),
        "bad/trace/m1.jsonl:3: nested too deep",
    ),
    "nested parameters": (
        field("runner.jsonl", 2, '"members":2', '"members":2,"x":' + "[" * 300 + "]" * 300),
        "bad/trace/runner.jsonl:2: flawed event (parameters is nested deeper than 50 levels)",
    ),
    "a long line": (
        lambda trace: insert(trace / "m1.jsonl", 3, b"x" * (LINE_BYTES_MAX + 5)),
        "bad/trace/m1.jsonl:3: line too long (longer than 16777216 bytes)",
    ),
    "not UTF-8": (append_bad_text, "bad/trace/m1.jsonl:3: not JSON"),
    "file name that is not UTF-8": (of_foreign_name, "bad: m\ufffd.jsonl is not in the list of run.json"),
    "parameters of the wrong type": (
        field("runner.jsonl", 2, '"partitions":2', '"partitions":"two"'),
        "bad: the run cannot be analysed: ValueError: invalid literal for int()",
    ),
    "more changes than anybody makes": (
        add_changes,
        "bad: the run cannot be analysed: ValueError: 3001 changes: more than 2000",
    ),
    "no trace": (remove_trace, "bad: m1.jsonl is in the list of run.json, but not in the folder"),
    "no run.json": (remove_run_json, "bad: run.json is missing: which trace files the run had is unknown"),
    "no list in run.json": (unlist, "bad: run.json has no list of the trace files that the run had"),
    "damaged run.json": (spoil_run_json, "run.json is damaged"),
    "run.json nested too deep": (
        spoil_run_json_with(b"[" * 10_000 + b"]" * 10_000),
        "bad/run.json is damaged: maximum recursion depth exceeded",
    ),
    "run.json that is not UTF-8": (
        spoil_run_json_with(b'"\xff"'),
        "bad/run.json is damaged: 'utf-8' codec can't decode byte 0xff",
    ),
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A good run without a bad one."""
    (run,) = analysed(run_in(tmp_path_factory.mktemp("alone") / "good")).runs
    return run


#: Two damage command.json, of which there is one for all.
TOGETHER = [[name for name in DAMAGES if name != "run.json nested too deep"], ["run.json nested too deep"]]


@pytest.mark.parametrize("damages", TOGETHER, ids=["most", "nested"])
def test_bad_run_is_unknown_and_the_others_are_as_without_it(tmp_path: Path, alone: Run, damages: list[str]) -> None:
    good = run_in(tmp_path / "good")
    bad = {f"{damage}, bad": DAMAGES[damage] for damage in damages}
    for name, (spoil, _) in bad.items():
        spoil(run_in(tmp_path / name) / "trace")
    result = analysed(tmp_path)
    runs = {run.run_id: run for run in result.runs}
    assert runs.keys() == {"good", *bad}
    assert runs["good"] == replace(alone, path=str(good))
    assert result.verdict == "unknown"
    for name, (_, message) in bad.items():
        assert runs[name].verdict == "unknown", name
        shown = damage_of(replace(result, runs=[runs[name]]), tmp_path / "tables")
        assert any(message in text for text in shown), (name, shown)
        assert all(str(tmp_path / name) in text for text in shown)
    assert write_report(result, tmp_path) == []
    for path in (tmp_path / "tables").glob("quarantine/*.parquet"):
        assert pq.read_schema(path).equals(QUARANTINE_SCHEMA)


@pytest.mark.parametrize("damage", ["no trace", "parameters of the wrong type", "folder", "null in the header"])
def test_bad_run_alone_has_a_report(tmp_path: Path, damage: str) -> None:
    DAMAGES[damage][0](run_in(tmp_path / "bad") / "trace")
    for _ in range(2):
        result = analysed(tmp_path)
        assert result.verdict == "unknown"
        assert DAMAGES[damage][1].removeprefix("bad") in "".join(damage_of(result, tmp_path / "tables"))
        assert write_report(result, tmp_path) == []


def test_run_that_cannot_be_judged_by_its_scenario_ends_only_itself(tmp_path: Path, alone: Run) -> None:
    good, _ = run_in(tmp_path / "good"), run_in(tmp_path / "bad")

    def judged(_: TraceRun, run: Run) -> Run:
        if run.run_id == "bad":
            raise LookupError("odd")
        return run

    spark = cast("SparkSession", InlineSpark(1))
    runs = {run.run_id: run for run in analyze(spark, [tmp_path], output=tmp_path, judged=judged).runs}
    assert runs["good"] == replace(alone, path=str(good))
    assert (runs["bad"].verdict, runs["bad"].verdicts, runs["bad"].metrics) == ("unknown", [], alone.metrics)
    assert runs["bad"].problems[0].startswith("the run cannot be judged: LookupError: odd (")


def test_quarantine_has_the_line_and_its_beginning(tmp_path: Path) -> None:
    run = run_in(tmp_path / "bad")
    insert(run / "trace" / "m1.jsonl", 3, b"garbage" * 1_000)
    insert(run / "trace" / "m1.jsonl", 5, b"")
    insert(run / "trace" / "m1.jsonl", 6, '{"é":'.encode())
    analysed(tmp_path)
    rows = pq.read_table(tmp_path / "tables" / "quarantine").to_pylist()
    assert [(row["run_id"], row["scenario"], row["file"], row["line"], row["reason"]) for row in rows] == [
        ("bad", "pause", "m1.jsonl", 3, "not JSON"),
        ("bad", "pause", "m1.jsonl", 6, "torn"),
    ]
    assert [row["text"] for row in rows] == [("garbage" * 1_000)[:1_000], '{"é":']


def test_file_without_a_header_has_one_row_in_the_quarantine(tmp_path: Path) -> None:
    run = run_in(tmp_path / "bad")
    change(run / "trace" / "m1.jsonl", 1, '"header"', '"footer"')
    (bad,) = analysed(tmp_path).runs
    (row,) = pq.read_table(tmp_path / "tables" / "quarantine").to_pylist()
    assert (row["line"], row["reason"], row["detail"]) == (1, "no header", "header is missing")
    assert bad.quarantined["no header"] == len((run / "trace" / "m1.jsonl").read_bytes().splitlines())


def test_no_more_than_some_lines_are_shown(tmp_path: Path) -> None:
    for number in range(21):
        run = run_in(tmp_path / f"bad-{number}")
        (run / "trace" / "m1.jsonl").write_text("garbage\n" * 10)
    result = analysed(tmp_path)
    shown = damage_of(result, tmp_path / "tables")
    assert len(shown) == 41
    assert shown[-1].endswith("more lines; see the report, and the table quarantine")


# Damaged traces: if anything is missing, duplicated or out of order, the verdict is unknown, with file and reason.


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
