"""From a grid to the runs of a sweep, before anything starts.

A *cell* is one combination of the grid's values, and a folder; its runs differ only in their seeds, or in nothing. An
axis without effect in a cell (a setting that the design does not have, the members of a scenario that sets its own
group sizes) has no value there, so that cells which would be the same are one. Combinations that cannot work are left
out with their reason, the one that `run` would give.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from comparison.consumers import CONSUMERS
from comparison.scenarios.plan.applicability import check_scenario, overriding, unused, why_not
from comparison.scenarios.plan.catalogue import scenario_named
from comparison.scenarios.plan.parameters import SEED_MAX, LargeParameters
from comparison.scenarios.run.experiments import Planned, estimated_run_s, left_out, plan
from comparison.sweep.grid import (
    DESIGN,
    LINK,
    MEMBERS,
    NAMED,
    NUMBERS,
    PARTITIONS,
    PRESET,
    RUNS_MAX,
    SCENARIO,
    SESSION_TIMEOUT,
    complete,
    partitions_of,
)
from comparison.sweep.large import FULL_STACK_MEMBERS_MAX, Method, estimated_large_s, method_of, why_not_large
from kernel.broker.settings.setting_table import BROKER_SETTINGS
from kernel.designs import SERVER
from kernel.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from comparison.sweep.grid import Grid, Value

_FOLDER_MAX = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of values. `at` has the axes but scenario and design; None where an axis has no effect."""

    scenario: str
    design: str
    at: Mapping[str, Value | None]
    by: str = ""  #: how a simulated one is computed; '' for live runs

    @property
    def folder(self) -> str:
        """Its stable place in the sweep's folder. It has no `=`: Spark would take that for a partition of a table."""
        return "/".join((self.scenario, self.design, *filter(None, [_slug(self.at)])))

    def title(self, axes: Collection[str] | None = None) -> str:
        """Its values in words; of some axes, or of all."""
        wanted = self.at if axes is None else axes
        values = [f"{name} {value}" for name, value in self.at.items() if name in wanted and value is not None]
        return " · ".join((self.scenario, self.design, *values))


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRun:
    """One run of a cell; `number` counts runs of one seed."""

    cell: Cell
    title: str  #: without what all runs have in common
    number: int
    of_several: bool
    planned: Planned
    estimated_s: float

    @property
    def seed(self) -> int:
        return self.planned.parameters.seed

    @property
    def folder(self) -> str:
        return f"{self.cell.folder}/seed-{self.seed}" + (f"-run-{self.number}" if self.of_several else "")


class FirstRun(NamedTuple):
    """A cell's run with the first seed, of which the others differ in nothing else."""

    cell: Cell
    planned: Planned
    estimated_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """The runs, in the order in which they are made; the combinations left out; what the user should know."""

    grid: Grid
    cells: tuple[Cell, ...]
    runs: tuple[SweepRun, ...]
    left_out: tuple[tuple[str, str], ...]  #: (title of the combination, reason)
    notes: tuple[str, ...]


def planned_sweep(grid: Grid, *, simulated: bool = False, full_stack_max: int = FULL_STACK_MEMBERS_MAX) -> SweepPlan:
    """Plan every combination, of live or of simulated runs; of larger groups than `full_stack_max` only decisions.

    Raises `ConfigurationError` when none is left, or there are too many.
    """
    grid = complete(grid)
    if simulated and grid.repeats > 1:
        raise ConfigurationError(
            f"repeats is {grid.repeats}: a simulated run with the same seed is the same run. Use --seeds {grid.factor}"
        )
    combinations = grid.factor
    for values in grid.axes.values():
        combinations *= len(values)
    if combinations > RUNS_MAX:
        raise ConfigurationError(f"the grid has {combinations} runs. Make at most {RUNS_MAX}, with fewer values")
    first: list[FirstRun] = []
    without: dict[str, str] = {}
    notes: dict[str, None] = dict.fromkeys(_about_settings(grid))
    impossible = _impossible(grid)
    seen = set()
    for cell in _combinations(grid, notes):
        if cell.folder in seen:
            continue
        seen.add(cell.folder)
        reason = impossible.get((cell.scenario, cell.design)) or _why_not(cell)
        if reason:
            without[cell.title()] = reason
            continue
        try:
            first.append(_first(cell, grid.seed, simulated=simulated, full_stack_max=full_stack_max))
        except ConfigurationError as error:
            without[cell.title()] = str(error)
    if not first:
        title, reason = next(iter(without.items()))
        raise ConfigurationError(f"no combination of the grid can work; the first, {title}: {reason}. Change its axes")
    return plan_of(grid, first, left_out=tuple(without.items()), notes=tuple(notes))


def _first(cell: Cell, seed: int, *, simulated: bool, full_stack_max: int) -> FirstRun:
    """The run of a cell with the first seed. Raises `ConfigurationError` if there can be none."""
    given = {**_given(cell), "seed": seed}
    members = _members(cell)
    by = method_of(cell.design, members, full_stack_max) if simulated else Method.FULL_STACK
    if by is Method.FULL_STACK:
        (planned,) = plan([cell.scenario], [cell.design], given)
        computed = replace(cell, by=str(by)) if simulated else cell
        return FirstRun(computed, planned, estimated_run_s(planned, simulated=simulated))
    large = {"members": members, "partitions": given.pop("partitions", None)}
    scenario = scenario_named(cell.scenario)
    parameters = LargeParameters.of(scenario.parameters({**given, "members": None}), **large)
    if reason := why_not_large(scenario, cell.design, parameters):
        raise ConfigurationError(reason)
    planned = Planned(scenario=cell.scenario, design=cell.design, parameters=parameters)
    return FirstRun(replace(cell, by=str(by)), planned, estimated_large_s(scenario, parameters))


