"""The tables of an analysis that one row a run or a figure is enough for; tasks write the larger ones themselves.

Every table begins with the columns that say which run a row is of, as result.json names it (`docs/tables.md`).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from msgspec.structs import asdict

from comparison.pipeline.bronze.kinds import RUN_COLUMNS
from comparison.pipeline.bronze.tables import with_run, write_table
from comparison.pipeline.figures.waits import wait_table
from comparison.pipeline.gold.course import course_table
from comparison.pipeline.silver.rounds import phase_table, round_table
from comparison.pipeline.silver.windows import change_table, fault_table
from comparison.results.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.measured import Measured
    from comparison.results.run import Run
    from kernel.platform.places import Place

RUNS_SCHEMA = pa.schema(
    [
        *RUN_COLUMNS,
        ("path", pa.string()),
        ("outcome", pa.string()),
        ("verdict", pa.string()),
        ("duration_s", pa.float64()),
        ("tolerance_ms", pa.float64()),
        ("events", pa.int64()),
        ("parameters", pa.string()),  # as JSON
    ]
)
METRICS_SCHEMA = pa.schema([*RUN_COLUMNS, ("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())])
#: One row a trace file, also for one that is missing.
FILES_SCHEMA = pa.schema(
    [
        *RUN_COLUMNS,
        ("file", pa.string()),
        ("process", pa.string()),
        ("role", pa.string()),
        ("members", pa.list_(pa.string())),
        ("lines", pa.int64()),
        ("events", pa.int64()),
        ("unusable", pa.int64()),
        ("seq_doubled", pa.int64()),
        ("seq_missing", pa.int64()),
        ("backwards", pa.int64()),
        ("backwards_ns", pa.int64()),
        ("ended", pa.bool_()),
        ("announced", pa.int64()),
        ("first_ns", pa.int64()),
        ("last_ns", pa.int64()),
        ("problems", pa.list_(pa.string())),
    ]
)
#: One row a change, stage and operation of the bystander.
BYSTANDERS_SCHEMA = pa.schema(
    [
        *RUN_COLUMNS,
        ("change", pa.string()),
        ("round", pa.int64()),
        ("members", pa.int64()),
        ("stage", pa.string()),
        ("op", pa.string()),
        ("answered", pa.int64()),
        ("failed", pa.int64()),
        ("p50_ms", pa.float64()),
        ("p99_ms", pa.float64()),
        ("max_ms", pa.float64()),
    ]
)
VERDICTS_SCHEMA = pa.schema(
    [*RUN_COLUMNS, *((name, pa.string()) for name in ("check_name", "kind", "outcome", "reason"))]
)
#: What is written here. Of a row, the columns of its table are taken.
_SCHEMAS: Mapping[str, pa.Schema] = MappingProxyType(
    {
        "runs": RUNS_SCHEMA,
        "files": FILES_SCHEMA,
        "metrics": METRICS_SCHEMA,
        "bystanders": BYSTANDERS_SCHEMA,
        "verdicts": VERDICTS_SCHEMA,
    }
)


#: The tables of what is about a run as a whole.
OF_RUNS: Mapping[str, Callable[[Measured], pa.Table]] = MappingProxyType(
    {
        "rounds": lambda measured: round_table(measured.rounds),
        "phases": lambda measured: phase_table(measured.phases),
        "changes": lambda measured: change_table(measured.changes),
        "faults": lambda measured: fault_table(measured.faults),
        "course": lambda measured: course_table(measured.course),
        "waits": wait_table,
    }
)


def write_runs(folder: Place, number: int, measured: Sequence[tuple[TraceRun, Measured]]) -> None:
    """Write the tables of OF_RUNS: a file each."""
    for name, table_of in OF_RUNS.items():
        tables = [with_run(run, table_of(each)) for run, each in measured]
        write_table(folder / name / f"part-{number:05}.parquet", pa.concat_tables(tables))


def write_results(folder: Place, runs: Sequence[tuple[TraceRun, Run]]) -> None:
    """Write the tables `runs`, `files`, `metrics`, `bystanders` and `verdicts`."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _SCHEMAS}
    for trace, run in runs:
        which = {field.name: getattr(trace, field.name) for field in RUN_COLUMNS}
        parameters = msgspec.json.encode(run.parameters).decode()
        rows["runs"].append({**asdict(run), **which, "parameters": parameters})
        rows["files"] += [{**asdict(file), **which, "unusable": sum(file.quarantined.values())} for file in run.files]
        rows["metrics"] += [
            {**which, "metric": name, "value": value, "unit": METRICS[name].unit} for name, value in run.metrics.items()
        ]
        rows["bystanders"] += [{**asdict(each), **which} for each in run.bystanders]
        rows["verdicts"] += [{**asdict(verdict), **which, "check_name": verdict.check} for verdict in run.verdicts]
    for name, schema in _SCHEMAS.items():
        write_table(folder / f"{name}.parquet", pa.Table.from_pylist(rows[name], schema))
