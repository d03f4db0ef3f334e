"""Who had a partition twice, when, and for how long? With pandas.

    python docs/examples/owned_twice.py runs/latest

Two members believe to own a partition when an old owner has not noticed that it was replaced. Whether both deliver is
another question: the view `delivering` answers it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

PARTITION = ["run_id", "group_id", "topic", "partition"]


def owned_twice(folder: Path, view: str = "believed") -> pd.DataFrame:
    """One row for each stretch of time with two owners or more, the longest first."""
    segments = pd.read_parquet(folder / "tables" / "segments")
    ownership = pd.read_parquet(folder / "tables" / "ownership")
    twice = segments[(segments["view"] == view) & segments["counts_as_overlap"]]
    owners = ownership[ownership["view"] == view]
    # An interval without an end lasts until the run's.
    owners = owners.assign(until_ns=owners["until_ns"].fillna(float("inf")))
    pairs = twice.merge(owners[[*PARTITION, "owner", "from_ns", "until_ns"]], on=PARTITION)
    there = pairs[(pairs["from_ns"] <= pairs["low"]) & (pairs["until_ns"] >= pairs["high"])]
    found = there.groupby([*PARTITION, "low", "high"], as_index=False).agg(
        owners=("owner", lambda names: " and ".join(sorted(names)))
    )
    found["from_s"] = found["low"] / 1e9
    found["lasted_ms"] = (found["high"] - found["low"]) / 1e6
    columns = [*PARTITION, "owners", "from_s", "lasted_ms"]
    return found[columns].sort_values("lasted_ms", ascending=False, ignore_index=True)


if __name__ == "__main__":
    sys.stdout.write(f"{owned_twice(Path(sys.argv[1])).to_string()}\n")
