"""The folder for Spark's scratch files: removed when its last user has ended, however it ended."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kernel.interpreter import bare_command

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The prefix of scratch folders in the system's temporary folder.
SCRATCH_PREFIX = "rebalance-lab-spark-"
#: The sweeper's program: wait until no process holds the pipe, then remove the folder.
_SWEEP = "import shutil, sys; sys.stdin.read(); shutil.rmtree(sys.argv[1], ignore_errors=True)"
_SWEPT_S = 5.0


@contextmanager
def scratch_folder(work_dir: Path | None) -> Iterator[tuple[Path, tuple[int, ...]]]:
    """The folder, and the descriptors that a process using it must inherit.

    A temporary folder is removed by a sweeper process. It reads a pipe whose other end this process and the JVM hold,
    so it sees the end of both, even after `kill -9`.
    """
    if work_dir is not None:
        work_dir.mkdir(parents=True, exist_ok=True)
        yield work_dir.resolve(), ()
        return
    folder = Path(tempfile.gettempdir()).resolve() / f"{SCRATCH_PREFIX}{secrets.token_hex(8)}"
    waits, held = os.pipe()
    sweeper = subprocess.Popen(bare_command(_SWEEP, str(folder)), stdin=waits, start_new_session=True)
    os.close(waits)
    try:
        folder.mkdir(mode=0o700)  # after its sweeper has started: the program may be killed at any moment
        yield folder, (held,)
    finally:
        os.close(held)
        with suppress(subprocess.TimeoutExpired):
            sweeper.wait(_SWEPT_S)
