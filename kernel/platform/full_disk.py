"""A full disk, which is named at once: what fails because of it says something else, each part in its own words."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel.errors import EnvironmentFault, RebalanceLabError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: A disk with less is full for a server, whose files grow by more at a time.
_FULL_BYTES = 1024 * 1024


def full_disk(folder: Path, remedy: str = "choose another folder with --output") -> EnvironmentFault | None:
    """The error of a full disk; None if the folder's has room, or if that cannot be found out."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return None
    if free >= _FULL_BYTES:
        return None
    return EnvironmentFault(f"the disk of {folder} is full: {free // 1024} kB are free. Free some space, or {remedy}")


@contextmanager
def full_disk_named(folder: Path, remedy: str = "choose another folder with --output") -> Iterator[None]:
    """Whatever the block raises on purpose while the folder's disk is full is raised as that."""
    try:
        yield
    except (RebalanceLabError, OSError) as error:
        if (full := full_disk(folder, remedy)) is not None:
            raise full from error
        raise
