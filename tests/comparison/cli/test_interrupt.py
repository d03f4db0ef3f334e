"""Two Ctrl-C on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from comparison.exits import Exit

SHOW, HIDE = b"\x1b[?25h", b"\x1b[?25l"

#: A run that never ends, with the command's own signals and its live line, interrupted twice.
PROGRAM = """
import asyncio, os, signal
from comparison.interruptible import interrupted_by_signals
from comparison.screen.progress import RunProgress

async def runs(progress):
    with interrupted_by_signals(progress) as interrupted:
        progress.started("a run")
        os.kill(os.getpid(), signal.SIGINT)
        await interrupted.wait()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

with RunProgress(1) as progress:
    asyncio.run(runs(progress))
"""


def test_the_second_ctrl_c_restores_the_cursor() -> None:
    ours, theirs = pty.openpty()
    try:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stderr=theirs, env={**os.environ, "TERM": "xterm-256color"}
        )
        os.close(theirs)
        shown = b""
        while piece := read(ours):
            shown += piece
        assert child.wait(30) == Exit.INTERRUPTED
    finally:
        os.close(ours)
    assert b"interrupted: stopping" in shown
    assert HIDE in shown
    assert shown.rindex(SHOW) > shown.rindex(HIDE)


def read(terminal: int) -> bytes:
    """Nothing once the other end is closed, which Linux reports as an error."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
