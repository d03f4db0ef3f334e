"""Spark's classes, archived once: the JVM then starts Spark in a third of the time.

The archive is an AOT cache of the JDK (JEP 514, Java 25 or newer). `python -m comparison.pipeline.training` makes it;
`make setup` does that. The JVM checks that an archive fits its own version and every jar of the class path, and goes
on without one that does not.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pyspark

from comparison.pipeline.spark.jvm import spark_jars
from kernel.cache_folder import cache_dir
from kernel.errors import RebalanceLabError
from kernel.jre import find_java

if TYPE_CHECKING:
    from pathlib import Path

    from kernel.jre import JavaRuntime

#: The first Java that makes an archive in one step.
OLDEST_JAVA = 25
#: Archives of 180 MB each; those of environments that are gone would stay for ever.
_KEPT = 3


def archive_of(java: JavaRuntime) -> Path:
    """Where this Java's archive is or would be. Another Java, Spark or environment has another."""
    release = java.home / "release"
    parts = [str(java.path), release.read_text(encoding="utf-8") if release.is_file() else "", *spark_jars()]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return cache_dir() / "spark-classes" / f"spark-{pyspark.__version__}-java-{java.version}-{digest}.aot"


def loading_options() -> list[str]:
    """The JVM's options for using the archive; none if there is no archive."""
    try:
        java = find_java()
        archive = archive_of(java)
        is_there = archive.is_file()
    except (RebalanceLabError, OSError):
        return []
    if java.version < OLDEST_JAVA or not is_there:
        return []
    # The JVM warns of what it cannot use of an archive, and does without it.
    return [f"-XX:AOTCache={archive}", "-Xlog:aot*=error"]


def recording_options(target: Path) -> list[str]:
    """The JVM's options for writing an archive to `target` when it ends."""
    return [f"-XX:AOTCacheOutput={target}"]


def publish(made: Path, archive: Path) -> None:
    """Put the archive where it is looked for, atomically, and remove the oldest ones."""
    made.replace(archive)
    others = sorted(archive.parent.glob("*.aot"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[_KEPT:]:
        with suppress(OSError):
            old.unlink()


def part_of(archive: Path) -> Path:
    """Where a process writes its archive before it is published, on the same disk."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    return archive.with_name(f".{archive.stem}-{os.getpid()}.part")
