"""Archive the classes that an analysis loads, so that later ones start sooner.

Run it as `python -m comparison.pipeline.spark.training`.

It analyses a small made-up run and lets the JVM write down what it has loaded. Does nothing if the archive is there;
without Java 25 it says so and succeeds, for the archive is only a matter of speed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from comparison.pipeline.analysis import analyze
from comparison.pipeline.generated.runs import write_synthetic
from comparison.pipeline.spark.class_cache import archive_of
from comparison.pipeline.spark.session import starting_session
from kernel.errors import RebalanceLabError
from kernel.platform.class_archives import OLDEST_JAVA, make_once
from kernel.platform.jre import find_java
from kernel.platform.swept_folder import swept_folder

if TYPE_CHECKING:
    from pathlib import Path

_EVENTS = 2_000


def train() -> str:
    """Make the archive if there is none; what was done, as a line for the user."""
    java = find_java()
    archive = archive_of(java)
    if java.version >= OLDEST_JAVA and not archive.is_file():
        _say("archiving Spark's classes, once: about half a minute")
    return make_once("Spark", java, archive, _analyze_something)


def _analyze_something(part: Path) -> None:
    with swept_folder("rebalance-lab-training-") as (folder, _):
        write_synthetic(folder / "run", events_min=_EVENTS)
        with starting_session("local[2]", record=part) as starting:
            analyze(starting.session(), [folder])


def main() -> None:
    try:
        outcome = train()
    except (RebalanceLabError, OSError) as error:
        outcome = f"Spark's classes are not archived ({error}): analyses only take longer to start"
    _say(outcome)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
