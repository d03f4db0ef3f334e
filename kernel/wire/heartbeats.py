"""All Heartbeat responses, encoded in advance for all versions: a coordinator sends little else, and few differ.

Requests are decoded by kio, whose compiled reader needs half a microsecond. It saves more not to decode repeated bytes
at all (`kernel.broker.server.served_connection`).
"""

from __future__ import annotations

from kernel.wire.errors import ErrorCode
from kernel.wire.versions import Api, served_versions

_THROTTLES, _FLEXIBLE = 1, 4  # the first versions with a throttle time and with tags


def _tail(version: int, code: int) -> bytes:
    error = code.to_bytes(2, "big", signed=True)
    throttled = bytes(4) + error if version >= _THROTTLES else error
    return b"\0" + throttled + b"\0" if version >= _FLEXIBLE else throttled


#: [version][error code]: the response after its correlation id.
TAILS: tuple[dict[int, bytes], ...] = tuple(
    {code.value: _tail(version, code.value) for code in ErrorCode} for version in served_versions(Api.Heartbeat)
)
