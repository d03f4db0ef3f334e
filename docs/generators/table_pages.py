"""Fill `trace-format.md` and `tables.md`, the dictionaries of trace files and of the tables of an analysis.

Both come from the schemas in the code and from `docs.generators.columns`; a test compares them.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from comparison.pipeline.bronze.kinds import EVENT_SCHEMAS, RUN_COLUMNS, UNKNOWN_KIND
from comparison.pipeline.bronze.quarantine import QUARANTINE_SCHEMA
from comparison.pipeline.figures.waits import WAIT_SCHEMA
from comparison.pipeline.gold.commits import COMMIT_SCHEMA
from comparison.pipeline.gold.course import COURSE_SCHEMA
from comparison.pipeline.gold.cover import SEGMENT_SCHEMA
from comparison.pipeline.gold.ownership import INTERVAL_SCHEMA
from comparison.pipeline.silver.rounds import PHASE_SCHEMA, ROUND_SCHEMA
from comparison.pipeline.silver.windows import CHANGE_SCHEMA, FAULT_SCHEMA
from comparison.pipeline.written import BYSTANDERS_SCHEMA, FILES_SCHEMA, METRICS_SCHEMA, RUNS_SCHEMA, VERDICTS_SCHEMA
from comparison.results.metrics import METRICS
from comparison.sweep.tables import CELLS_SCHEMA, EXPONENTS_SCHEMA
from docs.generators import columns
from docs.generators.pages import DOCS, filled
from kernel.trace.column_names import FILE_NAMES
from kernel.trace.events import COMMON_FIELDS, END_FIELDS, HEADER_FIELDS, KINDS
from kernel.trace.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

    from docs.generators.columns import Column
    from kernel.trace.events import Kind, Type

TRACE_PAGE, TABLES_PAGE = DOCS / "trace-format.md", DOCS / "tables.md"
_OF = (
    "A figure is of the whole *run*, the group's forming included; of its *measured stretch*, from the first steady "
    "stage, change or fault until the members are stopped; or of the *changes* in that, each until the next one. A "
    "name ends in its unit, `_ms` or `_s` (`_partition_s`: seconds summed over partitions); other figures are counts."
)
#: What all figures of a bystander are, whose names say the rest.
_BYSTANDERS = (
    "how long an uninvolved client's get or set on the same ZooKeeper took before and during the changes: the median "
    "(p50) and the 99th percentile"
)
#: In every table.
RUN_NAMES = tuple(column.name for column in RUN_COLUMNS)
_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int64())]))
_TYPES: Mapping[pa.DataType, str] = {
    pa.string(): "text",
    pa.int64(): "integer",
    pa.float64(): "number",
    pa.bool_(): "flag",
    pa.list_(pa.string()): "list of texts",
    _PARTITIONS: "list of (topic, partition)",
}


class Table(NamedTuple):
    """A table of an analysis: what a row is, what tells rows apart beside the run, and a query."""

    schema: pa.Schema
    files: str
    row: str
    key: tuple[str, ...]
    query: str


#: Every table but those of events.
TABLES: Mapping[str, Table] = MappingProxyType(
    {
        "runs": Table(
            RUNS_SCHEMA,
            "runs.parquet",
            "One row per run.",
            (),
            "SELECT scenario, design, seed, verdict, events FROM 'tables/runs.parquet' ORDER BY run_id",
        ),
        "verdicts": Table(
            VERDICTS_SCHEMA,
            "verdicts.parquet",
            "One row per check of a run.",
            ("check_name",),
            "SELECT run_id, check_name, reason FROM 'tables/verdicts.parquet' WHERE outcome <> 'as expected'",
        ),
        "metrics": Table(
            METRICS_SCHEMA,
            "metrics.parquet",
            "One row per figure of a run. [Metrics](#metrics-by-name) says what each is.",
            ("metric",),
            "SELECT design, median(value) AS settled_ms FROM 'tables/metrics.parquet'\n"
            "WHERE metric = 'converge_ms' GROUP BY design",
        ),
        "bystanders": Table(
            BYSTANDERS_SCHEMA,
            "bystanders.parquet",
            "One row per change, stage and operation of an uninvolved client of the same ZooKeeper. *During* lasts "
            "from the change until the group has settled, *before* from the stage `steady` until the change. Only "
            "`herd` has such a client.",
            ("change", "round", "stage", "op"),
            "SELECT design, members, op, stage, p50_ms, p99_ms, answered\n"
            "FROM 'tables/bystanders.parquet' ORDER BY ALL",
        ),
        "files": Table(
            FILES_SCHEMA,
            "files.parquet",
            "One row per trace file, also for one that run.json lists and that is missing.",
            ("file",),
            "SELECT run_id, file, lines, unusable, problems FROM 'tables/files.parquet'\n"
            "WHERE unusable > 0 OR NOT ended",
        ),
        "quarantine": Table(
            QUARANTINE_SCHEMA,
            "quarantine/*.parquet",
            "One row per unusable line; of each file only the first ones, `files` has the number of all. Without such "
            "lines there is no table.",
            ("file", "line"),
            "SELECT run_id, file, line, reason, detail FROM 'tables/quarantine/*.parquet'",
        ),
        "ownership": Table(
            INTERVAL_SCHEMA,
            "ownership/*.parquet",
            "One row per interval in which somebody had a partition: three views of it.",
            ("view", "group_id", "topic", "partition", "owner", "from_ns"),
            "SELECT owner, count(*) AS times, sum(until_ns - from_ns) / 1e9 AS owned_s\n"
            "FROM 'tables/ownership/*.parquet' WHERE view = 'believed' GROUP BY owner",
        ),
        "segments": Table(
            SEGMENT_SCHEMA,
            "segments/*.parquet",
            "One row per stretch of a partition's line in which nothing changes: unowned time, double ownership, lost "
            "and repeated records.",
            ("view", "group_id", "topic", "partition", "low"),
            "SELECT topic, partition, sum(high - low) / 1e9 AS unowned_s\n"
            "FROM 'tables/segments/*.parquet' WHERE view = 'authority' AND is_wanted AND holders = 0\n"
            "GROUP BY topic, partition",
        ),
        "commits": Table(
            COMMIT_SCHEMA,
            "commits/*.parquet",
            "One row per commit at the authority, with what was true of it then.",
            ("group_id", "topic", "partition", "t_ns", "by_member"),
            "SELECT t_ns, topic, partition, by_member, moved_back_by\n"
            "FROM 'tables/commits/*.parquet' WHERE moved_back_by > 0",
        ),
        "rounds": Table(
            ROUND_SCHEMA,
            "rounds/*.parquet",
            "One row per rebalance of a whole group: a coordinator's generation, or overlapping rebalances of members.",
            ("round",),
            "SELECT run_id, round, (until_ns - from_ns) / 1e6 AS lasted_ms FROM 'tables/rounds/*.parquet'",
        ),
        "phases": Table(
            PHASE_SCHEMA,
            "phases/*.parquet",
            "One row per phase of a member's rebalance.",
            ("process", "member", "phase", "from_ns"),
            "SELECT phase, median(until_ns - from_ns) / 1e6 AS median_ms FROM 'tables/phases/*.parquet' GROUP BY phase",
        ),
        "changes": Table(
            CHANGE_SCHEMA,
            "changes/*.parquet",
            "One row per change of the group, or a fault that is measured like one, and the time in which its cost is "
            "counted.",
            ("number",),
            "SELECT run_id, change, round, (settled_ns - from_ns) / 1e6 AS settled_ms FROM 'tables/changes/*.parquet'",
        ),
        "faults": Table(
            FAULT_SCHEMA,
            "faults/*.parquet",
            "One row per fault of one process.",
            ("fault", "target", "from_ns"),
            "SELECT fault, target, (healed_ns - from_ns) / 1e6 AS lasted_ms FROM 'tables/faults/*.parquet'",
        ),
        "course": Table(
            COURSE_SCHEMA,
            "course/*.parquet",
            "One row per interval of the measured stretch of a run: all groups and partitions together. All intervals "
            "of a run are equally long, the last one may be shorter.",
            ("from_ns",),
            "SELECT run_id, max(lag) AS lag_max, sum(duplicates) AS duplicates\n"
            "FROM 'tables/course/*.parquet' GROUP BY run_id",
        ),
        "waits": Table(
            WAIT_SCHEMA,
            "waits/*.parquet",
            "One row per member at the barrier of a coordinator's round, where members wait until the last one has "
            "joined.",
            ("round", "process", "member"),
            "SELECT run_id, round, process, waited_ns / 1e6 AS waited_ms FROM 'tables/waits/*.parquet'\n"
            "WHERE NOT is_waited_for",
        ),
    }
)

#: The tables of a sweep, which are of many runs together.
SWEEP_TABLES: Mapping[str, Table] = MappingProxyType(
    {
        "cells": Table(
            CELLS_SCHEMA,
            "cells.parquet",
            "One row per figure of a cell.",
            ("sweep", "cell", "scenario", "design", "metric"),
            "SELECT design, axes, median FROM 'tables/cells.parquet' WHERE metric = 'converge_ms'",
        ),
        "exponents": Table(
            EXPONENTS_SCHEMA,
            "exponents.parquet",
            "One row per figure along one numeric axis.",
            ("sweep", "scenario", "design", "metric", "axis", "axes"),
            "SELECT design, metric, axis, exponent FROM 'tables/exponents.parquet' WHERE exponent > 1",
        ),
    }
)

_SWEEP_HEAD = """## Tables of a sweep

