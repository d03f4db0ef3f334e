"""Whether a process has ended, even if it ends while it is being asked about."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable


def has_ended(process: psutil.Process) -> bool:
    """Whether it is gone, or a zombie that its parent has not reaped."""
    with suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True


def all_ended(processes: Iterable[psutil.Process]) -> bool:
    return all(map(has_ended, processes))
