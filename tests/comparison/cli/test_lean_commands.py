"""Commands that only look something up load neither a consumer nor Spark: each would take longer than the command."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Runs a command, and says on standard error which packages it has loaded.
PROGRAM = """
import sys
from comparison.cli.main import main
try:
    main(sys.argv[1:])
finally:
    print(*{name.partition(".")[0] for name in sys.modules}, *sys.modules, file=sys.stderr)
"""
#: What serves, consumes and analyses; what draws pages. (Of aiokafka and numpy there are names only, until they are
#: used: `kernel.platform.lean_imports`.)
HEAVY = frozenset(
    {"asyncio", "kio", "aiokafka.errors", "kazoo", "pyspark", "pandas", "pyarrow", "jinja2", "coordinator"}
)

PLAYED = frozenset(
    {"kio.serial", "kazoo", "aiokafka.errors", "pyspark", "comparison.scenarios.run", "comparison.pipeline"}
)


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        ("--help", HEAVY | {"numpy._core", "msgspec", "rich"}),
        ("scenarios", HEAVY | {"numpy._core"}),
        ("scenarios crash", HEAVY | {"numpy._core", "rich"}),
        ("scenarios crash --as-file", HEAVY | {"numpy._core", "rich"}),
        ("scenarios --steps", HEAVY | {"numpy._core", "rich"}),
        ("scenarios --format json", HEAVY | {"numpy._core", "rich"}),
        # The coordinator's tables of settings are its own; strategies need NumPy.
        ("settings session.timeout.ms", HEAVY - {"coordinator"}),
        # Its page is served at once; what runs the game is loaded in other processes, or when it is prepared.
        ("playground --help", PLAYED),
    ],
)
def test_command_loads_no_more_than_it_needs(command: str, heavy: frozenset[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.split()], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stderr.split())
    assert done.stdout
    assert "comparison.cli.main" in loaded
    assert not loaded & heavy
