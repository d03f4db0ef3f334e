"""A stock client in a child process, and what it says: a line of JSON at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def stock_client(module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", f"tests.support.stock.{module}", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as child:  # type: ignore[call-overload]
        try:
            yield child
        finally:
            child.kill()


def heard(child: subprocess.Popen[str]) -> Any:
    assert child.stdout is not None
    assert child.stderr is not None
    line = child.stdout.readline()
    assert line, f"the client ended: {child.stderr.read()[-2000:]}"
    return json.loads(line)
