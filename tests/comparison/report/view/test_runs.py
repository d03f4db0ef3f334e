"""What the report reads of the tables: two truths a partition, and one short name a member, whatever its ids."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS, RUN_COLUMNS, named_in_files
from comparison.pipeline.bronze.tables import write_table
from comparison.pipeline.figures.waits import WAIT_SCHEMA
from comparison.pipeline.gold.commits import COMMIT_SCHEMA
from comparison.pipeline.gold.course import COURSE_SCHEMA
from comparison.pipeline.gold.cover import SEGMENT_SCHEMA
from comparison.pipeline.gold.ownership import INTERVAL_SCHEMA
from comparison.pipeline.silver.rounds import PHASE_SCHEMA, ROUND_SCHEMA
from comparison.pipeline.silver.windows import FAULT_SCHEMA
from comparison.report.view.model import Fault, Holding, Overlap, Phase, RunView, Stretch
from comparison.report.view.naming import LETTERS_MAX, MemberNames, place_of
from comparison.report.view.runs import read_views
from comparison.report.view.tables import COLUMNS, MEMBERS, ROWS_MAX, SEVERAL, TablesMissing, read_tables
from tests.support.runs.seen_runs import UUID, analysed_cut, analysed_inline

SCHEMAS = {
    "ownership": INTERVAL_SCHEMA,
    "segments": SEGMENT_SCHEMA,
    "commits": COMMIT_SCHEMA,
    "rounds": ROUND_SCHEMA,
    "phases": PHASE_SCHEMA,
    "faults": FAULT_SCHEMA,
    "course": COURSE_SCHEMA,
    "waits": WAIT_SCHEMA,
    MEMBERS: EVENT_SCHEMAS["member_started"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return analysed_cut(tmp_path_factory.mktemp("cut"))


@pytest.fixture(scope="module")
def views(folder: Path) -> dict[str, RunView]:
    found = read_views(analysed_inline(folder), folder)
    return {view.design: view for view in found if view is not None}


def test_tables_have_the_columns_that_the_report_reads() -> None:
    assert SCHEMAS.keys() == COLUMNS.keys()
    for name, columns in COLUMNS.items():
        assert set(columns) <= set(named_in_files(SCHEMAS[name])), name


def test_two_members_that_deliver_are_an_overlap_with_both_names(views: dict[str, RunView]) -> None:
    lane, other = views["zookeeper"].partitions
    assert (lane.name, other.name) == ("t-0", "t-1")
    assert lane.named == (Holding(800, 4_500, "m1"), Holding(4_800, 9_500, "m2"))
    assert lane.delivering == (Holding(1_000, 8_500, "m1"), Holding(5_000, 9_500, "m2"))
    assert lane.overlaps == (Overlap(5_000, 8_500, ("m1", "m2")),)
    assert lane.unnamed == (Stretch(4_500, 4_800),)
    assert lane.unclaimed == ()  # m1 still believes that it owns the partition
    assert other.overlaps == ()


def test_design_that_fences_has_a_gap_instead_of_an_overlap(views: dict[str, RunView]) -> None:
    lane, _ = views["eager"].partitions
    assert lane.overlaps == ()
    assert lane.unclaimed == (Stretch(4_100, 4_800),)


def test_commits_say_how_the_authority_answered(views: dict[str, RunView]) -> None:
    accepted, following, back = views["zookeeper"].partitions[0].commits
    assert (accepted.member, accepted.is_accepted, accepted.moved_back_by) == ("m1", True, 0)
    assert (following.member, following.offset) == ("m2", 30)
    assert (back.member, back.is_accepted, back.is_stale, back.moved_back_by) == ("m1", True, True, 21)
    refused = views["eager"].partitions[0].commits[-1]
    assert (refused.member, refused.outcome) == ("m1", "UNKNOWN_MEMBER_ID")


def test_run_has_its_faults_rounds_phases_and_bounds(views: dict[str, RunView]) -> None:
    view = views["eager"]
    assert view.faults == (Fault("cut", "m1", 2_000, 8_000),)
    assert view.zero_ms == 2_000
    assert [(each.number, each.generation, each.from_ms, each.until_ms) for each in view.rounds] == [
        (1, 1, 600, 790),
        (2, 2, 4_600, 4_790),
    ]
    assert view.phases[:2] == (Phase(600, 700, "m1", "join"), Phase(700, 750, "m1", "claim"))
    assert view.began_ms <= 600
    assert view.ended_ms >= 9_500
    assert view.members == ("m1", "m2")


def test_members_of_one_process_are_numbered_and_keep_their_name_when_they_join_again() -> None:
    ids = [f"m1-{n}-{UUID}" for n in (0, 1)]
    again = ids[0].replace("1234567", "7654321")
    started = [{"process": "m1", "member": each, "stream": 0} for each in (*ids, again)]
    names = MemberNames([f"m1/{ids[1]}/0"], started)
    assert names.members == ("m1-0", "m1-1")
    assert [names.of_authority(each) for each in (*ids, again)] == ["m1-0", "m1-1", "m1-0"]
    assert names.of_member(None, "m1") == "m1"


def test_threads_of_a_consumer_are_named_by_their_streams() -> None:
    started = [{"process": "m2", "member": "g_host-1-aa", "stream": None}]
    names = MemberNames(["m2/g_host-1-aa/0", "m2/g_host-1-aa/1"], started)
    assert [names.of_authority(f"g_host-1-aa-{n}") for n in (0, 1)] == ["m2-0", "m2-1"]
    assert names.of_owner("m2/g_host-1-aa/1") == "m2-1"
    assert names.of_authority("another") == "another"
    assert names.members == ("m2-0", "m2-1", "another")


def test_long_names_are_short_and_distinct() -> None:
    long = [f"{'x' * n}-consumer-of-orders" for n in (5, 6)]
    names = MemberNames([], [{"process": each, "member": each, "stream": None} for each in long])
    assert len(set(names.members)) == 2
    assert all(len(each) <= LETTERS_MAX for each in names.members)
    assert set(names.full.values()) == set(long)


@pytest.mark.parametrize(("name", "place"), [("m1.2", "m1"), ("m1.2-0", "m1-0"), ("m10", "m10"), ("a.b", "a.b")])
def test_restarted_member_keeps_its_place(name: str, place: str) -> None:
    assert place_of(name) == place


def test_missing_table_asks_for_another_analysis(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "old")
    shutil.rmtree(tmp_path / "old" / "tables" / "commits")
    with pytest.raises(TablesMissing, match=r"commits is missing. Analyse the run again"):
        read_tables(tmp_path / "old")


def test_lanes_of_a_long_run_are_joined_and_not_emptied(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "long")
    lanes = 4
    count = lanes * ROWS_MAX // 2
    begins = [10 * (n // lanes) for n in range(count)]
    rows = pa.table(
        {
            **{
                name: pa.repeat(value, count) for name, value in {"run_id": "r", "scenario": "s", "design": "d"}.items()
            },
            **{name: pa.repeat(1, count) for name in ("seed", "repeat")},
            "view": pa.repeat("authority", count),
            "group_id": pa.repeat("g", count),
            "topic": pa.repeat("t", count),
            "partition": [n % lanes for n in range(count)],
            "owner": pa.repeat("m1", count),
            "from_ns": begins,
            "until_ns": [at + 9 for at in begins],
            "closed_by": pa.repeat("x", count),
            "gone_ns": pa.nulls(count, pa.int64()),
        }
    )
    table = tmp_path / "long" / "tables" / "ownership"
    shutil.rmtree(table)
    table.mkdir()
    pq.write_table(rows, table / "part.parquet")
    found = read_tables(tmp_path / "long")["r"].rows["ownership"]
    assert len(found) <= ROWS_MAX + lanes * 500
    assert {row["partition"] for row in found if row["owner"] == SEVERAL} == set(range(lanes))
    for lane in range(lanes):  # everything is covered, by its own stretch or by a joined one
        mine = [row for row in found if row["partition"] == lane]
        assert min(row["from_ns"] for row in mine) == 0
        assert max(row["until_ns"] for row in mine) == begins[-1] + 9


def test_long_run_is_thinned_but_keeps_what_tells_something(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "long")
    count, which = 3 * ROWS_MAX, {"run_id": "r", "scenario": "s", "design": "d", "seed": 1, "repeat": 1}
    usual = {"group": "g", "topic": "t", "partition": 0, "offset": 1, "by": "m", "is_stale": False, "is_old": False}
    rows = pa.table(
        {
            **{name: pa.repeat(value, count) for name, value in {**which, **usual, "is_fenced": False}.items()},
            "epoch": pa.nulls(count, pa.int64()),
            "owner": pa.nulls(count, pa.string()),
            "t_ns": pa.array(range(count)),
            "outcome": pa.array(["accepted"] * (count - 1) + ["ILLEGAL_GENERATION"]),
            "moved_back_by": pa.array([7] + [0] * (count - 1)),
        }
    )
    schema = pa.schema([*RUN_COLUMNS, *COMMIT_SCHEMA])
    write_table(tmp_path / "long" / "tables" / "commits" / "part.parquet", rows.select(schema.names).cast(schema))
    found = read_tables(tmp_path / "long")["r"]
    kept = found.rows["commits"]
    assert len(kept) <= ROWS_MAX + 1
    assert found.left_out == {"commits": count - len(kept)}
    assert (kept[0]["moved_back_by"], kept[-1]["outcome"]) == (7, "ILLEGAL_GENERATION")
