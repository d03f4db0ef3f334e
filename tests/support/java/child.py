"""Runs one of these modules as a child with a JVM, which a process can start only once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

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
