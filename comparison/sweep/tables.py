"""The tables `cells` and `exponents` of a sweep, as Parquet beside those of the analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from comparison.pipeline.bronze.tables import write_table
from comparison.pipeline.published import TABLES
from kernel.platform.whole_file import own_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from comparison.results.sweep import SweepData

_AXES = [("scenario", pa.string()), ("design", pa.string()), ("axes", pa.string())]  # the other axes, as JSON
#: One row for each cell and figure.
CELLS_SCHEMA = pa.schema(
    [
        ("sweep", pa.string()),
        ("cell", pa.string()),
        *_AXES,
        ("computed_by", pa.string()),
        ("metric", pa.string()),
        ("unit", pa.string()),
        ("n", pa.int64()),
        ("median", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("runs", pa.int64()),
        ("failed", pa.int64()),
    ]
)
#: One row for each figure, numeric axis, and combination of the other axes.
EXPONENTS_SCHEMA = pa.schema(
    [
        ("sweep", pa.string()),
        *_AXES,
        ("metric", pa.string()),
        ("axis", pa.string()),
        ("n", pa.int64()),
        ("exponent", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("through_x", pa.float64()),
        ("through_y", pa.float64()),
        ("reason", pa.string()),
    ]
)


def write_sweep_tables(folder: Path, data: SweepData) -> None:
    """Write both tables into the folder's tables, in the place of earlier ones."""
    for name, rows, schema in (
        ("cells", _cell_rows(data), CELLS_SCHEMA),
        ("exponents", _exponent_rows(data), EXPONENTS_SCHEMA),
    ):
        write_table(own_folder(folder, TABLES) / f"{name}.parquet", pa.Table.from_pylist(list(rows), schema))


def _cell_rows(data: SweepData) -> Iterator[dict[str, Any]]:
    for cell in data.cells:
        for name, figure in cell.figures.items():
            yield {
                "sweep": data.name,
                "cell": cell.cell,
                "scenario": cell.scenario,
                "design": cell.design,
                "axes": _json(cell.at),
                "computed_by": cell.by,
                "metric": name,
                "unit": data.metrics[name].unit,
                **msgspec.structs.asdict(figure),
                "runs": cell.runs,
                "failed": cell.failed,
            }


def _exponent_rows(data: SweepData) -> Iterator[dict[str, Any]]:
    for each in data.exponents:
        row = msgspec.structs.asdict(each)
        yield {"sweep": data.name, **row, "axes": _json(row.pop("at"))}


def _json(values: dict[str, Any]) -> str:
    return msgspec.json.encode(values).decode()
