"""The user data in assignments of the `delayed` design: after how long to rejoin (docs/delayed-protocol.md).

    version i16 (0), delay i32 in milliseconds

The delay is not negative; 0, or no user data at all, asks for no rejoin. Newer versions only append, so a reader takes
what it knows. It is the ScheduledDelay of Connect's assignment, where Connect's protocol has separate fields.
"""

from __future__ import annotations

import struct

from coordinator.protocol.consumer_protocol import MalformedMetadata

_LAYOUT = ">hi"
_VERSION = 0

#: What the field holds.
DELAY_MS_MAX = 2**31 - 1


def encode_delay(delay_ms: int) -> bytes:
    """Encode the user data of every member's assignment in one round."""
    assert 0 <= delay_ms <= DELAY_MS_MAX, delay_ms
    return struct.pack(_LAYOUT, _VERSION, delay_ms)


def delay_of(user_data: bytes | None) -> int:
    """Return the delay in milliseconds after which the member rejoins; 0 for none. Raises `MalformedMetadata`."""
    if not user_data:
        return 0
    if len(user_data) < struct.calcsize(_LAYOUT):
        raise MalformedMetadata(f"a delay in {len(user_data)} bytes: it needs {struct.calcsize(_LAYOUT)}")
    version, delay_ms = struct.unpack_from(_LAYOUT, user_data)
    if version < 0 or delay_ms < 0:
        raise MalformedMetadata(f"version {version} of a delay of {delay_ms} ms: both count from 0")
    return int(delay_ms)
