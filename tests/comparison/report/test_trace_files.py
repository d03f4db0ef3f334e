"""The table of a run's trace files: folded while all are whole, open with what is wrong."""

from __future__ import annotations

from typing import Any

from comparison.pipeline.analysis import compose
from comparison.report.page import page
from comparison.report.trace_files import HEADINGS, file_table
from comparison.results.run import FileIntegrity
from tests.support.runs.results import run


def file(name: str, **given: Any) -> FileIntegrity:
    usual: dict[str, Any] = {
        "file": f"{name}.jsonl",
        "process": name,
        "role": "member",
        "run": "r",
        "members": [f"{name}-id"],
        "lines": 1_202,
        "events": 1_200,
        "quarantined": {},
        "seq_distinct": 1_200,
        "seq_doubled": 0,
        "seq_missing": 0,
        "backwards": 0,
        "backwards_ns": 0,
        "ended": True,
        "announced": 1_200,
        "first_ns": 1_234_567,
        "last_ns": 2_500_000_000,
        "problems": [],
    }
    return FileIntegrity(**{**usual, **given})


NO_END = "m2.jsonl has no end marker, though nothing says that its process was killed: its tail may be lost"
TORN = file("m2", ended=False, announced=None, problems=[NO_END, "m2.jsonl: time goes backwards 1 time, by up to 3 ms"])
GONE = file(
    "m3",
    process="",
    members=[],
    lines=0,
    events=0,
    ended=False,
    first_ns=None,
    last_ns=None,
    problems=["m3.jsonl is in the list of run.json, but not in the folder"],
)


def shown(*files: FileIntegrity, **given: Any) -> Any:
    return compose([run(files=list(files), **given)])


def test_whole_files_are_folded() -> None:
    result = shown(file("m1"), file("m2", members=["a", "b", "c", "d"]))
    table = file_table(result.runs[0])
    assert table is not None
    assert (table.summary, table.is_whole) == ("2 trace files, whole", True)
    assert dict(zip(HEADINGS, table.rows[0].cells, strict=True)) == {
        "file": "m1.jsonl",
        "process": "m1",
        "member": "m1-id",
        "events": "1,200",
        "first event, s": "0.001",
        "last event, s": "2.500",
        "end marker": "yes",
        "what is wrong": "",
    }
    assert table.rows[1].cells[2] == "a, b and 2 more"
    assert '<details class="files"><summary>2 trace files, whole</summary>' in page(result)


def test_files_that_are_not_whole_are_open_and_say_why() -> None:
    result = shown(file("m1"), TORN, GONE, problems=[*TORN.problems, *GONE.problems])
    table = file_table(result.runs[0])
    assert table is not None
    assert (table.summary, table.is_whole) == ("3 trace files, 2 not whole", False)
    assert table.rows[1].cells[-1].startswith("has no end marker, though")
    assert table.rows[1].cells[-1].endswith("; time goes backwards 1 time, by up to 3 ms")
    assert table.rows[2].cells[:7] == ("m3.jsonl", "", "", "0", "", "", "")
    text = page(result)
    assert '<details class="files" open><summary class="doubt">3 trace files, 2 not whole</summary>' in text
    assert '<span class="doubt">is in the list of run.json, but not in the folder</span>' in text


def test_file_that_is_one_of_several_of_a_process_keeps_the_names_of_all() -> None:
    both = "m1-more.jsonl and m1.jsonl are all of the process m1"
    files = [file("m1-more", process="m1", problems=[both]), file("m1", problems=[both])]
    table = file_table(shown(*files, problems=[both, both]).runs[0])
    assert table is not None
    assert [row.cells[-1] for row in table.rows] == [both, both]


def test_result_that_says_nothing_of_files_has_no_table() -> None:
    assert file_table(shown().runs[0]) is None
    assert "trace file" not in page(shown())
