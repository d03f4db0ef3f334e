"""What the pipeline uses beside its modules: executors need it, and what was found depends on it."""

from __future__ import annotations

from pathlib import Path

import comparison

#: Modules and folders of the package `comparison`; a test compares them with what the pipeline imports.
BESIDE = ("ownership", "results", "statistics.py", "wrong_data.py")
#: What has the last word on verdicts (comparison.cli.last_word), when the pipeline has judged; no executor needs it.
JUDGING = ("cli/last_word.py", "fuzzing/judging.py", "fuzzing/verdicts.py", "scenarios/plan")


def files_beside() -> list[Path]:
    """Where these modules are."""
    places = [Path(comparison.__path__[0]) / name for name in (*BESIDE, *JUDGING)]
    return [each for place in places for each in (sorted(place.rglob("*.py")) if place.is_dir() else [place])]
