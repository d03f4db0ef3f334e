"""Heartbeat's answers by hand, in all versions: most of what a coordinator says, and there are few different ones.

Requests are not decoded by hand: kio's compiled reader takes half a microsecond for one. What saves more is to decode
none at all where the same bytes come again (`kernel.broker.server.served_connection`).
"""

from __future__ import annotations

from kernel.wire.errors import ErrorCode
from kernel.wire.versions import SERVED, Api

_LOWEST, _HIGHEST = SERVED[Api.Heartbeat]
_THROTTLES, _FLEXIBLE = 1, 4  # the versions from which on there is a throttle time, there are tags


def _tail(version: int, code: int) -> bytes:
    error = code.to_bytes(2, "big", signed=True)
    throttled = bytes(4) + error if version >= _THROTTLES else error
    return b"\0" + throttled + b"\0" if version >= _FLEXIBLE else throttled


#: [version][error code]: a whole response behind its correlation id.
TAILS: tuple[dict[int, bytes], ...] = tuple(
    {code.value: _tail(version, code.value) for code in ErrorCode} for version in range(_LOWEST, _HIGHEST + 1)
)
