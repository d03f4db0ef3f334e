"""Speed of the pipeline, in events per second, on a generated run with known results, beside plain Python.

The peer reads the same lines with msgspec in one process and counts them by kind: no analysis of JSON lines on one core
can be faster. The results are checked against what the generator wrote.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comparison.pipeline.analysis import analyze
from comparison.pipeline.synthetic import write_synthetic
from kernel.trace.reader import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from comparison.pipeline.synthetic_truth import Truth


@dataclass(frozen=True)
class EventRate:
    """`cold_s` is the first analysis of the session, `warm_s` the second; neither includes the session's start."""

    events: int
    cold_s: float
    warm_s: float
    reading_s: float  #: plain Python reading and checking the same files


def event_rate(spark: SparkSession, folder: Path, events: int) -> EventRate:
    run = folder / f"synthetic-{events}"
    truth = write_synthetic(run, events_min=events, seed=7)
    seconds = []
    for _ in range(2):
        started = time.monotonic()
        result = analyze(spark, [run])
        seconds.append(time.monotonic() - started)
    _check(result, truth)
    started = time.monotonic()
    read = sum(len(read_trace(path).events) for path in run.rglob("*.jsonl"))
    reading_s = time.monotonic() - started
    if read != truth.events:
        raise RuntimeError(f"{read} events were read back, {truth.events} were written")
    return EventRate(truth.events, seconds[0], seconds[1], reading_s)


def _check(result: dict[str, Any], truth: Truth) -> None:
    """Check the results: a benchmark that does not measures nothing."""
    (run,) = result["runs"]
    names = ("duplicates", "lost", "commits", "stale_writes", "moved_back_records", "final_behind")
    found = {name: run["metrics"][name] for name in names}
    expected = {name: getattr(truth, name) for name in names}
    if found != expected:
        raise RuntimeError(f"the analysis found {found}, the generator wrote {expected}")
