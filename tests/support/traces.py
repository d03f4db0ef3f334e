"""Hand-written traces: `e` makes an event in one line, `frame` a table of them, `write_run` the files of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.pipeline.ingest import EVENTS_SCHEMA
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity, TraceWriter
from tests.support.manual_clock import ManualClock
from tests.support.tracers import ListTracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

MS = 1_000_000


def e(at_ms: float, process: str, kind: str, **fields: Any) -> dict[str, Any]:
    """One event of `process` at a time in milliseconds, checked against the table.

    `t="t0 t1"` is short for partitions 0 and 1 of topic t (for `partitions` and, unless given, `all`);
    `p=0` for topic t, partition 0. `run` and `role` may be given; roles follow from the process's name.
    """
    row: dict[str, Any] = {"run": fields.pop("run", 0), "role": fields.pop("role", _role_of(process))}
    if (names := fields.pop("t", None)) is not None:
        partitions = [{"topic": name[0], "partition": int(name[1:])} for name in names.split()]
        fields = {"partitions": partitions, "all": partitions, **fields}
    if (partition := fields.pop("p", None)) is not None:
        fields = {"topic": "t", "partition": partition, **fields}
    checked = ListTracer(process=process)
    checked.emit(kind, **fields)
    return {**checked.events[0], **row, "t_ns": round(at_ms * MS), "ns": round(at_ms * MS), "file": 0}


def _role_of(process: str) -> str:
    first = process.partition("-")[0]
    return first if first in {Role.BROKER, Role.RUNNER, Role.OBSERVER, Role.PROXY} else Role.MEMBER


def frame(spark: SparkSession, events: Iterable[dict[str, Any]]) -> DataFrame:
    """Events as the pipeline's table; `seq` counts in the given order."""
    rows = [{**event, "seq": seq} for seq, event in enumerate(events)]
    return spark.createDataFrame(
        [tuple(row.get(name) for name in EVENTS_SCHEMA.fieldNames()) for row in rows], EVENTS_SCHEMA
    )


def write_run(
    folder: Path, events: Iterable[dict[str, Any]], *, scenario: str = "crash", design: str = "zookeeper"
) -> Path:
    """The files of a run, one for each process, as the writer would have written them; returns the folder."""
    clocks: dict[str, ManualClock] = {}
    writers: dict[str, TraceWriter] = {}
    (folder / "trace").mkdir(parents=True)
    for event in events:
        name = event["process"]
        if name not in writers:
            clocks[name] = ManualClock()
            identity = TraceIdentity(
                run=folder.name, scenario=scenario, design=design, role=Role(event["role"]), process=name, seed=1
            )
            writers[name] = TraceWriter(folder / "trace" / f"{name}.jsonl", identity, clock=clocks[name])
        clocks[name].advance_ms(round((event["t_ns"] - clocks[name].monotonic_ns()) / MS))
        fixed = {"run", "role", "t_ns", "file", "seq", "ns", "process"}
        writers[name].emit(**{field: value for field, value in event.items() if field not in fixed})
    for writer in writers.values():
        writer.close()
    return folder


def staged(
    spark: SparkSession, cases: Mapping[str, Sequence[dict[str, Any]]], stage: Callable[[DataFrame], DataFrame]
) -> dict[str, list[Row]]:
    """A stage's rows for several traces, each a separate run, in one Spark job: {case: rows}."""
    names = list(cases)
    rows: dict[str, list[Row]] = {name: [] for name in names}
    events = [{**event, "run": run} for run, name in enumerate(names) for event in cases[name]]
    for row in stage(frame(spark, events)).collect():
        rows[names[row.run]].append(row)
    return rows
