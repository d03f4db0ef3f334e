"""Runs one of these modules as a child with a JVM, which a process can start only once, and answers from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from comparison.originals import jars
from comparison.originals.java import OPTIONS
from kernel.platform.jre import find_java


def answered_by(module: str, *arguments: str, asked: object = None, timeout_s: float = 120) -> Any:
    """What `module` prints as JSON. It finds `asked` as JSON on its standard input.

    Call `tests.support.java.originals.require` first.
    """
    child = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        input=json.dumps(asked),
        env={**os.environ, "JAVA_HOME": str(find_java().home)},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert child.returncode == 0, child.stderr[-4000:]
    return json.loads(child.stdout)


def answer_from_jvm(version: str, found: Callable[[], object], *options: str) -> None:
    """Print as JSON what is found in a JVM with the classes of this Kafka, and end the process at once."""
    import jpype

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    class_path = [str(jar) for jar in jars.class_path(version)]
    jpype.startJVM(jpype.getDefaultJVMPath(), *OPTIONS, *options, classpath=class_path, convertStrings=True)
    json.dump(found(), out)
    out.flush()
    os._exit(0)
