"""What a command needs of the machine before it starts anything."""

from __future__ import annotations

from kernel.platform.descriptors import DESCRIPTORS, require_descriptors
from kernel.platform.ports import require_loopback


def require_machine(*descriptors: int) -> None:
    """A loopback address, and as many open files as the largest of these (by default: `DESCRIPTORS`).

    Raises `EnvironmentFault`.
    """
    require_loopback()
    require_descriptors(max(descriptors, default=DESCRIPTORS))
