"""Reading runs: every line is an event or is counted as unusable, for the same reason as by the plain reader."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from comparison.ownership.cover import TOLERANCE_ACROSS_BOOTS_NS, TOLERANCE_NS
from comparison.pipeline.bronze.chunks import parts_of
from comparison.pipeline.bronze.kinds import UNKNOWN_KIND
from comparison.pipeline.bronze.runs import find_runs
from comparison.pipeline.bronze.tables import Tables, rows_of
from comparison.pipeline.reading import FileRead, read_tables
from kernel.trace.reader import Reason, read_trace
from tests.support.trace.traces import MS, e, write_run

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


def read(folder: Path) -> tuple[Tables, list[FileRead]]:
    runs = find_runs([folder])
    (part,) = parts_of(runs, 1)
    found, files = read_tables(runs, part.chunks)
    return found[0], files


def test_events_are_read_as_emitted(tmp_path: Path) -> None:
    run = write_run(tmp_path / "with space+and [sign] é", EVENTS)
    found, files = read(run)
    rows = rows_of(found, *found)
    assert [(row["kind"], row["role"], row["t_ns"]) for row in rows] == [
        ("run_started", "runner", 0),
        ("member_started", "member", 5 * MS),
        ("partitions_assigned", "member", 7 * MS),
    ]
    assert json.loads(rows[0]["parameters"]) == {"members": 2}
    assert [(tp["topic"], tp["partition"]) for tp in rows[2]["partitions"]] == [("t", 0), ("t", 1)]
    assert (rows[2]["member"], rows[2]["stream"], rows[2]["cause"]) == ("a", 0, "zxid:9")
    assert [(each.integrity.events, each.integrity.announced) for each in files] == [(2, 2), (1, 1)]


def test_unusable_lines_are_counted_by_the_reasons_of_the_plain_reader(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", EVENTS)
    path = run / "trace" / "m0.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(BAD_LINES) + "\n")
    found, files = read(run)
    assert Counter(files[0].integrity.quarantined) == Counter(
        str(reason) for reason in BAD_LINES.values() if reason is not None
    )
    assert Counter(files[0].integrity.quarantined) == Counter(str(each.reason) for each in read_trace(path).quarantined)
    assert [row["kind"] for row in rows_of(found, UNKNOWN_KIND)] == ["member_danced"]
    assert sum(each.integrity.events for each in files) == len(EVENTS) + 1


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [('{"header"', '{"footer"', Reason.NO_HEADER), ('"schema":2', '"schema":99', Reason.NEWER_SCHEMA)],
)
def test_all_lines_of_a_file_without_a_usable_header_are_unusable(
    tmp_path: Path, old: str, new: str, reason: Reason
) -> None:
    run = write_run(tmp_path / "run", EVENTS)
    path = run / "trace" / "m0.jsonl"
    path.write_text(path.read_text().replace(old, new))
    found, files = read(run)
    assert files[0].integrity.quarantined == {str(reason): 4}  # the header and the end marker too
    assert [row["kind"] for row in rows_of(found, *found)] == ["run_started"]


def test_runs_are_found_in_order_with_what_their_headers_say(tmp_path: Path) -> None:
    first = write_run(tmp_path / "a" / "zookeeper", EVENTS)
    second = write_run(tmp_path / "a" / "eager", EVENTS[:2], design="eager")
    runs = find_runs([tmp_path / "a"])
    assert [(run.folder, run.design, run.run_id) for run in runs] == [
        (second, "eager", "eager"),
        (first, "zookeeper", "zookeeper"),
    ]


def test_entries_that_are_not_files_are_counted_as_unreadable(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", EVENTS)
    (run / "trace" / "folder.jsonl").mkdir()
    (run / "trace" / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (run / "trace" / "loop.jsonl").symlink_to(run / "trace" / "loop.jsonl")
    found, files = read(run)
    assert sum(each.integrity.events for each in files) == len(EVENTS)
    assert sum((Counter(each.integrity.quarantined) for each in files), Counter()) == {str(Reason.UNREADABLE): 3}
    assert len(rows_of(found, *found)) == len(EVENTS)


def test_clocks_of_one_boot_need_no_alignment(tmp_path: Path) -> None:
    (run,) = find_runs([write_run(tmp_path / "run", EVENTS)])
    assert run.tolerance_ns == TOLERANCE_NS
    assert {file.offset_ns for file in run.files} == {0}
    assert {file.process for file in run.files} == {"m0", "runner"}


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


def test_repeats_differ_in_the_seed_only(tmp_path: Path) -> None:
    """Runs of a sweep that differ in anything else, whichever parameter it is, are numbered apart."""
    cells = [{"members": members} for members in (2, 4, 8)] + [{"members": 2, "settings": {"session.timeout.ms": 9000}}]
    for number, cell in enumerate(cells):
        for seed in (1, 2):
            folder = write_run(tmp_path / f"cell-{number}" / f"seed-{seed}", EVENTS)
            for file in (folder / "trace").glob("*.jsonl"):
                text = file.read_text().replace(f'"seed-{seed}"', f'"sweep/{number}/{seed}"')
                file.write_text(text.replace('"seed":1', f'"seed":{seed}'))
            about = {"parameters": {**cell, "seed": seed}}
            (folder / "run.json").write_text(json.dumps(about, sort_keys=bool(seed - 1)))
    assert [(run.seed, run.repeat) for run in find_runs([tmp_path])] == [(1, 1), (2, 2)] * len(cells)
