"""The data set of a sweep: what its runs measured, by cell, and how figures grow along an axis.

Figures of a run have the names of `comparison.results.metrics.METRICS`; those of one change are `CHANGE.FIGURE`
(`join.notifications`), without the cost of forming the group. A scenario that repeats a change at several group sizes,
as `herd` does, has a cell for each size, on the axis `group-size`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.results.keys import COMPLETE, SIZING
from comparison.results.meanings import Meaning
from comparison.results.metrics import (
    APPLICATION_ERRORS,
    AUTHORITY_REQUESTS,
    CHANGE_METRICS,
    FAILED_RUNS,
    METRICS,
    SWEEP_CHANGE_METRICS,
    SWEEP_METRICS,
)
from comparison.results.promises import PromiseOutcome, promises_of
from comparison.results.result import Spread
from comparison.results.run import Run
from comparison.results.sweep import (
    GROUP_SIZE,
    SWEEP_SCHEMA_VERSION,
    AxisData,
    CellData,
    CountedRun,
    Exponent,
    LeftOutData,
    SweepData,
)
from comparison.statistics import fitted_power, why_unfit
from comparison.sweep.grid import DESIGN, SCENARIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comparison.sweep.grid import Value
    from comparison.sweep.plan import Cell, SweepPlan, SweepRun

#: Shown when neither the user nor the file names any.
SHOWN = (FAILED_RUNS, "converge_ms", "unowned_partition_s", "duplicates")


class _Observation(msgspec.Struct, frozen=True):
    """A figure of one run, in a cell of the data set."""

    at: tuple[tuple[str, int | float | str | None], ...]
    metric: str
    value: float


def sweep_data(
    plan: SweepPlan,
    results: Mapping[str, Run | CountedRun],
    failures: Sequence[tuple[SweepRun, str]],
    *,
    name: str,
    command: Sequence[str],
    simulated: bool = False,
) -> SweepData:
    """Put together what the runs measured; `results` are the analysed runs by the folders of the plan."""
    failed = Counter(run.cell.folder for run, _ in failures)
    ended: defaultdict[str, list[Run | CountedRun]] = defaultdict(list)
    for run in plan.runs:
        if run.folder in results:
            ended[run.cell.folder].append(results[run.folder])
    cells: list[CellData] = []
    observed: list[tuple[Cell, list[_Observation]]] = []
    for cell in plan.cells:
        found = [each for run in ended[cell.folder] for each in _observations(cell, run)]
        observed.append((cell, found))
        cells += _cells(cell, ended[cell.folder], failed[cell.folder], found)
    metrics = _metrics({name for cell in cells for name in cell.figures})
    axes = _axes(cells)
    return SweepData(
        schema_version=SWEEP_SCHEMA_VERSION,
        name=name,
        command=list(command),
        simulated=simulated,
        seeds=sorted({run.seed for run in plan.runs}),
        repeats=plan.grid.repeats,
        rate=_in_common(run.planned.parameters.rate for run in plan.runs),
        planned=len(plan.runs),
        complete=sum(run.outcome == COMPLETE for run in results.values()),
        axes=axes,
        metrics=metrics,
        shown=_shown(plan.grid.metrics, metrics, cells),
        cells=cells,
        exponents=list(_exponents(observed, [axis.name for axis in axes if axis.numeric], list(metrics))),
        left_out=[LeftOutData(what=title, reason=reason) for title, reason in plan.left_out],
        failures=[LeftOutData(what=run.title, reason=reason) for run, reason in failures],
    )


def _in_common(values: Iterable[int]) -> int | None:
    """The value of all; None if they differ."""
    first, *others = set(values)
    return None if others else first


def as_number(value: Value | None) -> Value | None:
    """A setting's value as a number, if it is one."""
    if not isinstance(value, str):
        return value
    for parse in (int, float):
        try:
            return parse(value)
        except ValueError:
            continue
    return value


def _observations(cell: Cell, run: Run | CountedRun) -> Iterator[_Observation]:
    at = {name: as_number(value) for name, value in cell.at.items()}
    whole = tuple(at.items())
    if isinstance(run, CountedRun):
        yield from (_Observation(whole, name, value) for name, value in run.figures.items())
        return
    refused = sum(each.asked for each in run.refusals)
    yield _Observation(whole, APPLICATION_ERRORS, len(run.failures) + refused)
    if run.outcome != COMPLETE:
        return
    for name, value in run.metrics.items():
        if value is not None:
            yield _Observation(whole, name, value)
    changes = [change for change in run.changes if change.change not in SIZING]
    rounds = Counter(change.change for change in changes)
    for change in changes:
        several, size = rounds[change.change] > 1, change.members
        sized = several and size is not None
        place = tuple({**at, GROUP_SIZE: size}.items()) if sized else whole
        title = change.change if sized or not several else f"{change.change}-{change.round}"
        for name in CHANGE_METRICS:
            value = getattr(change, name)
            if value is not None:
                yield _Observation(place, f"{title}.{name}", value)
        if cell.by:
            yield _Observation(place, f"{title}.{AUTHORITY_REQUESTS}", change.authority_requests)


