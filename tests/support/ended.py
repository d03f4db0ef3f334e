"""Whether a process has ended: it may do so between two questions about it."""

from __future__ import annotations

from contextlib import suppress

import psutil


def has_ended(process: psutil.Process) -> bool:
    """Whether it is gone, or only waits for its parent to take note of its end."""
    with suppress(psutil.NoSuchProcess):
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    return True
