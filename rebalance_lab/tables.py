"""The tables of an analysis, for programs: where each is, and its rows with pyarrow or pandas.

`docs/tables.md` has every column.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.near_paths import holds_a_run, path_complaint
from comparison.report.view.tables import TABLES
from kernel.errors import ConfigurationError, EnvironmentFault
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import pandas as pd
    import pyarrow as pa

_EVENTS, _KIND = "events", "kind="


def open_run(folder: str | PathLike[str]) -> RunTables:
    """The tables of a run, or of all runs of a command, by its folder (`runs/latest`).

    Raises `EnvironmentFault`, a `UserError`, if the folder does not exist or was not analysed.
    """
    run = Path(folder)
    if not run.is_dir():
        raise EnvironmentFault(path_complaint(run, "Give the folder of a run"))
    if not (run / TABLES).is_dir():
        first = f"Analyse it first: rebalance-lab analyze {shlex.quote(str(run))}"
        raise EnvironmentFault(f"{run} has no tables. {first if holds_a_run(run) else 'Give the folder of a run'}")
    return RunTables(run / TABLES)


@dataclass(frozen=True, slots=True)
class RunTables:
    """The Parquet files in a run's folder `tables/`."""

    folder: Path

    def names(self) -> tuple[str, ...]:
        """Its tables. `events` has one for each kind of event, see `kinds`."""
        found = (path.stem for path in self.folder.iterdir() if path.is_dir() or path.suffix == ".parquet")
        return tuple(sorted(found))

    def kinds(self) -> tuple[str, ...]:
        """The kinds of events that the run has."""
        return tuple(sorted(path.name.removeprefix(_KIND) for path in (self.folder / _EVENTS).glob(f"{_KIND}*")))

    def path(self, name: str, *, kind: str = "") -> str:
        """A table's file, or a pattern of its files, which DuckDB and Spark read; of `events`, those of one kind.

        Raises `ConfigurationError`, a `UserError`, if the run has no such table.
        """
        _known("table", name, self.names())
        if name != _EVENTS:
            folder = self.folder / name
            return str(folder / "*.parquet" if folder.is_dir() else self.folder / f"{name}.parquet")
        _known("kind of event", kind, self.kinds())
        return str(self.folder / _EVENTS / f"{_KIND}{kind}" / "*.parquet")

    def arrow(self, name: str, *, kind: str = "", columns: Sequence[str] | None = None) -> pa.Table:
        """A table's rows; `columns` may leave out others. Raises as `path`."""
        import pyarrow.parquet as pq

        path = Path(self.path(name, kind=kind))
        where = path.parent if path.name == "*.parquet" else path
        return pq.read_table(where, columns=None if columns is None else list(columns), partitioning=None)

    def pandas(self, name: str, *, kind: str = "", columns: Sequence[str] | None = None) -> pd.DataFrame:
        """As `arrow`, for pandas."""
        return self.arrow(name, kind=kind, columns=columns).to_pandas()


def _known(what: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise ConfigurationError(unknown(what, name, names))
