"""Whether a process has ended, even if it ends while it is being asked about."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Whether it is gone, or a zombie that its parent has not reaped."""
    with suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def all_ended(processes: Iterable[psutil.Process]) -> bool:
    return all(map(has_ended, processes))
