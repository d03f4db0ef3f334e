"""The names of a sweep's figures: those of a run, and those of one change, such as `join.notifications`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.results.metrics import CHANGE_METRICS, METRICS, SWEEP_METRICS
from kernel.errors import ConfigurationError
from kernel.suggestions import closest, unknown

if TYPE_CHECKING:
    from collections.abc import Iterable


def metrics_named(names: Iterable[str]) -> tuple[str, ...]:
    """Checked names of figures, each once. Whether a run has such a change shows only afterwards."""
    known = {**METRICS, **SWEEP_METRICS}
    for name in names:
        change, dot, figure = name.partition(".")
        table, looked = (CHANGE_METRICS, figure) if dot and change else (known, name)
        if looked not in table:
            before = f"{change}." if dot and change else ""
            names = [before + each for each in table]
            # No other command lists them.
            hint = "" if closest(name, names) else f"Use one of {', '.join(names)}"
            raise ConfigurationError(unknown("metric", name, names, hint=hint))
    return tuple(dict.fromkeys(names))
