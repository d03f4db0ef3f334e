"""Measure one run: from its tables to everything that the verdicts rest on.

A small run is measured at once (`measure`). Of a large one, tasks reduce parts and measure buckets of partitions;
`together` puts the pieces into the same shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec.structs import asdict

from comparison.pipeline.bronze.tables import as_in_files, with_run
from comparison.pipeline.gold.commits import acting_of
from comparison.pipeline.gold.course import course_rows
from comparison.pipeline.gold.identities import mistakable
from comparison.pipeline.gold.partitions import TABLES, measure_partitions
from comparison.pipeline.measured import Acting, CommitTotals, DeliveryBin, Measured
from comparison.pipeline.silver import bystanders, counts, silences
from comparison.pipeline.silver.context import KINDS, bounds_of, context_of
from comparison.pipeline.silver.groups import groups_of
from comparison.pipeline.silver.offsets import OFFSET_SCHEMA, WRITTEN, offset_rows
from comparison.pipeline.silver.reduce import reduced
from comparison.pipeline.sums.queries import NO_SUMS, windows_of
from comparison.pipeline.sums.without_spark import answered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.bronze.tables import Tables
    from comparison.pipeline.gold.partitions import PartitionFigures, PartitionTables
    from comparison.pipeline.silver.context import Context, Window
    from comparison.pipeline.silver.reduce import Counted
    from comparison.pipeline.sums.queries import Sums

_BY = ["group", "process", "t_ns", "seq"]


def measure(run: TraceRun, tables: Tables) -> tuple[Measured, PartitionTables]:
    """Measure a run of which all tables are at hand."""
    few = {kind: table for kind, table in tables.items() if kind in KINDS}
    context = context_of(run, few, bounds_of(tables), groups_of(tables))
    bundle, counted = reduced(tables, context)
    figures, of_partitions = measure_partitions(bundle, context)
    sums = summed(run, context.windows, of_partitions)
    return together(context, [counted], figures, sums, acting(tables, context)), of_partitions


def summed(run: TraceRun, windows: Sequence[Window], tables: PartitionTables) -> Sums:
    """What the queries say of one run, from its tables."""
    named = {name: as_in_files(with_run(run, table)) for name, table in zip(TABLES, tables, strict=True)}
    return answered({**named, "windows": windows_of([(run.run_id, windows)])}).get(run.run_id, NO_SUMS)


def acting(tables: Tables, context: Context) -> list[Acting]:
    """Which broker accepted what belongs to a group, when; needs `offset_written` and `authority_named`."""
    named = [pa.table({name: pa.array([], OFFSET_SCHEMA.field(name).type) for name in _BY})]
    if "authority_named" in tables:
        table = tables["authority_named"]
        named.append(table.filter(pa.compute.equal(table["role"], "broker")).select(_BY))
    written = offset_rows({kind: table for kind, table in tables.items() if kind == WRITTEN}, context)
    return acting_of(written, pa.concat_tables(named))


def _members(context: Context) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for life in context.lives:
        if life.member not in (ids := found.setdefault(life.process, [])):
            ids.append(life.member)
    return found


def together(
    context: Context, parts: Sequence[Counted], figures: PartitionFigures, sums: Sums, acting: list[Acting]
) -> Measured:
    """Everything that was measured of a run."""
    judged_any = any(part.has_commits_or_deliveries for part in parts)
    bins: dict[int | None, int] = {}
    for part in parts:
        for number, records in part.bins.items():
            bins[number] = bins.get(number, 0) + records
    return Measured(
        runner=list(context.runner),
        failures=list(context.failures),
        refusals=list(context.refusals),
        span=context.span,
        changes=list(context.changes),
        faults=list(context.faults),
        counts=counts.added(part.counts for part in parts),
        coverage=sums.coverage,
        first_overlaps=figures.first_overlaps,
        commits=CommitTotals(
            **asdict(sums.commits),
            started_behind=figures.started_behind,
            reset_behind=figures.reset_behind,
            stale_delivered=sum(part.stale_deliveries for part in parts),
            of_ended_sessions=sum(part.of_ended_sessions for part in parts) if context.session_ends else None,
        )
        if judged_any
        else None,
        final_offsets=figures.final_offsets,
        old_offsets_used=figures.old_offsets_used,
        memberless_ns=figures.memberless_ns,
        left_unnamed=figures.left_unnamed,
        skips=figures.skips,
        standstills=figures.standstills,
        pauses=figures.pauses,
        owners=figures.owners,
        turnover=sums.turnover,
        begun=sums.begun,
        group=list(context.group),
        silences=silences.silences([part.heard for part in parts], context),
        phases=list(context.phases),
        attempts=list(context.attempts),
        rounds=list(context.rounds),
        kept=figures.kept,
        delivered=[DeliveryBin(bin=number, records=records) for number, records in bins.items()],
        out_of_order=figures.out_of_order,
        course=course_rows(figures.course, context.span),
        operations=counts.added_operations(part.operations for part in parts),
        bystanders=bystanders.latencies([part.bystanders for part in parts], context),
        takeovers=list(context.takeovers),
        acting=acting,
        groups=list(context.memberships.names),
        members=_members(context),
        mistakable=mistakable(figures.uses, figures.groupless, context),
    )
