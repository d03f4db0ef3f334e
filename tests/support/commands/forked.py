"""Commands as processes that are forked from one that has loaded the command line, so that each need not load it.

They have signals, a working folder, an environment and standard streams of their own, as those that a shell starts.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from comparison.cli.entry import main
from kernel.waiting import wait_until

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        f"comparison.cli.{name}"
        for name in ("analysis", "broker", "clients", "doctor", "experiments", "produce", "topic", "watch", "zookeeper")
    ]
)
#: Whoever starts a process asks about all the others, and only one may be told how a process ended.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Streams:
    """Where a command reads and writes."""

    output: Path | Connection
    errors: Path
    given: Path = Path(os.devnull)


class Forked:
    """A process that does some work, with what `subprocess.Popen` has of it."""

    def __init__(
        self,
        work: Callable[[], object],
        folder: Path,
        environment: Mapping[str, str],
        streams: Streams,
        *,
        leads_group: bool = False,
    ) -> None:
        self._process = _FORKS.Process(target=_run, args=(work, folder, dict(environment), streams, leads_group))
        for written in (streams.output, streams.errors):
            if isinstance(written, Path):
                written.touch()  # whoever starts it may look at once
        with _ONE_AT_A_TIME:
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        with _ONE_AT_A_TIME:
            return self._process.exitcode

    def wait(self, timeout_s: float) -> int:
        wait_until(lambda: self.poll() is not None, timeout_s, lambda: f"process {self.pid} to end")
        code = self.poll()
        assert code is not None
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkedCommand(Forked):
    """`rebalance-lab` with these arguments."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        streams: Streams,
        *,
        leads_group: bool = False,
    ) -> None:
        super().__init__(partial(main, list(arguments)), folder, environment, streams, leads_group=leads_group)


class ForkedProgram(Forked):
    """A file of Python, run as a program."""

    def __init__(self, file: str, folder: Path, environment: Mapping[str, str], streams: Streams) -> None:
        super().__init__(partial(_run_file, file), folder, environment, streams)


def _run_file(file: str) -> None:
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [str(Path.cwd()), *filter(None, path)]
    try:
        runpy.run_path(file, run_name="__main__")
    except KeyboardInterrupt:  # the interpreter ends itself with the signal
        traceback.print_exc()
        sys.stdout.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)


def _run(
    work: Callable[[], object], folder: Path, environment: dict[str, str], streams: Streams, leads_group: bool
) -> None:
    """The whole of a process."""
    if leads_group:
        os.setpgid(0, 0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # it depends on the environment
    for number, path, flags in (
        (0, streams.given, os.O_RDONLY),
        (1, streams.output, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, streams.errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        if isinstance(path, Path):
            opened = os.open(path, flags)
            os.dup2(opened, number)
            os.close(opened)
        else:
            os.dup2(path.fileno(), number)
            path.close()
    sys.stdin = os.fdopen(0, closefd=False)
    try:
        work()
    finally:
        atexit._run_exitfuncs()
