"""`python -m tests.support.lean_child MODULE ARGUMENTS` runs a module as the commands run theirs.

That is without hypothesis, which kio loads where it can, and without aiokafka's clients: a third of a broker's imports.
"""

from __future__ import annotations

import asyncio
import runpy
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from kernel.platform.lean_imports import import_lean

REPOSITORY = Path(__file__).parents[2]


def lean_command(module: str, *arguments: object) -> list[str]:
    """To be run in the repository's folder."""
    return [sys.executable, "-m", "tests.support.lean_child", module, *map(str, arguments)]


@asynccontextmanager
async def lean_child(
    module: str, *arguments: object, inside: Sequence[str] = (), stdout: int | None = PIPE, stderr: Any = None
) -> AsyncIterator[Process]:
    """A process that runs a module, with a pipe as its standard input; killed at the end if it is still running.

    `inside`: a command that runs it.
    """
    command = [*inside, *lean_command(module, *arguments)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=stdout, stderr=stderr, cwd=REPOSITORY)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


if __name__ == "__main__":
    import_lean()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
