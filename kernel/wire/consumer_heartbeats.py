"""ConsumerGroupHeartbeat responses (KIP-848) encoded by hand: kio takes several times as long, and members send many.

Both versions have one form. The bytes begin after the correlation id, as `kernel.broker.server.handlers.Encoded`
requires, and are exactly kio's.
"""

from __future__ import annotations

import struct

from kernel.wire.tags import uvarint

_NO_TAGS = b"\0"
#: Tags of the header, throttle time, error.
_HEAD = struct.Struct(">xih")
_NULL = b"\0"
_EPOCH_AND_INTERVAL = struct.Struct(">ii")
_NO_ASSIGNMENT = b"\xff" + _NO_TAGS


def consumer_heartbeat_tail(
    *,
    error: int,
    member_id: str | None,
    epoch: int,
    heartbeat_interval_ms: int,
    rows: bytes | None,
    message: str | None = None,
) -> bytes:
    """`rows` are the assigned partitions as a compact array of topics; None leaves the assignment as it is."""
    return b"".join(
        (
            _HEAD.pack(0, error),
            _compact(message),
            _compact(member_id),
            _EPOCH_AND_INTERVAL.pack(epoch, heartbeat_interval_ms),
            _NO_ASSIGNMENT if rows is None else b"\1" + rows + _NO_TAGS + _NO_TAGS,
        )
    )


def _compact(text: str | None) -> bytes:
    if text is None:
        return _NULL
    encoded = text.encode()
    return uvarint(len(encoded) + 1) + encoded
