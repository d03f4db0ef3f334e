"""What is wrong with the traces of analysed runs, for standard error: file, line and reason, a line each."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from comparison.pipeline.bronze.quarantine import QUARANTINE
from comparison.screen.printable import printable
from kernel.platform.places import arrow_source, below

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comparison.results.result import Result
    from comparison.results.run import Run
    from kernel.platform.places import Place

#: How many lines of a file are shown, how many problems of a run, and how many in all.
LINES_OF_FILE, PROBLEMS_OF_RUN, SHOWN = 3, 5, 40


def damage_of(result: Result, tables: Place) -> list[str]:
    """The problems of every run that has any, and its unusable lines; `tables` is the folder of the tables."""
    damaged = {run.run_id: run for run in result.runs if run.problems}
    if not damaged:
        return []
    lines: dict[str, list[str]] = {run_id: [] for run_id in damaged}
    for run_id, text in _unusable_lines(tables, damaged):
        lines[run_id].append(text)
    found = []
    for run_id, run in damaged.items():
        found += lines[run_id]
        found += [f"{run.path}: {problem}" for problem in run.problems[:PROBLEMS_OF_RUN]]
        if more := run.problems[PROBLEMS_OF_RUN:]:
            found.append(f"{run.path}: {len(more)} more problems; see the report")
    if len(found) > SHOWN:
        found[SHOWN:] = [f"{len(found) - SHOWN} more lines; see the report, and the table {QUARANTINE}"]
    return [printable(text) for text in found]


def _unusable_lines(tables: Place, damaged: Mapping[str, Run]) -> Iterator[tuple[str, str]]:
    shown: Counter[tuple[str, str]] = Counter()
    columns = ["run_id", "file", "line", "reason", "detail"]
    for path in sorted(below(tables / QUARANTINE, "part-*.parquet")):
        for row in pq.read_table(**arrow_source(path), columns=columns, partitioning=None).to_pylist():
            place = row["run_id"], row["file"]
            if row["run_id"] in damaged and shown[place] < LINES_OF_FILE:
                shown[place] += 1
                detail = f" ({row['detail']})" if row["detail"] else ""
                line = f":{row['line']}" if row["line"] else ""
                name = f"{damaged[row['run_id']].path}/trace/{row['file']}{line}"
                yield row["run_id"], f"{name}: {row['reason']}{detail}"
