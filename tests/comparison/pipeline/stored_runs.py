"""Two synthetic runs of which one is damaged, and the rows of the tables that an analysis of them leaves."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from comparison.pipeline.generated.runs import Faults, write_synthetic_runs
from kernel.platform.places import arrow_source, below, name_below

if TYPE_CHECKING:
    from pathlib import Path

    from kernel.platform.places import Place

FAULTS = Faults(zombies=0.5, brief=0.3, deaths=0.2, torn=1, foreign=1)


def two_runs(folder: Path) -> Path:
    write_synthetic_runs(folder, runs=2, events_min=600, members=3, partitions=4, faults=FAULTS)
    damaged = folder / "run-00001" / "trace" / "m1.jsonl"
    lines = damaged.read_bytes().splitlines(keepends=True)
    damaged.write_bytes(b"".join([*lines[:5], b"garbage\n", *lines[7:]]))
    (folder / "run-00000" / "trace" / "empty.jsonl").touch()
    return folder


def rows(folder: Place) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for path in below(folder, "*.parquet"):
        name = name_below(path.parent, folder)
        table = pq.read_table(**arrow_source(path), partitioning=None)
        found.setdefault(name, Counter()).update(map(str, table.to_pylist()))
    return found
