"""Run a server in the foreground until a signal, or in the background until `stop`."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING

from comparison.cli.complaints import PREFIX
from comparison.cli.state import ServerState, process_start, state_dir, states
from comparison.exits import Exit
from comparison.interrupts import interrupts_wait
from kernel.errors import EnvironmentFault, Unavailable
from kernel.platform.interpreter import module_command

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

START_S = 60.0


def detach(arguments: Sequence[str], prefix: str) -> ServerState:
    """Start this command again in a session of its own, and return its state once it has written one.

    The names of the state and of the log begin with `prefix`: a server that chooses its own port gets its full name
    only then. When the process exits instead, raises `EnvironmentFault` or `Unavailable` with the last line of the log.
    """
    log = state_dir() / f"{arguments[0]}-starting-{os.getpid()}.log"
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = log.open("wb")
    except OSError as error:
        raise EnvironmentFault(f"cannot write {log}: {error.strerror}. Set REBALANCE_LAB_STATE") from error
    child: subprocess.Popen[bytes] | None = None
    try:
        with output, interrupts_wait():  # else a process that has just been started would be nobody's
            child = subprocess.Popen(
                module_command("comparison.cli.main", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        started = process_start(child.pid)
        deadline = time.monotonic() + START_S
        while child.poll() is None:
            for state in states(prefix):
                if (state.pid, state.started) == (child.pid, started):
                    child.returncode = 0  # it keeps running, so Popen must not wait for it
                    log.replace(log.with_name(f"{state.name}.log"))
                    return state
            if time.monotonic() > deadline:
                raise EnvironmentFault(f"{arguments[0]} did not start within {START_S:g} s. See {log}")
            time.sleep(0.05)
    finally:
        if child is not None and child.poll() is None:
            child.terminate()
            child.wait()
    why = _last_line(log) or f"{arguments[0]} ended with exit code {child.returncode}. See {log}"
    raise Unavailable(why) if child.returncode == Exit.INTERNAL else EnvironmentFault(why)  # its own exit code


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1].removeprefix(PREFIX) if lines else ""