In `tables/` of a sweep's folder, beside those of its runs ([Sweeps](sweeps.md)). Their rows are of many runs, so
they have no columns of one run.
"""


def trace_page() -> str:
    """The page of trace files."""
    kinds_of = Counter(field for kind in KINDS.values() for field in kind.fields)
    shared = {name: KINDS[kind].fields[name] for kind in KINDS for name in KINDS[kind].fields if kinds_of[name] > 1}
    parts = [
        '## The header\n\nThe first line: `{"header": {...}}`.\n',
        _fields(HEADER_FIELDS, columns.HEADER),
        '## The end marker\n\nThe last line: `{"end": {...}}`.\n',
        _fields(END_FIELDS, columns.END),
        "## Every event\n",
        _fields(COMMON_FIELDS, columns.COMMON),
        "## Fields that several kinds have\n\nWith what null says, in the kinds that allow it.\n",
        _fields(dict(sorted(shared.items())), columns.FIELDS),
        "## Kinds\n\nThe fields of each kind beside those of every event. What is not explained is in the list "
        "above. A field with a question mark may be null, or left out.\n",
        *(f"### {name}\n\n{kind.meaning}\n\n{_fields_of(name, kind, shared)}" for name, kind in KINDS.items()),
    ]
    return filled(TRACE_PAGE, {"trace": "\n".join(parts)})


def _fields_of(name: str, kind: Kind, shared: Container[str]) -> str:
    """The fields of a kind, after the others those that have a meaning or words of their own."""
    plain, lines = [], []
    for field, type_ in kind.fields.items():
        shown = f"`{field}`" + "?" * (field in kind.optional)
        words = ", ".join(f"`{word}`" for word in WORDS.get((name, field), ()))
        if field not in shared or (name, field) in columns.OF_KIND:
            column = columns.OF_KIND.get((name, field), columns.FIELDS[field])
            column = column._replace(null=column.null if field in kind.optional else "")
            lines.append(_line(shown, type_.value, column, words))
        elif words:
            lines.append(f"- {shown}: {words}\n")
        else:
            plain.append(shown)
    return "".join([f"- {', '.join(plain)}\n" if plain else "", *lines])


def _line(shown: str, type_: str, column: Column, words: str = "") -> str:
    """A field or column with its type and unit, unless it is a text, and what it means."""
    typed = f"{type_}, {column.unit}" if column.unit else type_
    return f"- {shown}{'' if typed == _TYPES[pa.string()] else f' ({typed})'}: {_said(column, words)}\n"


def _said(column: Column, words: str = "") -> str:
    """What a column means, with its words and what null says."""
    meaning = f"{column.meaning}: {words}" if words else column.meaning
    return f"{meaning}; null: {column.null}" if column.null else meaning


def _fields(fields: Mapping[str, Type], meanings: Mapping[str, Column]) -> str:
    return "".join(_line(f"`{name}`", type_.value, meanings[name]) for name, type_ in fields.items())


def _columns(schema: pa.Schema, meanings: Mapping[str, Column], key: Container[str] = ()) -> str:
    lines = []
    for field in schema:
        name = FILE_NAMES.get(field.name, field.name)
        lines.append(_line(f"**`{name}`**" if name in key else f"`{name}`", _TYPES[field.type], meanings[name]))
    return "".join(lines)


def tables_page() -> str:
    """The page of tables."""
    parts = [_columns(pa.schema(RUN_COLUMNS), columns.RUN)]
    for name, table in TABLES.items():
        own = pa.schema([column for column in table.schema if column.name not in RUN_NAMES])
        parts += _section(name, table._replace(schema=own), 2)
    parts += [_events(), _SWEEP_HEAD]
    for name, table in SWEEP_TABLES.items():
        parts += _section(name, table, 3)
    return filled(TABLES_PAGE, {"tables": "\n".join([*parts, _metrics()])})


def _section(name: str, table: Table, level: int) -> list[str]:
    return [
        f"{'#' * level} {name}\n\n{table.row}\n",
        _columns(table.schema, columns.TABLES[name], table.key),
        f"```sql\n{table.query}\n```\n",
    ]


def _events() -> str:
    renamed = ", ".join(f"`{field}` is `{name}`" for field, name in FILE_NAMES.items())
    own = pa.schema([EVENT_SCHEMAS["run_started"].field(name) for name in columns.EVENT])
    return "\n".join(
        [
            "## Events\n\n`tables/events/kind=<kind>/*.parquet`: a table for each kind of event that the runs have. "
            "One row per event; with `seq`, the file's name is its key.\n",
            _columns(own, columns.EVENT, ("file",)),
            "The other columns are the fields of [the kind](trace-format.md#kinds) and of [every "
            "event](trace-format.md#every-event), without `ns` and `kind`. Where a field's name would need quotes in "
            f"SQL, the column has another one: {renamed}. Fields of the type `detail` are JSON, as text. A kind that "
            f"this version does not know is in `kind={UNKNOWN_KIND}`, with its name as `kind`.\n",
            "```sql\nSELECT process, sum(last - first + 1) AS records\n"
            "FROM 'tables/events/kind=records_delivered/*.parquet' GROUP BY process\n```\n",
        ]
    )


def _metrics() -> str:
    parts = [f"## Metrics by name\n\n{_OF}\n"]
    for of in dict.fromkeys(metric.of for metric in METRICS.values()):
        meanings: dict[str, list[str]] = {}
        for name, metric in METRICS.items():
            if metric.of is of:
                meaning = _BYSTANDERS if name.startswith("bystander_") else metric.meaning
                meanings.setdefault(meaning, []).append(f"`{name}`")
        lines = "".join(f"- {', '.join(names)}: {meaning}\n" for meaning, names in meanings.items())
        parts.append(f"### Of the {of.value}\n\n{lines}")
    return "\n".join(parts)


def files() -> dict[Path, str]:
    """The generated pages with their content."""
    return {TRACE_PAGE: trace_page(), TABLES_PAGE: tables_page()}
