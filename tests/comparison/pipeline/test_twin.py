"""The pipeline compared with a twin in plain Python, on runs with all kinds of events, whole and cut into parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comparison.pipeline.bronze.runs import TraceRun
from comparison.pipeline.bronze.tables import Tables
from comparison.pipeline.gold import partitions
from comparison.pipeline.gold.partitions import PartitionTables
from comparison.pipeline.gold.run import acting, measure, summed, together
from comparison.pipeline.measured import Measured
from comparison.pipeline.silver.context import KINDS, bounds_of, context_of
from comparison.pipeline.silver.groups import groups_of
from comparison.pipeline.silver.naming import Naming, naming_rows
from comparison.pipeline.silver.reduce import Bundle, needed_columns, reduced
from comparison.results.keys import OVER_TIME
from tests.support.oracle import commits as oracle_commits
from tests.support.oracle.intervals import intervals_of, of
from tests.support.oracle.twin import differences, measured_of
from tests.support.properties import examples
from tests.support.trace.strategies import traces
from tests.support.trace.traces import MS, tables, traced_run

SLOW = settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))


#: Where processes are of several boots; the others share one more.
BOOTS = {"broker-1": "one", "broker-2": "two", "m1": "two"}
#: Only `cooperative` promises that kept partitions go on; the longer tolerance is that of several boots.
RUNS = st.builds(
    lambda design, boots: traced_run(design, tolerance_ns=(50 if boots else 1) * MS, boots=boots),
    st.sampled_from(("zookeeper", "cooperative")),
    st.sampled_from(({}, BOOTS)),
)
#: A run, its events, where to cut them, and how many buckets to share the partitions out to.
CUT_RUNS = (RUNS, traces(), st.lists(st.floats(0, 1), max_size=3), st.integers(1, 3))


@SLOW
@given(RUNS, traces())
def test_whole_run_is_measured_as_by_the_twin(run: TraceRun, events: list[dict[str, Any]]) -> None:
    found, _ = measure(run, tables(events, numbered=True))
    assert _unlike(found, measured_of(events, tolerance_ns=run.tolerance_ns, design=run.design, boots=run.boots)) == []


@SLOW
@given(*CUT_RUNS)
def test_run_cut_into_parts_is_measured_as_one_that_is_whole(
    run: TraceRun, events: list[dict[str, Any]], cuts: list[float], buckets: int
) -> None:
    everything = tables(events, numbered=True)
    whole, _ = measure(run, everything)
    few = {kind: table for kind, table in everything.items() if kind in KINDS}
    context = context_of(run, few, bounds_of(everything), groups_of(everything))
    naming = Naming(naming_rows(everything))
    parts = [reduced(_needed(part), context, naming) for part in _cut(everything, cuts)]
    shares = [bundle.shared_out(buckets) for bundle, _ in parts]
    measured = [
        partitions.measure_partitions(Bundle.joined([share[bucket] for share in shares]), context, bucket, buckets)
        for bucket in range(buckets)
    ]
    figures = partitions.added([each for each, _ in measured])
    of_partitions = PartitionTables(*map(pa.concat_tables, zip(*(tables for _, tables in measured), strict=True)))
    sums = summed(run, context.windows, of_partitions)
    again = together(context, [counted for _, counted in parts], figures, sums, acting(everything, context))
    assert differences(again, whole) == []


@SLOW
@given(RUNS, traces())
def test_tables_have_what_the_twin_finds(run: TraceRun, events: list[dict[str, Any]]) -> None:
    """Row by row, what other tests only count: the owners of partitions, and how each commit was judged."""
    _, figures = measure(run, tables(events, numbered=True))
    names = ("view", "group", "topic", "partition", "owner", "from_ns", "until_ns", "closed_by", "gone_ns")
    assert _rows(figures.intervals, names) == Counter(
        (view, *each.key, each.owner, each.from_ns, each.until_ns, each.closed_by, each.gone_ns)
        for view in OVER_TIME
        for each in intervals_of(events, view)
    )
    named, written = of(events, "authority_named", "authority_cleared"), of(events, "offset_written")
    clocks = oracle_commits.Clocks(run.boots, run.tolerance_ns)
    judged = Counter(
        (
            event["t_ns"],
            event["by"],
            event.get("error", "accepted"),
            oracle_commits.is_stale_write(event, named, clocks),
            event in written and oracle_commits.is_old(event, events, clocks),
            event not in written and oracle_commits.is_fenced(event, events),
            oracle_commits.moved_back_by(event, written, clocks) if event in written else 0,
        )
        for event in of(events, "offset_written", "offset_refused")
    )
    of_commits = ("t_ns", "by", "outcome", "is_stale", "is_old", "is_fenced", "moved_back_by")
    assert _rows(figures.committed, of_commits) == judged


def _rows(table: pa.Table, names: Iterable[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in names) for row in table.to_pylist())


def _unlike(found: Measured, expected: Measured) -> list[str]:
    """Their differences, except for the number of all events, which the pipeline takes from reading the files."""
    expected.counts = [count for count in expected.counts if count.kind != "total"]
    return differences(found, expected)


def _needed(everything: Tables) -> Tables:
    """Only the columns that a part is read back with."""
    return {kind: table.select(needed_columns(kind)) for kind, table in everything.items()}


def _cut(everything: Tables, cuts: list[float]) -> list[Tables]:
    """Every file cut at the same numbers of events."""
    end = max((max(table["seq"].to_pylist()) for table in everything.values() if len(table)), default=0) + 1
    edges = [0, *sorted(int(cut * end) for cut in cuts), end]
    return [
        {
            kind: table.filter(pc.and_(pc.greater_equal(table["seq"], low), pc.less(table["seq"], high)))
            for kind, table in everything.items()
        }
        for low, high in pairwise(edges)
    ]
