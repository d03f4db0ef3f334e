"""How long an uninvolved client of the same ZooKeeper waited: a chart for each operation, and the same as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from comparison.report.drawing.latency import LatencyColumn, Pair, Waited, latency_chart
from comparison.report.summaries.figures import named, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from markupsafe import Markup

    from comparison.results.run import Bystander, Run


#: What the bystander's operations are called in words.
OPERATIONS: Mapping[str, str] = {"getData": "get", "setData": "set"}
HEADINGS = ("change", "design", "before: p50", "p99", "max", "n", "during: p50", "p99", "max", "n", "failed")
#: So many pairs fit beside another chart.
PAIRS_MAX = 8
_STAGES = ("before", "during")
#: With fewer answers the 99th percentile is the largest of them.
ANSWERS_MIN = 100


class Latencies(NamedTuple):
    """One operation; `picture` is None where nothing was answered."""

    op: str
    title: str
    picture: Markup | None
    is_wide: bool  #: the picture, by its number of changes
    remark: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def waited(runs: Sequence[Run]) -> list[Latencies]:
    """The operations that were timed; empty without a bystander. Only changes with a stage before them are shown."""
    ops = dict.fromkeys(each.op for run in runs for each in run.bystanders)
    return [found for op in ops if (found := _latencies(op, runs)) is not None]


def _latencies(op: str, runs: Sequence[Run]) -> Latencies | None:
    by_design = {run.design: list(_changes(op, run)) for run in runs}
    columns = [
        LatencyColumn(design, [_pair(change) for change in changes]) for design, changes in by_design.items() if changes
    ]
    if not columns:
        return None
    name = OPERATIONS.get(op, op)
    known = any(isinstance(each, Waited) for column in columns for pair in column.pairs for each in pair[1:])
    title = f"An uninvolved client's {name} on the same ZooKeeper, before each change and during it"
    answered = [stage.answered for changes in by_design.values() for change in changes for stage in change.values()]
    few = [each for each in answered if each < ANSWERS_MIN]
    return Latencies(
        op=name,
        title=title,
        picture=latency_chart(f"{title}: median and 99th percentile, ms", columns) if known else None,
        is_wide=sum(len(column.pairs) for column in columns) > PAIRS_MAX,
        remark=f"With fewer than {ANSWERS_MIN} answers ({len(few)} of {len(answered)} stages) the 99th percentile is "
        "the maximum."
        if few
        else "",
        headings=HEADINGS,
        rows=[_row(design, change) for design, changes in by_design.items() for change in changes],
    )


def _changes(op: str, run: Run) -> Iterator[Mapping[str, Bystander]]:
    """Each change's stages by name."""
    stages: dict[tuple[str, int], dict[str, Bystander]] = {}
    for each in run.bystanders:
        if each.op == op:
            stages.setdefault((each.change, each.round), {})[each.stage] = each
    yield from (each for each in stages.values() if "before" in each)


def _pair(change: Mapping[str, Bystander]) -> Pair:
    before, during = (_waited(change.get(stage)) for stage in _STAGES)
    members = change["before"].members
    return Pair(change["before"].change if members is None else f"N={members}", before, during)


def _waited(stage: Bystander | None) -> Waited | None:
    if stage is None or not stage.p50_ms or stage.p99_ms is None:
        return None
    return Waited(stage.p50_ms, stage.p99_ms)


def _row(design: str, change: Mapping[str, Bystander]) -> list[str]:
    first = change["before"]
    row = [first.change if first.members is None else named(first), design]
    for stage in _STAGES:
        found = change.get(stage)
        figures = ("p50_ms", "p99_ms", "max_ms", "answered")
        row += [number(getattr(found, name)) for name in figures] if found is not None else ["-"] * len(figures)
    return [*row, number(sum(each.failed for each in change.values()))]
