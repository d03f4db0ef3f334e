"""A command needs descriptors: the limit is raised where it may be, and said where it may not."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

_PROGRAM = """
import resource, subprocess, sys
from kernel.platform.descriptors import require_descriptors
from kernel.errors import EnvironmentFault
try:
    require_descriptors(300)
except EnvironmentFault as error:
    print(error)
print(*resource.getrlimit(resource.RLIMIT_NOFILE), flush=True)
subprocess.run([sys.executable, "-c", "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"])
"""


def lines_under(soft: int, hard: int) -> list[str]:
    """What the program prints that needs 300, and what its child has."""
    result = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)),
    )
    return result.stdout.splitlines()


@pytest.mark.parametrize(("soft", "hard", "after"), [(64, 400, 300), (64, 300, 300), (350, 400, 350)])
def test_limit_is_raised_for_the_process_and_its_children(soft: int, hard: int, after: int) -> None:
    assert lines_under(soft, hard) == [f"{after} {hard}", str(after)]


def test_limit_that_cannot_be_raised_far_enough_is_said_and_left_alone() -> None:
    told, limits, child = lines_under(64, 64)
    assert told.startswith("at most 64 files may be open at once (ulimit -n), and 300 are needed.")
    assert "`ulimit -n 300`" in told
    assert (limits, child) == ("64 64", "64")
