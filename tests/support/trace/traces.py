"""Hand-written traces: `e` makes an event in one line, `tables` makes tables, `write_run` the files of a run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa

from comparison.ownership.cover import TOLERANCE_NS
from comparison.pipeline.bronze.decode import decode
from comparison.pipeline.bronze.runs import TraceFile, TraceRun
from comparison.pipeline.bronze.tables import Tables, joined, tables_of
from comparison.pipeline.silver.context import Context, bounds_of, context_of
from comparison.pipeline.silver.groups import groups_of
from kernel.trace.events import COMMON_FIELDS, KINDS, Role
from kernel.trace.reader import HeaderLine
from kernel.trace.writer import TraceIdentity, TraceWriter
from tests.support.time.manual_clock import ManualClock
from tests.support.trace.tracers import ListTracer

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
    return first if first in {*Role} - {Role.MEMBER} else Role.MEMBER


def lines_of(events: Iterable[dict[str, Any]]) -> bytes:
    """The lines of events, as a file has them."""
    return b"".join(
        msgspec.json.encode(
            {name: event[name] for name in event if name in (*COMMON_FIELDS, *KINDS[event["kind"]].fields)}
        )
        + b"\n"
        for event in events
    )


def tables(events: Iterable[dict[str, Any]], *, numbered: bool = False) -> Tables:
    """Events of one run as the pipeline's tables, decoded from their lines.

    `seq` counts in the given order, unless the events are `numbered` already.
    """
    by_process: defaultdict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for seq, event in enumerate(events):
        own = event["seq"] if numbered else seq
        by_process[event["process"], event["role"]].append({**event, "seq": own, "ns": event["t_ns"]})
    pieces = []
    for (process, role), mine in sorted(by_process.items()):
        decoded = decode(lines_of(mine))
        assert not decoded.unusable
        pieces.append(tables_of(decoded, TraceFile(Path(f"{process}.jsonl"), 0, role=role, process=process)))
    return joined(pieces)


def traced_run(
    design: str = "zookeeper",
    *,
    scenario: str = "crash",
    tolerance_ns: int = TOLERANCE_NS,
    boots: Mapping[str, str] = MappingProxyType({}),
) -> TraceRun:
    """A run for measuring hand-written events: without files, except what distinguishes the boots of processes."""
    files = tuple(
        TraceFile(Path(f"{process}.jsonl"), 0, process=process, header=HeaderLine({"boot_id": boot}))
        for process, boot in boots.items()
    )
    return TraceRun("run", Path("run"), scenario, design, 1, files, tolerance_ns)


def context(found: Tables, run: TraceRun | None = None) -> Context:
    """The context of a run's tables."""
    return context_of(run or traced_run(), found, bounds_of(found), groups_of(found))


def staged(
    cases: Mapping[str, Sequence[dict[str, Any]]], stage: Callable[[Tables, Context], Any]
) -> dict[str, list[Any]]:
    """A stage's rows for several traces, each a separate run: {case: rows}."""
    return {name: rows(stage(found := tables(events), context(found))) for name, events in cases.items()}


def rows(found: Any) -> list[Any]:
    """The rows of a table, with their columns as attributes; anything else is returned as a list."""
    return [SimpleNamespace(**row) for row in found.to_pylist()] if isinstance(found, pa.Table) else list(found)


def write_run(
    folder: Path, events: Iterable[dict[str, Any]], *, scenario: str = "crash", design: str = "zookeeper"
) -> Path:
    """Write the files of a run, one for each process, as the tracer would, and their list. Returns the folder."""
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
    list_traces(folder)
    return folder


def list_traces(folder: Path) -> None:
    """Write a run.json that lists the trace files that are there."""
    listed = []
    for path in sorted((folder / "trace").glob("*.jsonl")):
        header = json.loads(path.read_bytes().partition(b"\n")[0])["header"]
        listed.append({"file": path.name, "process": header["process"], "role": header["role"]})
    (folder / "run.json").write_text(json.dumps({"traces": listed}), encoding="utf-8")
