"""Python as a child process: no child imports from the folder that a user stands in.

`python -m` and `python -c` look for modules in the working folder first, so a `random.py` in it would be run. Every
Python that the product starts is started with a command from here (a test holds it to that). PYTHONPATH and everything
installed remain: that is where a user's own strategies, steps and faults come from.
"""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The interpreter, for whoever starts it in a way of its own: with `SAFE_PATH` in its environment.
PYTHON = sys.executable
#: What `-P` is to a command: for a Python that others start, as Spark's JVM does.
SAFE_PATH: Mapping[str, str] = MappingProxyType({"PYTHONSAFEPATH": "1"})


def module_command(module: str, *arguments: str, warnings: str = "") -> list[str]:
    """The command that runs a module of ours; `warnings` is what Python shall do with them (`ignore`)."""
    return [PYTHON, "-P", *(["-W", warnings] if warnings else []), "-m", module, *arguments]


def bare_command(program: str, *arguments: str) -> list[str]:
    """The command that runs a program which needs the standard library alone.

    It reads no environment and no site packages, so it starts at once and nothing can break it.
    """
    return [PYTHON, "-I", "-S", "-c", program, *arguments]