def _cells(
    cell: Cell, runs: Sequence[Run | CountedRun], failed: int, found: Iterable[_Observation]
) -> Iterator[CellData]:
    """The cell, and its parts by group size; `runs` are those that ended."""
    complete = sum(run.outcome == COMPLETE for run in runs)
    judged = [run for run in runs if isinstance(run, Run) and run.outcome == COMPLETE]
    verdicts = Counter(str(run.verdict) for run in judged)
    outcomes = [each for run in judged for each in promises_of(run)]
    broken = Counter(each.promise.name for each in outcomes if each.outcome is PromiseOutcome.BROKEN)
    whole = tuple((name, as_number(value)) for name, value in cell.at.items())
    figures: defaultdict[Any, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    figures[whole]  # also a cell without a complete run is one
    for each in found:
        figures[each.at][each.metric].append(each.value)
    for at, by_metric in figures.items():
        spreads = {name: Spread.of(values) for name, values in by_metric.items()}
        if at == whole and (runs or failed):
            spreads[FAILED_RUNS] = Spread(n=max(len(runs), failed), median=failed, low=failed, high=failed)
        yield CellData(
            cell=cell.folder,
            scenario=cell.scenario,
            design=cell.design,
            by=cell.by,
            at=dict(at),
            runs=complete,
            failed=failed,
            verdicts=dict(verdicts),
            broken=dict(broken),
            figures={name: each for name, each in spreads.items() if each is not None},
        )


def _axes(cells: Iterable[CellData]) -> list[AxisData]:
    """The axes of the cells, scenario and design first; group sizes last."""
    values: dict[str, dict[Any, None]] = {SCENARIO: {}, DESIGN: {}}
    for cell in cells:
        for name, value in {SCENARIO: cell.scenario, DESIGN: cell.design, **cell.at}.items():
            if value is not None:
                values.setdefault(name, {}).setdefault(value, None)
    return [
        AxisData(
            name=name,
            values=sorted(found) if _is_numeric(found) else list(found),
            numeric=_is_numeric(found),
        )
        for name, found in values.items()
    ]


def _is_numeric(values: Iterable[object]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _metrics(measured: set[str]) -> dict[str, Meaning]:
    """Meanings of the measured figures, runs' first."""
    known: dict[str, Meaning] = {**SWEEP_METRICS, **METRICS}
    found = {name: Meaning(each.unit, each.meaning) for name, each in known.items() if name in measured}
    titles = sorted({name.partition(".")[0] for name in measured if "." in name})
    for title in titles:
        for name, metric in {**CHANGE_METRICS, **SWEEP_CHANGE_METRICS}.items():
            if f"{title}.{name}" in measured:
                found[f"{title}.{name}"] = Meaning(metric.unit, f"{title}: {metric.meaning}")
    return found


def _shown(wanted: Sequence[str], metrics: Mapping[str, Meaning], cells: Sequence[CellData]) -> list[str]:
    """The wanted metrics, or the usual ones that are not 0 everywhere."""
    if wanted:
        return [name for name in wanted if name in metrics]
    lively = {name for cell in cells for name, each in cell.figures.items() if each.high}
    return [name for name in SHOWN if name in lively]


def _exponents(
    observed: Iterable[tuple[Cell, Sequence[_Observation]]], axes: Sequence[str], metrics: Sequence[str]
) -> Iterator[Exponent]:
    points: defaultdict[Any, list[tuple[float, float]]] = defaultdict(list)
    for cell, found in observed:
        for each in found:
            at = dict(each.at)
            for axis in axes:
                x = at.get(axis)
                if isinstance(x, int | float):
                    others = tuple((name, value) for name, value in each.at if name != axis)
                    points[cell.scenario, cell.design, axis, others, each.metric].append((x, each.value))
    of_metrics = {name: place for place, name in enumerate(metrics)}
    of_groups = {group: place for place, group in enumerate(dict.fromkeys(key[:3] for key in points))}
    ordered = sorted(points.items(), key=lambda item: (of_metrics[item[0][4]], of_groups[item[0][:3]]))
    for (scenario, design, axis, others, metric), pairs in ordered:
        if len({x for x, _ in pairs}) < 2 or not any(y for _, y in pairs):
            continue
        reason = why_unfit(pairs)
        fit = None if reason else fitted_power(pairs)
        yield Exponent(
            scenario=scenario,
            design=design,
            metric=metric,
            axis=axis,
            at=dict(others),
            n=len(pairs),
            exponent=_rounded(fit.exponent) if fit else None,
            low=_rounded(fit.low) if fit else None,
            high=_rounded(fit.high) if fit else None,
            through_x=fit.through_x if fit else None,
            through_y=fit.through_y if fit else None,
            reason=reason,
        )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
