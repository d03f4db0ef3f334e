"""Archives of the classes that a JVM loads, made once: a program then starts in a half or a third of the time.

An archive is an AOT cache of the JDK (JEP 514, Java 25 or newer). The JVM checks that one fits its own version and
every jar of the class path, and goes on without one that does not. `make classes` makes those of ZooKeeper and Spark.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from kernel.errors import EnvironmentFault
from kernel.platform.cache_folder import cache_dir

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kernel.platform.jre import JavaRuntime

#: The first Java that makes an archive in one step.
OLDEST_JAVA = 25
#: Those of environments that are gone would stay for ever.
_KEPT = 3


def archive_path(program: str, version: str, java: JavaRuntime, jars: Sequence[str]) -> Path:
    """Where a program's archive is or would be. Another Java, version or environment has another."""
    release = java.home / "release"
    parts = [str(java.path), release.read_text(encoding="utf-8") if release.is_file() else "", *jars]
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    return cache_dir() / f"{program}-classes" / f"{program}-{version}-java-{java.version}-{digest}.aot"


def loading_options(java: JavaRuntime, archive: Path) -> list[str]:
    """The JVM's options for using the archive; none if there is no archive."""
    try:
        is_there = archive.is_file()
    except OSError:
        return []
    if java.version < OLDEST_JAVA or not is_there:
        return []
    # The JVM warns of what it cannot use of an archive, and does without it.
    return [f"-XX:AOTCache={archive}", "-Xlog:aot*=error"]


def recording_options(target: Path) -> list[str]:
    """The JVM's options for writing an archive to `target` when it ends."""
    return [f"-XX:AOTCacheOutput={target}"]


def make_once(program: str, java: JavaRuntime, archive: Path, run: Callable[[Path], None]) -> str:
    """Let `run` write an archive to the path that it is given, unless there is one; what was done, for the user.

    The archive is put in its place atomically, and the oldest ones are removed. Raises `EnvironmentFault` if nothing
    was written, and whatever `run` raises.
    """
    if java.version < OLDEST_JAVA:
        return (
            f"{program}'s classes are not archived: that needs Java {OLDEST_JAVA}, and {java.source} is {java.version}"
        )
    if archive.is_file():
        return f"{program}'s classes are archived in {archive}"
    archive.parent.mkdir(parents=True, exist_ok=True)
    part, began_s = archive.with_name(f".{archive.stem}-{os.getpid()}.part"), time.monotonic()  # on the same disk
    try:
        run(part)
        if not part.is_file():
            raise EnvironmentFault("the JVM wrote no archive")
        part.replace(archive)
    finally:
        part.unlink(missing_ok=True)
    others = sorted(archive.parent.glob("*.aot"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in others[_KEPT:]:
        with suppress(OSError):
            old.unlink()
    return f"archived {program}'s classes in {time.monotonic() - began_s:.0f} s: {archive}"
