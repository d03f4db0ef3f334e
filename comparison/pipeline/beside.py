"""What the pipeline uses beside its modules: executors need it, and what was found depends on it."""

from __future__ import annotations

from pathlib import Path

import comparison

#: Modules and packages of the package `comparison`; a test compares them with what the pipeline imports.
BESIDE = ("results", "statistics.py", "wrong_data.py")


def files_beside() -> list[Path]:
    """The files of these modules."""
    places = [Path(comparison.__path__[0]) / name for name in BESIDE]
    return sorted(file for place in places for file in ([place] if place.is_file() else place.rglob("*.py")))
