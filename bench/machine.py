"""What the figures of a server depend on besides the server: its core, the limit on open files, the clock of its CPU.

A server is measured on a core of its own and its load comes from another one. Where there is only one core, they share
it, which `Cores.statement` says. Linux only: other systems know neither cores to pin to nor epoll.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Files that a process holds open besides the connections of a measure.
_OTHER_FILES = 500
#: CPUCLOCK_SCHED of the kernel's posix-timers.h: with the process id it makes the clock of all of a process's threads.
_CPU_CLOCK = 2


@dataclass(frozen=True)
class Cores:
    """Numbers of the cores for the server that is measured, and for everybody else."""

    server: int
    driver: int

    @property
    def statement(self) -> str:
        if self.server == self.driver:
            return f"one core ({self.server}): servers and their load share it, and each waits for the other"
        return f"servers on core {self.server}, their load on core {self.driver}"


def choose_cores() -> Cores:
    """The first and the last of those that we may use. Raises `click.ClickException` where there are none to choose."""
    if sys.platform != "linux":
        raise click.ClickException("these measures pin processes to cores and use epoll: run them on Linux")
    usable = sorted(os.sched_getaffinity(0))
    return Cores(usable[0], usable[-1])


def _pin_own_threads(cores: set[int]) -> None:
    """All threads: children inherit from the one that starts them."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread that has just ended
            os.sched_setaffinity(int(task.name), cores)


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """We, and what we start in between, run on this core. A JVM counts its cores when it starts."""
    before = os.sched_getaffinity(0)
    _pin_own_threads({core})
    try:
        yield
    finally:
        _pin_own_threads(before)


def allow_connections(count: int) -> None:
    """Raise our limit of open files, which children inherit, as far as `count` connections need it.

    Raises `click.ClickException` when the hard limit is below that.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + _OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise click.ClickException(
            f"{count} connections need {needed} open files, and the hard limit is {hard}: "
            f"raise it (ulimit -Hn {needed}), or choose smaller sizes with --members"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, all threads, ended ones too, in the kernel's own resolution."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def memory_mb(pid: int) -> float:
    """Resident memory, MB of 10^6 bytes."""
    return float(psutil.Process(pid).memory_info().rss) / 1e6


def wait_for_quiet(pid: int, *, share: float = 0.03, timeout_s: float = 30.0) -> None:
    """Until a process has used no more than `share` of a core for 0.3 s: what came before is over for it.

    A process that never rests is measured all the same, after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        before, started = cpu_s(pid), time.monotonic()
        time.sleep(0.3)
        if cpu_s(pid) - before <= share * (time.monotonic() - started):
            return


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """The driver makes no garbage in cycles; its collector would only be seen in what it measures."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
