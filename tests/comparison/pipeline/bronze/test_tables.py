"""Tables of events: the content of the lines, on the run's clock, unchanged by a round trip through Parquet."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comparison.pipeline.bronze.decode import decode
from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS, RUN_COLUMNS, UNKNOWN_KIND
from comparison.pipeline.bronze.runs import TraceFile
from comparison.pipeline.bronze.tables import (
    Tables,
    labelled,
    read_part,
    rows_of,
    tables_of,
    unlabelled,
    with_run,
    write_part,
    write_table,
)
from kernel.trace.events import KINDS, Type
from tests.support.properties import examples
from tests.support.trace.drawn_events import ANY_EVENT, events_of_kind, line_of
from tests.support.trace.traces import e, tables, traced_run

#: On another boot than the runner.
FILE = TraceFile(Path("m0.jsonl"), 0, role="member", process="m0", offset_ns=-5_000)


def tables_from(events: list[dict[str, Any]]) -> Tables:
    return tables_of(decode(b"".join(map(line_of, events))), FILE)


def expected(event: dict[str, Any]) -> dict[str, Any]:
    """The row of an event."""
    row = {"file": "m0.jsonl", "role": "member", "t_ns": event["ns"] - 5_000}
    row |= {name: event.get(name) for name in ("seq", "process", "member", "stream", "cause")}
    return row | {name: event.get(name) for name in KINDS[event["kind"]].fields}


def parsed(kind: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row with its JSON read."""
    details = [name for name, type_ in KINDS[kind].fields.items() if type_ is Type.DETAIL]
    return row | {name: json.loads(row[name]) for name in details if row[name] is not None}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_row_of_every_kind_has_what_its_line_said(kind: str) -> None:
    @given(st.lists(events_of_kind(kind), min_size=1, max_size=3))
    @settings(max_examples=examples(10))
    def check(events: list[dict[str, Any]]) -> None:
        found = tables_from(events)
        assert found.keys() == {kind}
        assert found[kind].schema == EVENT_SCHEMAS[kind]
        assert [parsed(kind, row) for row in found[kind].to_pylist()] == [expected(event) for event in events]

    check()


def test_event_of_an_unknown_kind_has_a_row_with_its_kind() -> None:
    event = {**e(7, "m0", "member_closed", group="g"), "kind": "member_danced"}
    found = tables_from([{name: event[name] for name in ("seq", "ns", "kind", "process", "member", "stream", "cause")}])
    assert found[UNKNOWN_KIND].schema == EVENT_SCHEMAS[UNKNOWN_KIND]
    (row,) = found[UNKNOWN_KIND].to_pylist()
    assert (row["kind"], row["t_ns"], row["process"]) == ("member_danced", 7_000_000 - 5_000, "m0")


@given(st.lists(ANY_EVENT, max_size=8))
@settings(max_examples=examples(30))
def test_tables_survive_a_round_trip_through_parquet(tmp_path_factory: pytest.TempPathFactory, events: list) -> None:
    folder = tmp_path_factory.mktemp("events")
    run = traced_run(design="eager")
    found = tables_from(events)
    write_part(folder, 3, labelled(run, found))
    again = read_part(folder, 3)
    assert unlabelled(again) == found
    for kind, table in again.items():
        assert table.column_names == [*(column.name for column in RUN_COLUMNS), *EVENT_SCHEMAS[kind].names]
    assert {path.parent.name for path in folder.rglob("*.parquet")} == {f"kind={kind}" for kind in found}
    assert {path.name for path in folder.rglob("*") if path.is_file()} <= {"part-00003.parquet"}


def test_rows_say_which_run_they_are_of() -> None:
    run = replace(traced_run(design="eager", scenario="join"), run_id="bundle/join/eager", seed=7, repeat=2)
    found = with_run(run, tables([e(1, "m0", "member_closed", group="g")])["member_closed"])
    assert found.schema.names[: len(RUN_COLUMNS)] == [column.name for column in RUN_COLUMNS]
    (row,) = found.to_pylist()
    assert [row[column.name] for column in RUN_COLUMNS] == ["bundle/join/eager", "join", "eager", 7, 2]


def test_part_that_is_written_again_replaces_what_was_there(tmp_path: Path) -> None:
    first, second = (labelled(traced_run(), tables([e(at_ms, "m0", "member_closed", group="g")])) for at_ms in (1, 2))
    for each in (first, second):
        write_part(tmp_path, 0, each)
    assert read_part(tmp_path, 0) == second
    assert read_part(tmp_path, 0, ["member_started"]) == read_part(tmp_path, 1) == {}


def test_file_that_could_not_be_written_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(table: object, where: Path, **_: object) -> None:
        where.write_bytes(b"half a table")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fails)
    with pytest.raises(OSError, match="No space left"):
        write_table(tmp_path / "part-00000.parquet", EVENT_SCHEMAS["member_closed"].empty_table())
    assert not list(tmp_path.rglob("*.parquet"))


@given(st.lists(ANY_EVENT, max_size=8))
@settings(max_examples=examples(30))
def test_rows_of_several_kinds_are_in_order_of_time(events: list[dict[str, Any]]) -> None:
    found = tables_from(events)
    rows = rows_of(found, *KINDS)
    assert sorted((row["kind"], row["seq"]) for row in rows) == sorted((each["kind"], each["seq"]) for each in events)
    places = [(row["t_ns"], row["seq"]) for row in rows]
    assert places == sorted(places)


def test_detail_is_kept_as_json() -> None:
    (row,) = tables([e(0, "runner", "run_started", parameters={"a": [1, {"b": None}]})])["run_started"].to_pylist()
    assert msgspec.json.decode(row["parameters"]) == {"a": [1, {"b": None}]}


#: Words that DuckDB or Spark's ANSI mode take as columns in quotes only, as far as they could be names of ours.
SQL_WORDS = """
all and any array as asc at between both by case cast check column constraint create cross current default desc distinct
do else end except false fetch for foreign from full grant group having in inner intersect into is join lateral leading
left like limit natural not null offset on only or order outer overlaps primary qualify references right select
session_user some table then time to trailing true union unique user using when where window with
"""


@pytest.mark.parametrize("kind", EVENT_SCHEMAS)
def test_no_column_needs_quotes_in_a_query(kind: str, tmp_path: Path) -> None:
    write_part(tmp_path, 0, {kind: EVENT_SCHEMAS[kind].empty_table()})
    names = pq.read_schema(tmp_path / f"kind={kind}" / "part-00000.parquet").names
    assert [name for name in names if name in SQL_WORDS.split() or not re.fullmatch("[a-z][a-z_]*", name)] == []
    assert len(set(names)) == len(names)
    assert read_part(tmp_path, 0)[kind].schema.names == EVENT_SCHEMAS[kind].names
