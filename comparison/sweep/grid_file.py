"""A grid from a TOML file; every complaint names the file and the line.

seeds = 3                        # optional: seed, seeds, repeats, metrics

[grid]
scenario = "crash"
design = ["zookeeper", "eager"]
members = "2..16*2"
rebalance.max.retries = [1, 2, 4]
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from comparison.own_scenarios import is_file, own_scenario
from comparison.results.metrics import CHANGE_METRICS, METRICS, SWEEP_CHANGE_METRICS, SWEEP_METRICS
from comparison.scenarios.plan.fields import flat
from comparison.sweep.grid import COUNTS, SCENARIO, Grid, Value, axis, count
from comparison.toml.files import located_in, read_toml_text
from comparison.toml.places import NotToml, located
from kernel.errors import ConfigurationError, SeveralErrors
from kernel.suggestions import closest, placed, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_GRID, _METRICS = "grid", "metrics"
_KIND, _INSTEAD = "grid", "a grid or a sweep's folder"
#: What a scenario's file has, and a grid has not.
_STEPS = "steps"
_KNOWN = (*COUNTS, _METRICS, _GRID)


def scenario_or_grid(path: Path, *, simulated: bool = False) -> Grid:
    """The grid of a file; of a scenario's file, the grid that has only this scenario.

    Raises `EnvironmentFault` when it cannot be read, `ConfigurationError` for its content.
    """
    text = read_toml_text(path, _KIND, _INSTEAD)
    with contextlib.suppress(NotToml):
        if _STEPS in located(text).content:
            return Grid(axes={SCENARIO: (own_scenario(path).scenario.name,)})
    return parse_grid(text, str(path), path.parent, simulated=simulated)


def parse_grid(text: str, name: str, folder: Path | None = None, *, simulated: bool = False) -> Grid:
    """The grid in a TOML text; `name` is the file's, `folder` where its scenario files are looked for first."""
    content, places = located_in(text, name, "docs/sweeps.md")

    @contextlib.contextmanager
    def at_line(*key: str) -> Iterator[None]:
        try:
            yield
        except SeveralErrors:
            raise  # they are about another file
        except ConfigurationError as error:
            line = f", line {places[key].line}" if key in places else ""
            raise ConfigurationError(placed(str(error), f"{name}{line}")) from error

    for key in content:
        with at_line(key):
            _require_known(key)
    axes: dict[str, tuple[Value, ...]] = {}
    with at_line(_GRID):
        table = _table(content.get(_GRID))
    for axis_name, value, path in flat(table):
        with at_line(_GRID, *path):
            axes[axis_name] = axis(
                axis_name, _beside(axis_name, _values(axis_name, value), folder), simulated=simulated
            )
    given: dict[str, Any] = {}
    for key in (each for each in content if each != _GRID):
        with at_line(key):
            given[key] = _metrics(content[key]) if key == _METRICS else count(key, content[key])
    return Grid(axes=axes, **given)


def _require_known(key: str) -> None:
    if key not in _KNOWN:
        hint = f"Use one of {', '.join(_KNOWN)}; axes are in [grid]"
        raise ConfigurationError(unknown("key", key, _KNOWN, hint=hint))


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or not value:
        raise ConfigurationError("no axes. Add a table [grid] with scenario = ... and others")
    return value


def _metrics(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigurationError('metrics must be a list of names, such as ["converge_ms"]')
    return metrics_named(names)


def metrics_named(names: Iterable[str]) -> tuple[str, ...]:
    """Checked names of figures, each once: those of a run, and those of one change, such as `join.notifications`.

    Whether a run has such a change shows only afterwards.
    """
    known = {**METRICS, **SWEEP_METRICS}
    for name in names:
        change, dot, figure = name.partition(".")
        table, looked = ({**CHANGE_METRICS, **SWEEP_CHANGE_METRICS}, figure) if dot and change else (known, name)
        if looked not in table:
            before = f"{change}." if dot and change else ""
            names = [before + each for each in table]
            # No other command lists them.
            hint = "" if closest(name, names) else f"Use one of {', '.join(names)}"
            raise ConfigurationError(unknown("metric", name, names, hint=hint))
    return tuple(dict.fromkeys(names))


def _values(name: str, value: object) -> list[Value]:
    values: list[Value] = []
    for each in value if isinstance(value, list) else [value]:
        if not isinstance(each, str | int | float):
            raise ConfigurationError(f"{name} has {each!r}: a value must be a number, a text, true or false")
        values.append(each)
    return values


def _beside(name: str, values: list[Value], folder: Path | None) -> list[Value]:
    """Scenario files with their folder, if they are beside the grid."""
    if name != SCENARIO or folder is None:
        return values
    return [
        str(folder / str(each)) if is_file(str(each)) and (folder / str(each)).is_file() else each for each in values
    ]
