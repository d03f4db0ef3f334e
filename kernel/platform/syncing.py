"""Sync files to disk, so that they survive a power cut."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_is_needed = True


def forgo_syncing() -> None:
    """From now on nothing that this process writes has to survive a power cut: a simulated world ends with it.

    Syncs would take more time than all else that a broker does for a partition.
    """
    global _is_needed  # noqa: PLW0603  # it is the process's
    _is_needed = False


def is_syncing() -> bool:
    """Whether files have to be synced."""
    return _is_needed


def synced(*files: Path) -> None:
    """Sync these files and folders to disk, no matter which process wrote them."""
    if not _is_needed:
        return
    for file in files:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
