"""Archive the classes that an analysis loads, so that later ones start sooner.

Run it as `python -m comparison.pipeline.training`.

It analyses a small made-up run and lets the JVM write down what it has loaded. Does nothing if the archive is there;
without Java 25 it says so and succeeds, for the archive is only a matter of speed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from comparison.pipeline.analysis import analyze
from comparison.pipeline.session import starting_session
from comparison.pipeline.spark.class_cache import OLDEST_JAVA, archive_of, part_of, publish
from comparison.pipeline.synthetic import write_synthetic
from kernel.errors import EnvironmentFault, RebalanceLabError
from kernel.jre import find_java

_EVENTS = 2_000


def train() -> str:
    """Make the archive if there is none; what was done, as a line for the user."""
    java = find_java()
    if java.version < OLDEST_JAVA:
        return f"Spark's classes are not archived: that needs Java {OLDEST_JAVA}, and {java.source} is {java.version}"
    archive = archive_of(java)
    if archive.is_file():
        return f"Spark's classes are archived in {archive}"
    part, began_s = part_of(archive), time.monotonic()
    _say("archiving Spark's classes, once: about half a minute")
    try:
        with tempfile.TemporaryDirectory(prefix="rebalance-lab-training-") as folder:
            write_synthetic(Path(folder) / "run", events_min=_EVENTS)
            with starting_session("local[2]", record=part) as starting:
                analyze(starting.session(), [Path(folder)])
        if not part.is_file():
            raise EnvironmentFault("the JVM wrote no archive")
        publish(part, archive)
    finally:
        part.unlink(missing_ok=True)
    return f"archived Spark's classes in {time.monotonic() - began_s:.0f} s: {archive}"


def main() -> None:
    try:
        told = train()
    except (RebalanceLabError, OSError) as error:
        told = f"Spark's classes are not archived ({error}): analyses only take longer to start"
    _say(told)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
