"""The bench's group in a simulated world settles after each change."""

from __future__ import annotations

import json
import subprocess
import sys


def test_group_forms_grows_and_loses_a_member() -> None:
    command = [sys.executable, "-m", "bench.simulation_group", "eager", "3", "8"]

    figures = json.loads(subprocess.check_output(command))

    assert figures["form s"] < 10
    assert figures["join s"] < 10
    assert 3 <= figures["crash s"] < 15, "a crash is noticed after the session timeout of 3 s"
    assert all(figures[f"{change} cpu_s"] > 0 for change in ("form", "join", "crash"))
