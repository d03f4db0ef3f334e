"""Start child processes that never outlive this process, whether it exits, is interrupted, crashes or gets `kill -9`.

Three mechanisms, since each has gaps: `atexit` (normal exit or uncaught exception), a separate session (Ctrl-C on the
terminal reaches only this process, which then stops its children in order), and on Linux the parent-death signal, which
the kernel sends even after SIGKILL. That signal is tied to the *thread* that started the child, so one daemon thread,
which lives as long as the process, starts all children.
"""

from __future__ import annotations

import atexit
import errno
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future
from typing import IO, TYPE_CHECKING, Any

from kernel.platform.interpreter import bare_command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

#: Requests the parent-death signal, then executes the command. (A preexec_fn would run between fork and exec in a
#: process with threads.) If the parent died before the request, it exits at once.
_LAUNCHER = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    sys.exit(1)
os.execvpe(sys.argv[2], sys.argv[2:], os.environ)
"""

_living: weakref.WeakSet[subprocess.Popen[Any]] = weakref.WeakSet()
_requests: queue.SimpleQueue[tuple[Future[subprocess.Popen[Any]], list[str], dict[str, Any]]] = queue.SimpleQueue()
_spawner_lock = threading.Lock()
_spawner: threading.Thread | None = None


def start_child(
    command: Sequence[str],
    *,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    stdin: int | IO[Any] | None = subprocess.DEVNULL,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    text: bool = False,
) -> subprocess.Popen[Any]:
    """Start a command that ends with this process. Raises OSError as `Popen` does.

    The child runs in a separate session: a signal to our process group does not reach it.
    """
    argv = list(command)
    if sys.platform == "linux":
        # Starting the launcher would succeed for any command.
        if shutil.which(argv[0], path=(environment or os.environ).get("PATH")) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        argv = bare_command(_LAUNCHER, str(os.getpid()), *argv)
    options = {
        "stdout": stdout,
        "stderr": stderr,
        "stdin": stdin,
        "cwd": cwd,
        "env": environment,
        "text": text,
        "start_new_session": True,
    }
    started: Future[subprocess.Popen[Any]] = Future()
    _start_spawner()
    _requests.put((started, argv, options))
    return started.result()


def stop_child(child: subprocess.Popen[Any], *, grace_s: float = 5.0) -> int:
    """SIGTERM, then SIGKILL after `grace_s`; returns the exit code. Wakes a stopped (SIGSTOP) child first."""
    if child.poll() is None:
        child.terminate()
        child.send_signal(signal.SIGCONT)
        try:
            child.wait(grace_s)
        except subprocess.TimeoutExpired:
            child.kill()
    return child.wait()


def _start_spawner() -> None:
    global _spawner  # noqa: PLW0603  # one thread for the process, whichever thread needs it first
    with _spawner_lock:
        if _spawner is None or not _spawner.is_alive():  # dead after a fork
            _spawner = threading.Thread(target=_spawn_forever, name="child-spawner", daemon=True)
            _spawner.start()


def _spawn_forever() -> None:
    while True:
        started, argv, options = _requests.get()
        try:
            child = subprocess.Popen(argv, **options)
        except OSError as error:
            started.set_exception(error)
        else:
            _living.add(child)
            started.set_result(child)


@atexit.register
def _kill_the_rest() -> None:
    for child in list(_living):
        if child.poll() is None:
            child.kill()
            child.wait()
