"""The machine's side of a measurement: cores, the limit on open files, CPU clocks.

A server is measured on a core of its own, and its load comes from another core. If there is only one, they share it, as
`Cores.statement` says. Linux only, because other systems have neither core pinning nor epoll.
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

#: Open files of a process besides the connections of a measure.
_OTHER_FILES = 500
#: CPUCLOCK_SCHED of the kernel's posix-timers.h: with a process id it makes the clock of all threads of that process.
_CPU_CLOCK = 2


@dataclass(frozen=True)
class Cores:
    """Core numbers: of the measured server, and of everything else."""

    server: int
    driver: int

    @property
    def statement(self) -> str:
        if self.server == self.driver:
            return f"one core ({self.server}): servers and their load share it and wait for each other"
        return f"servers on core {self.server}, their load on core {self.driver}"


def choose_cores() -> Cores:
    """The first and the last usable core. Raises `click.ClickException` on systems other than Linux."""
    if sys.platform != "linux":
        raise click.ClickException("these measures pin processes to cores and use epoll: run them on Linux")
    usable = sorted(os.sched_getaffinity(0))
    return Cores(usable[0], usable[-1])


def _pin_own_threads(cores: set[int]) -> None:
    """Pin all threads, because a child inherits from the thread that starts it."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # the thread has just ended
            os.sched_setaffinity(int(task.name), cores)


@contextlib.contextmanager
def pinned(core: int) -> Iterator[None]:
    """Run this process, and children started meanwhile, on this core. A JVM counts its cores when it starts."""
    before = os.sched_getaffinity(0)
    _pin_own_threads({core})
    try:
        yield
    finally:
        _pin_own_threads(before)


def allow_connections(count: int) -> None:
    """Raise the limit of open files, which children inherit, to what `count` connections need.

    Raises `click.ClickException` if the hard limit is lower.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + _OTHER_FILES
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise click.ClickException(
            f"{count} connections need {needed} open files, but the hard limit is {hard}: "
            f"raise it (ulimit -Hn {needed}), or choose smaller sizes with --members"
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far, with all threads, ended ones too, in the kernel's resolution."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


def memory_mb(pid: int) -> float:
    """Resident memory, MB of 10^6 bytes."""
    return float(psutil.Process(pid).memory_info().rss) / 1e6


def wait_for_quiet(pid: int, *, share: float = 0.03, timeout_s: float = 30.0) -> None:
    """Wait until a process uses at most `share` of a core for 0.3 s, so that earlier work is done.

    After `timeout_s`, a process that never rests is measured all the same.
    """
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        before, started = cpu_s(pid), time.monotonic()
        time.sleep(0.3)
        if cpu_s(pid) - before <= share * (time.monotonic() - started):
            return


@contextlib.contextmanager
def no_collections() -> Iterator[None]:
    """Switch off garbage collection: the driver makes no cycles, and collections would disturb the measure."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
