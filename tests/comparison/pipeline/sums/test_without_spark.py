"""A process that asks DuckDB ends without a word of it."""

from __future__ import annotations

import subprocess
import sys

_JUDGE = """
from kernel.platform.lean_imports import importing
with importing():
    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.pipeline.gold.run import measure
    from tests.support.trace.traces import e, tables, traced_run
print(measure(traced_run(), tables([e(1, "m1", "member_started", group="g", member="m1")]))[0].groups)
"""


def test_process_whose_modules_are_never_freed_ends_quietly() -> None:
    done = subprocess.run([sys.executable, "-c", _JUDGE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("['g']\n", "")
