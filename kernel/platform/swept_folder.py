"""A temporary folder that is removed when its last user has ended, however it ended: also after `kill -9`."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.platform.interpreter import bare_command

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The sweeper's program: wait until no process holds the pipe, then remove the folder. Children of the user that were
#: killed with it may write for a moment longer.
_SWEEP = """
import os, shutil, sys, time
sys.stdin.read()
for _ in range(50):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.lexists(sys.argv[1]):
        break
    time.sleep(0.2)
"""
_SWEPT_S = 5.0


@contextmanager
def swept_folder(prefix: str) -> Iterator[tuple[Path, int]]:
    """The folder, and the descriptor that another process has to inherit to be one of its users.

    The sweeper is a process. It reads a pipe whose other end this process holds, so it sees its end.
    """
    folder = Path(tempfile.gettempdir()).resolve() / f"{prefix}{secrets.token_hex(8)}"
    waits, held = os.pipe()
    sweeper = subprocess.Popen(bare_command(_SWEEP, str(folder)), stdin=waits, start_new_session=True)
    os.close(waits)
    try:
        folder.mkdir(mode=0o700)  # after its sweeper has started: the program may be killed at any moment
        yield folder, held
    finally:
        os.close(held)
        with suppress(subprocess.TimeoutExpired):
            sweeper.wait(_SWEPT_S)
