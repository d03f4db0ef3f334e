"""Figures that are sums, counts and joins over the tables of partitions: SQL that Spark and DuckDB both understand.

Each file beside this module is a query that anybody can run on the tables of an analysis (`docs/pipeline.md`). It gives
a row for each run, window and view that it has something to say of, and a column a figure. `statement` is all of them
in one, a row a figure, so that all figures of all runs are one query with one answer.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from comparison.pipeline.measured import Begun, CommitSums, Coverage, Turnover
from comparison.results.keys import WHOLE_RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comparison.pipeline.silver.context import Window

#: The figures that each query gives.
_FIGURES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "coverage": tuple(name for name in Coverage.__struct_fields__ if name != "doubled_longest"),
        "overlaps": ("doubled_longest",),
        "turnover": Turnover.__struct_fields__,
        "begun": Begun.__struct_fields__,
        "commits": CommitSums.__struct_fields__,
    }
)
#: What the queries ask beside the tables of partitions: `changes` by another name, and each whole run as -1.
WINDOW_SCHEMA = pa.schema(
    [("run_id", pa.string()), ("number", pa.int64()), ("from_ns", pa.int64()), ("until_ns", pa.int64())]
)


class Sums(NamedTuple):
    """The figures of one run, by window and view."""

    coverage: dict[tuple[int, str], Coverage]
    turnover: dict[int, Turnover]
    begun: dict[tuple[int, str], Begun]
    commits: CommitSums


def text_of(query: str) -> str:
    """A query as it is in its file."""
    return resources.files(__package__).joinpath(f"{query}.sql").read_text(encoding="utf-8")


@cache
def statement() -> str:
    """All queries in one: run_id, number, view, query, figure, value."""
    parts = []
    for query, figures in _FIGURES.items():
        numbers = ", ".join(f"CAST({figure} AS BIGINT) AS {figure}" for figure in figures)
        parts.append(
            f"SELECT run_id, number, view, '{query}' AS query, figure, value\n"
            f"FROM (SELECT run_id, number, view, {numbers} FROM (\n{text_of(query)}) answers) figures\n"
            f"UNPIVOT (value FOR figure IN ({', '.join(figures)}))"
        )
    return "\nUNION ALL\n".join(parts)


def windows_of(runs: Iterable[tuple[str, Sequence[Window]]]) -> pa.Table:
    """WINDOW_SCHEMA, of runs by their ids."""
    rows = [(run_id, each.number, each.from_ns, each.until_ns) for run_id, windows in runs for each in windows]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[]] * len(WINDOW_SCHEMA)
    return pa.table(columns, schema=WINDOW_SCHEMA)


def sums_of(answer: Iterable[tuple[str, int, str, str, str, int]]) -> dict[str, Sums]:
    """The rows of `statement`, by run; a run of which it says nothing is left out."""
    found: defaultdict[str, defaultdict[str, dict[tuple[int, str], dict[str, int]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for run_id, number, view, query, figure, value in answer:
        found[run_id][query].setdefault((number, view), {})[figure] = value
    return {run_id: _of_one(queries) for run_id, queries in found.items()}


def _of_one(queries: Mapping[str, Mapping[tuple[int, str], Mapping[str, int]]]) -> Sums:
    coverage, longest, turnover, begun, commits = (queries.get(query, {}) for query in _FIGURES)
    return Sums(
        coverage={place: Coverage(**figures, **longest.get(place, {})) for place, figures in coverage.items()},
        turnover={window: Turnover(**figures) for (window, _), figures in turnover.items()},
        begun={place: Begun(**figures) for place, figures in begun.items()},
        commits=CommitSums(**commits.get((WHOLE_RUN, ""), {})),
    )


NO_SUMS = _of_one({})
