"""The text of a committed offset in ZooKeeper (`paths.offset`): a decimal number, the next offset to consume.

Consumers of the ZooKeeper era write it themselves or have a broker do it (OffsetCommit 0).
"""

from __future__ import annotations

import re

_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")


def offset_text(offset: int) -> bytes:
    return b"%d" % offset


def offset_in(data: bytes) -> int:
    """Raises `ValueError` for anything but a 64-bit decimal number."""
    if _NUMBER.fullmatch(data) is None or not -(2**63) <= (offset := int(data)) < 2**63:
        raise ValueError("an offset must be a 64-bit decimal number")
    return offset