def _members(cell: Cell) -> int:
    """How many members the cell has at the start."""
    given = cell.at.get(MEMBERS)
    return scenario_named(cell.scenario).defaults.members if given is None else int(given)


def plan_of(
    grid: Grid, first: Sequence[FirstRun], *, left_out: tuple[tuple[str, str], ...], notes: tuple[str, ...] = ()
) -> SweepPlan:
    """The plan of a complete grid from the first run of each of its cells."""
    cells = tuple(each.cell for each in first)
    return SweepPlan(grid=grid, cells=cells, runs=tuple(_runs(grid, first)), left_out=left_out, notes=notes)


def _about_settings(grid: Grid) -> Iterator[str]:
    """What the scenarios' own settings, and session timeouts that are given twice, should be noted for."""
    designs = [str(design) for design in grid.axes[DESIGN]]
    given = {name: str(values[0]) for name, values in grid.axes.items() if name not in NAMED}
    timeouts = [int(value) for value in grid.axes.get(SESSION_TIMEOUT, ())]
    for scenario in grid.axes[SCENARIO]:
        asked = {"settings": given, "session_timeout_ms": timeouts[0] if timeouts else None}
        yield from check_scenario(scenario_named(str(scenario)), designs, asked)
    if timeouts:
        yield from overriding(designs, timeouts[0], given)


def _runs(grid: Grid, first: Sequence[FirstRun]) -> Iterator[SweepRun]:
    """Every cell once, then every cell again: changes of the machine's load then affect all cells alike."""
    varying = {name for name, values in grid.axes.items() if len(values) > 1}
    for repeat, number in itertools.product(range(grid.seeds), range(1, grid.repeats + 1)):
        for cell, planned, estimated_s in first:
            parameters = planned.parameters.overridden(seed=(grid.seed + repeat) % (SEED_MAX + 1))
            again = Planned(scenario=cell.scenario, design=cell.design, parameters=parameters)
            run = f" · run {number}" if grid.repeats > 1 else ""
            yield SweepRun(
                cell=cell,
                title=f"{cell.title(varying)} · seed {parameters.seed}{run}",
                number=number,
                of_several=grid.repeats > 1,
                planned=again,
                estimated_s=estimated_s,
            )


def _combinations(grid: Grid, notes: dict[str, None]) -> Iterator[Cell]:
    """Every combination in the grid's order. Axes without effect are noted once, if they have several values."""
    others = [name for name in grid.axes if name not in (SCENARIO, DESIGN)]
    for scenario, design in itertools.product(grid.axes[SCENARIO], grid.axes[DESIGN]):
        assert isinstance(scenario, str)
        assert isinstance(design, str)
        idle = {name: why for name in others if (why := _no_effect(scenario, design, name))}
        for name, why in idle.items():
            notes.setdefault(f"{name} has no effect in {why}", None)
        for values in itertools.product(*(grid.axes[name] for name in others)):
            at = {name: None if name in idle else value for name, value in zip(others, values, strict=True)}
            yield Cell(scenario=scenario, design=design, at=at)


def _no_effect(scenario: str, design: str, name: str) -> str:
    """Where an axis has no effect, and why; '' if it has one."""
    if name == "members" and scenario_named(scenario).sets_own_sizes:
        return f"{scenario}, which sets its own group sizes"
    if unused(design, name):
        return f"{design}, which does not use it"
    if name in NAMED or name in BROKER_SETTINGS:
        return ""
    consumers = CONSUMERS[design]
    if name in consumers.made_by and design != SERVER:
        return f"{design}, which is defined by its own"
    return "" if name in {*consumers.settings, *consumers.made_by} else f"{design}, which does not have it"


def _impossible(grid: Grid) -> dict[tuple[str, str], str]:
    scenarios, designs = [str(each) for each in grid.axes[SCENARIO]], [str(each) for each in grid.axes[DESIGN]]
    return {(each.scenario, each.design): each.reason for each in left_out(scenarios, designs)}


def _why_not(cell: Cell) -> str:
    """Why a design cannot take one of the cell's settings; '' if it takes all."""
    taken = CONSUMERS[cell.design]
    for name, value in _settings(cell).items():
        known = name in taken.settings or name in taken.made_by
        if known and (why := why_not(cell.design, name, value)):
            return f"{name}={value}: {cell.design} {why}"
    return ""


def _settings(cell: Cell) -> dict[str, str]:
    return {name: str(value) for name, value in cell.at.items() if name not in NAMED and value is not None}


def _given(cell: Cell) -> dict[str, object]:
    """The cell's values as `plan` takes them."""
    numbers = {NUMBERS[name]: value for name, value in cell.at.items() if name in NUMBERS}
    if (partitions := numbers.get(PARTITIONS)) is not None:
        numbers[PARTITIONS] = partitions_of(partitions, _members(cell))
    words = {"preset": cell.at.get(PRESET), "links": cell.at.get(LINK)}
    return {**numbers, **words, "settings": _settings(cell)}


def _slug(at: Mapping[str, Value | None]) -> str:
    """A folder's name for these values; with a digest where it would be ambiguous or too long."""
    exact = "_".join(f"{name}-{value}" for name, value in at.items() if value is not None)
    safe = "_".join(_UNSAFE.sub("-", f"{name}-{value}") for name, value in at.items() if value is not None)
    if exact == safe and len(safe) <= _FOLDER_MAX:
        return safe
    return f"{safe[:_FOLDER_MAX]}-{hashlib.sha256(exact.encode()).hexdigest()[:8]}"
