"""One side of the pipeline's measure in a process of its own: `python -m bench.pipeline_child SIDE SOURCE RUNS TABLES`.

Prints what it took and what it found, as one line of JSON. `SOURCE` is `json` or `tables`; the tables are those that
ours leaves, in the folder `TABLES`/tables. CPU seconds are of all processes, the JVM and its Python workers included;
memory is the greatest sum of their resident sets, sampled, in which pages that they share count for each.
"""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OURS, DUCKDB, NUMPY = "ours", "DuckDB", "numpy"
JSON, TABLES = "json", "tables"
_EVERY_S = 0.2
#: The heap of Spark's JVM, which only hands on what Python workers make.
_MEMORY = "1g"


def tree() -> list[psutil.Process]:
    me = psutil.Process()
    return [me, *me.children(recursive=True)]


def cpu_s() -> float:
    """CPU seconds of this process and all below it, ended ones too."""
    total = 0.0
    for process in tree():
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


class Watch:
    """The clocks since the last look, and the most memory so far."""

    def __init__(self) -> None:
        self.peak_mb = 0.0
        self._since = (time.monotonic(), cpu_s())

    def lap(self) -> dict[str, float]:
        before, self._since = self._since, (time.monotonic(), cpu_s())
        return {"wall_s": self._since[0] - before[0], "cpu_s": self._since[1] - before[1]}

    @contextmanager
    def sampling(self) -> Iterator[None]:
        ended = threading.Event()

        def sample() -> None:
            while not ended.wait(_EVERY_S):
                total = 0
                for process in tree():
                    try:
                        total += process.memory_info().rss
                    except psutil.NoSuchProcess:
                        continue
                self.peak_mb = max(self.peak_mb, total / 1e6)

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def ours(source: str, runs: Path, output: Path, watch: Watch) -> dict[str, Any]:
    import pyarrow.parquet as pq

    from comparison.pipeline.analysis import Again, analyze
    from comparison.pipeline.spark.session import starting_session

    if source == JSON:
        shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True, exist_ok=True)
    scratch = output.with_suffix(".spark")
    with starting_session(memory=_MEMORY, work_dir=scratch) as starting:
        spark = starting.session()
        session = watch.lap()
        result = analyze(spark, [runs], output=output, again=Again.READING if source == JSON else Again.MEASURING)
        work = watch.lap()
    kinds = {
        folder.name.partition("=")[2]: sum(pq.ParquetFile(file).metadata.num_rows for file in folder.iterdir())
        for folder in (output / "tables" / "events").iterdir()
    }
    return {"session": session, "work": work, "answers": {"kinds": kinds, "runs": msgspec.to_builtins(result.runs)}}


def duckdb(source: str, runs: Path, output: Path, watch: Watch) -> dict[str, Any]:
    from bench import pipeline_duckdb

    session = watch.lap()
    answers = pipeline_duckdb.answers(source == JSON, runs, output / "tables" / "events", output.with_suffix(".duckdb"))
    return {"session": session, "work": watch.lap(), "answers": answers}


def numpy(source: str, runs: Path, output: Path, watch: Watch) -> dict[str, Any]:
    from bench import pipeline_numpy

    session = watch.lap()
    answers = pipeline_numpy.answers(source == JSON, runs, output / "tables" / "events")
    return {"session": session, "work": watch.lap(), "answers": answers}


SIDES: dict[str, Callable[[str, Path, Path, Watch], dict[str, Any]]] = {OURS: ours, DUCKDB: duckdb, NUMPY: numpy}


def main() -> None:
    side, source, runs, output = sys.argv[1:]
    watch = Watch()
    with watch.sampling():
        found = SIDES[side](source, Path(runs), Path(output), watch)
    sys.stdout.write(json.dumps({**found, "peak_mb": watch.peak_mb}) + "\n")


if __name__ == "__main__":
    main()
